import Foundation
import Testing

@testable import TransferMachines

/// Tests responses that refuse only one attempt, and not the file.
@Suite struct PassingRefusalTests {
    private static let digest = String(repeating: "ab", count: 32)

    private func plan(_ kind: UploadKind, url: String? = nil, size: Int64 = 10) -> UploadPlan {
        let folder = kind == .nextcloud ? "https://h/remote.php/dav/files/me/up" : kind == .s3 ? "https://h" : "https://h/up"
        var plan = UploadPlan(
            kind: kind, collectionURL: url ?? folder, fileName: "noon.jpg", byteCount: size, token: "t1", sha256: Self.digest)
        plan.order.s3 = S3Access(bucket: "up", region: "us-east-1", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = false
        return plan
    }

    private func isRetry(_ talk: Dialogue) -> Bool { if case .retry? = talk.outcome { true } else { false } }

    private func methods(_ talk: Dialogue) -> [String] { talk.requests.map(\.method) }

    /// Runs an upload until its next request contains bytes of the file. Returns the upload in this state.
    private func atItsBytes(_ kind: UploadKind, url: String? = nil) -> Dialogue {
        var talk = Dialogue(plan(kind, url: url))
        advance(&talk)
        return talk
    }

    private func advance(_ talk: inout Dialogue) {
        for _ in 0..<9 {
            guard case .send(let request, let content, _) = talk.machine.next() else { return }
            switch content {
            case .snapshot, .wrapped: return
            case .none, .empty, .data: break
            }
            step(&talk, request)
        }
    }

    /// Passes the next response to an upload. The response shows that the server does not have the file.
    private func step(_ talk: inout Dialogue, _ request: WireRequest) {
        switch (request.method, request.url.contains("/1")) {
        case ("HEAD", true): talk.hear(200, ["Upload-Offset": "0", "Upload-Complete": "?0", "Tus-Resumable": "1.0.0"])
        case ("HEAD", false), ("GET", _): talk.hear(404)
        case ("PROPFIND", _): talk.hear(207, [:], "<multistatus/>")
        case ("OPTIONS", _): talk.hear(204)
        default: talk.hear(201, ["Location": "https://h/1", "Upload-Complete": "?0"])
        }
    }

    private static let short = """
        <d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:exception>Sabre\\DAV\\Exception\\BadRequest</s:exception>\
        <s:message>Expected filesize of 10 bytes but read 4 bytes.</s:message></d:error>
        """

    // MARK: 400 to a request with bytes

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .tus, .resumable])
    func `a 400 to the bytes is tried again after a look, for a limited number of times`(_ kind: UploadKind) {
        var talk = atItsBytes(kind)
        for attempt in 1..<RetryPolicy.maximumRefusals {
            talk.hear(400, [:], Self.short)
            #expect(isRetry(talk), "\(attempt) \(talk.lines)")
            guard case .send(_, .none, _) = talk.machine.next() else {
                Issue.record("the bytes are sent without a query: \(talk.lines)")
                return
            }
            advance(&talk)
        }
        talk.hear(400, [:], Self.short)
        #expect(talk.message?.contains("Expected filesize of 10 bytes") == true, "\(talk.lines)")
    }

    @Test func `a file that is there after a 400 is not sent again`() {
        var talk = atItsBytes(.put)
        talk.hear(400, [:], Self.short)
        talk.hear(200, ["Content-Length": "10"])
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: "https://h/up/noon.jpg") && methods(talk) == ["HEAD", "PUT", "HEAD", "GET"])
    }

    @Test(arguments: [UploadKind.put, .nextcloud]) func `a 400 that forbids the name is read first`(_ kind: UploadKind) {
        var talk = atItsBytes(kind)
        talk.hear(
            400, [:],
            "<error><exception>OCA\\DAV\\Connector\\Sabre\\Exception\\InvalidPath</exception><message>no such name</message></error>"
        )
        #expect(talk.message?.contains("no such name") == true, "\(talk.lines)")
    }

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .tus, .resumable, .s3], [302, 303, 307, 400, 424, 499])
    func `no request ends the upload by one refusal without a meaning`(_ kind: UploadKind, _ status: Int) {
        for steps in 0..<6 {
            var talk = Dialogue(plan(kind))
            for _ in 0..<steps { if case .send(let request, _, _) = talk.machine.next() { step(&talk, request) } }
            guard case .send(let request, _, _) = talk.machine.next() else { continue }
            talk.hear(status, ["Location": "https://elsewhere/"])
            #expect(talk.message == nil, "\(request.method) \(talk.lines)")
        }
    }

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud], [302, 303, 307, 400, 424, 499])
    func `the number of refusals without a meaning is limited`(_ kind: UploadKind, _ status: Int) {
        var talk = Dialogue(plan(kind))
        for _ in 1..<RetryPolicy.maximumRefusals { talk.hear(status, ["Location": "https://elsewhere/"]) }
        guard case .retry(let after, _)? = talk.outcome else { Issue.record("\(talk.lines)"); return }
        // The user may need hours to log in, and maintenance may take hours.
        #expect((after >= 1_800) == (300..<400).contains(status))
        talk.hear(status, ["Location": "https://elsewhere/"])
        #expect(talk.message?.contains(status < 400 ? "redirects to https://elsewhere/" : "\(status)") == true, "\(talk.lines)")
    }

    /// If a server has the complete file, its refusal is a decision about the file.
    @Test func `a 400 of a resumable upload that is complete is final`() {
        var talk = atItsBytes(.resumable)
        talk.hear(400, ["Upload-Complete": "?1"])
        #expect(talk.message?.contains("refused it") == true)
    }

    @Test(arguments: [UploadKind.multipart, .immich]) func `a form that is refused with 400 is final`(_ kind: UploadKind) {
        var talk = atItsBytes(kind)
        for _ in 0..<4 { talk.hear(400) }
        #expect(talk.message != nil, "\(talk.lines)")
    }

    @Test func `progress begins the count of refusals again`() {
        var talk = Dialogue(plan(.tus, size: 100), resuming: UploadMemory(step: .append, place: "https://h/1", creations: 1))
        for offset in 0..<20 {
            talk.hear(200, ["Upload-Offset": "\(offset)", "Tus-Resumable": "1.0.0"])
            talk.hear(400)
            #expect(isRetry(talk), "\(offset)")
        }
    }

    // MARK: Responses of the protocols

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud])
    func `a 403 is tried again only if the server allows it`(_ kind: UploadKind) {
        let body = """
            <d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns" xmlns:o="http://owncloud.org/ns">\
            <s:exception>OCA\\DAV\\Connector\\Sabre\\Exception\\Forbidden</s:exception><s:message>The storage is checked</s:message>\
            <o:retry>RETRY</o:retry></d:error>
            """
        for (retry, attempts) in [("true", RetryPolicy.maximumRefusals), ("false", 1)] {
            var talk = atItsBytes(kind)
            for _ in 1..<attempts {
                talk.hear(403, [:], body.replacing("RETRY", with: retry))
                #expect(isRetry(talk), "\(talk.lines)")
                advance(&talk)
            }
            talk.hear(403, [:], body.replacing("RETRY", with: retry))
            #expect(talk.message?.contains("The storage is checked") == true, "\(talk.lines)")
        }
    }

    @Test(arguments: UploadKind.protocols) func `421 is tried again`(_ kind: UploadKind) {
        var talk = atItsBytes(kind)
        talk.hear(421)
        #expect(isRetry(talk), "\(kind) \(String(describing: talk.outcome))")
    }

    @Test(arguments: ["https://h/up", "https://h/up/noon.jpg?signature=1"])
    func `409 to a plain PUT is tried again, for a limited number of times`(_ url: String) {
        var talk = atItsBytes(.put, url: url)
        for _ in 1..<RetryPolicy.maximumRefusals {
            talk.hear(409)
            #expect(isRetry(talk), "\(talk.lines)")
            advance(&talk)
        }
        talk.hear(409)
        #expect(talk.message != nil, "\(talk.lines)")
    }

    // MARK: S3

    private func error(_ code: String) -> String { "<Error><Code>\(code)</Code><Message>words</Message></Error>" }

    @Test(arguments: [
        "RequestTimeout", "InternalError", "SlowDown", "OperationAborted", "IncompleteBody", "BadDigest",
        "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
    ])
    func `S3's codes of a passing fault are tried again`(_ code: String) {
        for talk in [atItsBytes(.s3), atItsBytes(.put, url: "https://h/up/noon.jpg?X-Amz-Signature=1")] {
            var talk = talk
            talk.hear(400, [:], error(code))
            #expect(isRetry(talk), "\(talk.lines)")
            advance(&talk)
            talk.hear(200)
            #expect(talk.message == nil, "\(talk.lines)")
        }
    }

    @Test func `damaged bytes are sent to S3 for a limited number of times`() {
        for talk in [atItsBytes(.s3), atItsBytes(.put, url: "https://h/up/noon.jpg?X-Amz-Signature=1")] {
            var talk = talk
            for _ in 0..<RetryPolicy.maximumRefusals {
                talk.hear(400, [:], error("BadDigest"))
                advance(&talk)
            }
            #expect(talk.message?.contains("words") == true, "\(talk.lines)")
        }
    }

    @Test(arguments: ["AccessDenied", "ExpiredToken", "InvalidArgument"])
    func `other codes to a presigned PUT are final`(_ code: String) {
        for status in [400, 403] {
            var talk = atItsBytes(.put, url: "https://h/up/noon.jpg?X-Amz-Signature=1")
            talk.hear(status, [:], error(code))
            #expect(talk.message?.contains("presigned address") == true, "\(code)")
        }
    }

    // MARK: No space

    @Test func `a quota that is used up is waited for like a full server`() {
        let immich = #"{"message":"Quota has been exceeded!","error":"Bad Request","statusCode":400}"#
        let s3 = error("QuotaExceeded")
        let answers: [(Dialogue, Int, String)] = [
            (atItsBytes(.immich), 400, immich), (atItsBytes(.s3), 403, s3), (atItsBytes(.webdav), 507, ""),
            (atItsBytes(.put, url: "https://h/up/noon.jpg?X-Amz-Signature=1"), 403, s3),
        ]
        for (talk, status, body) in answers {
            var talk = talk
            talk.hear(status, [:], body)
            guard case .retry(let after, let trouble)? = talk.outcome else {
                Issue.record("\(talk.lines) \(String(describing: talk.outcome))")
                continue
            }
            #expect(after >= RetryPolicy.standard.fullDelay && trouble.message.contains("no space left"))
            #expect(trouble.status == 507)
        }
    }
}
