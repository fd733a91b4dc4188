import Foundation
import Testing

@testable import TransferMachines

/// Tests uploads that only check whether the server has the file.
@Suite struct OnlyCheckTests {
    private func plan(_ kind: UploadKind) -> UploadPlan {
        let url =
            kind == .nextcloud ? "https://c/remote.php/dav/files/me/storms/" : kind == .s3 ? "https://s/bucket/" : "https://d/up/"
        var plan = UploadPlan(
            kind: kind, collectionURL: url, fileName: "noon.jpg", byteCount: 1000, token: "t", contentType: "image/jpeg")
        plan.order.onlyChecks = true
        (plan.sha256, plan.order.sha1) = (String(repeating: "ab", count: 32), "cafe")
        if kind == .s3 { plan.order.s3 = S3Access(bucket: nil, region: "r", accessKey: "a", secretKey: "s") }
        return plan
    }

    private static let kinds = UploadKind.protocols.filter(\.canOnlyCheck)
    private static let verdict = #"{"results":[{"id":"photo","action":"accept"}]}"#

    /// Responds to every request in the same way until the machine ends.
    private func end(_ kind: UploadKind, _ status: Int, _ body: String = "") -> (outcome: UploadCommand, methods: Set<String>) {
        var machine = UploadMachine(plan: plan(kind))
        var methods: Set<String> = []
        for _ in 0..<60 {
            let command = machine.next()
            guard case .send(let request, _, _) = command else { return (command, methods) }
            methods.insert(request.method + (request.method == "POST" ? " " + request.url : ""))
            let head = ResponseHead(status: status, headers: [], url: request.url)
            var end = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0)
            end.body = Data(body.utf8)
            _ = machine.ended(end, now: Date(), attemptsWithoutProgress: 0, jitter: 0)
        }
        return (machine.next(), methods)
    }

    @Test(arguments: kinds) func `a file that the server does not have is reported, and nothing is sent`(_ kind: UploadKind) {
        let (command, methods) = end(kind, kind == .immich ? 200 : 404, Self.verdict)
        #expect(command == .fail(.notOnServer), "\(command)")
        #expect(methods.isSubset(of: ["HEAD", "GET", "POST https://d/up/api/assets/bulk-upload-check"]), "\(methods)")
    }

    @Test(arguments: kinds) func `a server that refuses the question does not prove that the file is missing`(_ kind: UploadKind)
    {
        for status in [400, 405, 501] {
            let (command, methods) = end(kind, status)
            #expect(command != .fail(.notOnServer), "\(status): \(command)")
            #expect(methods.allSatisfy { ["HEAD", "GET"].contains($0) || $0.hasSuffix("check") }, "\(methods)")
        }
    }

    @Test(arguments: UploadKind.protocols.filter { !$0.canOnlyCheck })
    func `a protocol without a question sends nothing`(_ kind: UploadKind) {
        let (command, methods) = end(kind, 404)
        #expect(command == .fail(.notShownByServer) && methods.isEmpty, "\(command)")
    }

    @Test func `a check removes nothing from the server`() {
        for kind in UploadKind.protocols {
            let machine = UploadMachine(plan: plan(kind))
            #expect(machine.removal == nil)
        }
    }

    @Test func `an object that an upload stored under a marked key is found`() {
        var machine = UploadMachine(plan: plan(.s3))
        guard case .send(let first, _, _) = machine.next() else {
            Issue.record("no request")
            return
        }
        #expect(first.method == "HEAD" && first.url == "https://s/bucket/noon.jpg")
        let head = ResponseHead(status: 404, headers: [], url: first.url)
        let end = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0)
        _ = machine.ended(end, now: Date(), attemptsWithoutProgress: 0, jitter: 0)
        guard case .send(let second, _, _) = machine.next() else {
            Issue.record("no request")
            return
        }
        #expect(second.method == "HEAD" && second.url.hasPrefix("https://s/bucket/noon-"), "\(second.url)")
    }
}
