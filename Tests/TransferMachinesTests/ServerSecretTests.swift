import Foundation
import Testing

@testable import TransferMachines

/// Tests servers that quote requests in their responses, and that redirect to URLs with passwords.
@Suite struct ServerSecretTests {
    private static let credential = "Basic " + Data("me:correct horse".utf8).base64EncodedString()

    private func message(
        _ kind: UploadKind = .put, address: String = "https://h/up", headers: [HeaderField] = [], status: Int = 400,
        answer: [String: String] = [:], _ body: String
    ) -> String {
        let plan = UploadPlan(
            kind: kind, collectionURL: address, fileName: "noon.jpg", byteCount: 10, token: "t1", headers: headers)
        var talk = Dialogue(plan)
        if kind == .put, !address.contains("?") { talk.hear(404) }
        talk.hear(status, answer, body)
        return switch talk.outcome {
        case .fail(let trouble), .retry(_, let trouble): trouble.message
        case .continue, .finished, nil: ""
        }
    }

    @Test(arguments: [
        "Cannot PUT /up/noon.jpg?X-Amz-Signature=SECRET1&X-Amz-Date=1", "no such address: https://h/up/noon.jpg?sig=SECRET1.",
        "see <https://me:SECRET1@h/up>", "the key SECRET1 is invalid", "invalid password correct horse", "invalid \(credential)",
    ])
    func `a secret that the server quotes is not shown`(_ words: String) throws {
        let body = String(decoding: try JSONEncoder().encode(["message": words]), as: UTF8.self)
        let text = message(
            address: "https://h/up/noon.jpg?X-Amz-Signature=SECRET1&X-Amz-Date=20261129",
            headers: [HeaderField("Authorization", Self.credential), HeaderField("x-api-key", "SECRET1")], body)
        #expect(text.contains("The server's reason"), "\(text)")
        for secret in ["SECRET1", "correct horse", String(Self.credential.dropFirst(6))] {
            #expect(!text.contains(secret), "\(text)")
        }
    }

    @Test(arguments: [
        "http://me:SECRET1@h2/x/login", "https://me:SECRET1@h2/up/noon.jpg", "https://h2/up;jsessionid=SECRET1",
        "https://h2/up#SECRET1", "https://h2/up?token=SECRET1",
    ])
    func `the address of a redirect is shown without secrets`(_ place: String) {
        let text = message(status: 307, answer: ["Location": place], "")
        #expect(text.contains("://h2/") && !text.contains("SECRET1"), "\(text)")
    }

    @Test(arguments: [
        ("What? No space left", "What? No space left"), ("is it a=b? yes", "is it a=b? yes"),
        ("see http://h/a?b=c and \"/d?e=f\"", "see http://h/a?… and \"/d?…\""), ("mail me@example.org", "mail me@example.org"),
    ])
    func `other text of a server stays`(_ text: String, _ shown: String) {
        #expect(ServerText.line(text) == shown)
    }
}
