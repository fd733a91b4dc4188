import Foundation
import Testing

@testable import TransferMachines

@Suite struct ServerReasonTests {
    private func reason(_ text: String) -> String? { ServerReason(Data(text.utf8))?.text }

    @Test func `Sabre's and Nextcloud's message is read with its exception`() {
        let body =
            #"<?xml version="1.0"?><d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:exception>Sabre\DAV\Exception\Locked</s:exception>"#
            + "<s:message>The file is locked by Anna.</s:message></d:error>"
        #expect(reason(body) == "The file is locked by Anna.")
        #expect(ServerReason(Data(body.utf8))?.exception == #"Sabre\DAV\Exception\Locked"#)
    }

    @Test func `an exception without a message is the reason`() {
        #expect(
            reason("<error><exception>Sabre\\DAV\\Exception\\InsufficientStorage</exception><message/></error>")?.hasSuffix(
                "Storage") == true)
    }

    @Test(arguments: [
        (#"{"message":"Invalid API key"}"#, "Invalid API key"),
        (#"{"message":["a should not be empty","b must be a date"]}"#, "a should not be empty; b must be a date"),
        (
            #"{"message":"Validation failed","errors":[{"path":["fileCreatedAt"],"message":"expected a time"},"plain"]}"#,
            "Validation failed; fileCreatedAt: expected a time; plain"
        ),
        (
            #"{"message":"Validation failed","errors":[{"code":"unrecognized_keys","keys":["x","y"],"path":[],"message":"Unrecognized keys"}]}"#,
            "Validation failed; Unrecognized keys: x, y"
        ),
        (#"{"message":null,"errors":[{"path":["metadata",3,"key"],"message":"too long"}]}"#, "metadata.3.key: too long"),
        (#"{"errors":[{}],"message":"only this"}"#, "only this"),
        ("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", "Access Denied"),
    ])
    func `messages and lists of errors are joined`(_ body: String, _ text: String) {
        #expect(reason(body) == text)
    }

    @Test(arguments: [
        "", "no", "[]", "3", "{}", #"{"message":3}"#, #"{"message":{"a":1}}"#, "<html><body><message>no</message></body></html>",
        "<d:multistatus/>", "<error/>", "<d:error xmlns:d='DAV:'><d:lock-token-submitted/></d:error>", "\u{0}\u{1}",
    ])
    func `other bodies give no reason`(_ body: String) {
        #expect(reason(body) == nil)
    }

    @Test func `a reason is one short line`() {
        let text = reason(#"{"message":["a\u001b[31m\n\u202eb","\#(String(repeating: "x", count: 100_000))"]}"#)
        #expect(text.map { $0.count <= 400 && $0.hasPrefix("a[31mb; xx") && !$0.contains("\n") } == true)
    }

    @Test func `a body with unlimited nesting is refused`() {
        #expect(reason(String(repeating: "[", count: 500_000)) == nil)
        #expect(reason(#"{"message":"# + String(repeating: "[", count: 500_000)) == nil)
        #expect(reason(String(repeating: "<error>", count: 100_000)) == nil)
    }

    /// The server refuses all requests, except requests that only check a file or a name.
    @Test(arguments: [UploadKind.webdav, .put, .nextcloud, .s3, .immich, .multipart, .tus, .resumable])
    func `the reason is shown with a failure and with a wait`(_ kind: UploadKind) {
        let body =
            "<d:error xmlns:d='DAV:' xmlns:s='s'><s:exception>E</s:exception><s:message>Not on Sundays</s:message></d:error>"
        for status in [403, 503] {
            var plan = UploadPlan(
                kind: kind, collectionURL: "https://h/remote.php/dav/files/me/a/", fileName: "p.jpg", byteCount: 10, token: "t",
                sha256: "ab")
            plan.order.s3 = S3Access(bucket: "b", region: "r", accessKey: "a", secretKey: "s")
            (plan.knowledge.lacksConditions, plan.knowledge.immichVersion, plan.order.sha1) = (false, 3, "cafe")
            var talk = Dialogue(plan)
            for _ in 0..<6 where talk.outcome == nil || talk.outcome == .continue {
                guard case .send(let request, let content, _) = talk.machine.next() else { break }
                let asks = request.method == "HEAD" || content != .none && request.url.hasSuffix("-check")
                if asks { talk.hear(404) } else { talk.hear(status, [:], body) }
            }
            let message: String? =
                switch talk.outcome {
                case .retry(_, let trouble), .fail(let trouble): trouble.message
                default: nil
                }
            #expect(
                message?.hasSuffix("The server's reason: \"Not on Sundays\".") == true,
                "\(kind) \(status): \(talk.outcome as Any) \(talk.lines)")
        }
    }
}
