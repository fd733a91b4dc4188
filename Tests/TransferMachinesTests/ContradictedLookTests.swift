import Foundation
import Testing

@testable import TransferMachines

/// Tests uploads that check whether the server has their file under the name that they used. In these tests, the server refuses
/// the check, or the response does not show which upload sent the file.
@Suite struct ContradictedLookTests {
    private static let digest = String(repeating: "ab", count: 32)
    private let name = "https://h/up/noon.jpg"
    private let ofOurLength = ["Content-Length": "10"]

    private func plan(_ kind: UploadKind, size: Int64 = 10) -> UploadPlan {
        let folder = kind == .nextcloud ? "https://h/remote.php/dav/files/me/up" : kind == .s3 ? "https://h" : "https://h/up"
        var plan = UploadPlan(
            kind: kind, collectionURL: folder, fileName: "noon.jpg", byteCount: size, token: "t1", sha256: Self.digest)
        plan.order.s3 = S3Access(bucket: "up", region: "us-east-1", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = false
        return plan
    }

    private func isRetry(_ talk: Dialogue) -> Bool { if case .retry? = talk.outcome { true } else { false } }

    private func place(_ talk: Dialogue) -> String? {
        if case .finished(let url)? = talk.outcome { url.split(separator: "/").last.map(String.init) } else { nil }
    }

    // MARK: S3

    /// Returns an upload whose PUT had no response.
    private var sentToS3: Dialogue {
        var talk = Dialogue(plan(.s3))
        talk.hear(404)
        talk.hear(0)
        return talk
    }

    private let ours = ["Content-Range": "bytes 0-0/10", "Content-Length": "1", "x-amz-meta-sha256": Self.digest]

    @Test(arguments: [400, 403, 405, 501])
    func `a look at S3 that is refused after a lost response does not change the name`(_ status: Int) {
        var talk = sentToS3
        talk.hear(status)
        #expect(talk.outcome == .continue)
        talk.hear(206, ours)
        #expect(talk.outcome == .finished(remoteURL: name) && talk.machine.proof == .length)
        #expect(talk.lines == ["HEAD \(name)", "PUT \(name) 0+10", "HEAD \(name)", "GET \(name)"], "\(talk.lines)")
        #expect(talk.header("Range") == "bytes=0-0" && talk.requests.allSatisfy { $0.signing != nil })
    }

    @Test func `looks at S3 that are refused for long are repeated`() {
        var talk = sentToS3
        for _ in 0..<20 {
            talk.hear(403)
            talk.hear(403, [:], "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
            #expect(isRetry(talk), "\(talk.lines)")
        }
        talk.hear(200, ofOurLength.merging(["x-amz-meta-sha256": Self.digest]) { $1 })
        #expect(place(talk) == "noon.jpg" && Set(talk.requests.map(\.url)).count == 1)
    }

    @Test func `an object that is not there is sent to the same key`() {
        var talk = sentToS3
        talk.hear(403)
        talk.hear(404, [:], "<Error><Code>NoSuchKey</Code></Error>")
        talk.hear(200)
        #expect(talk.lines.last == "PUT \(name) 0+10" && talk.header("If-None-Match") == "*")
    }

    @Test func `another's object that only GET shows keeps its key`() {
        var talk = sentToS3
        talk.hear(403)
        talk.hear(206, ours.merging(["x-amz-meta-sha256": "00"]) { $1 })
        talk.hear(404)
        #expect(talk.lines.last == "HEAD https://h/up/noon-1.jpg", "\(talk.lines)")
    }

    @Test func `an expired token ends the upload, and the next one looks at the same key first`() {
        var talk = sentToS3
        talk.hear(400)
        talk.hear(400, [:], "<Error><Code>ExpiredToken</Code><Message>over</Message></Error>")
        #expect(talk.message?.contains("ExpiredToken") == true)
        #expect(talk.machine.memory == nil)
        talk = Dialogue(plan(.s3), resuming: talk.memory)
        #expect(talk.machine.openName == name)
        // The next upload uses another token. At first, the server also refuses the other token.
        talk.hear(403)
        talk.hear(206, ours)
        #expect(talk.outcome == .finished(remoteURL: name), "\(talk.lines)")
    }

    @Test func `an object that HEAD does not show after 412 is looked at by GET`() {
        for (status, expected) in [(206, "noon.jpg"), (403, nil)] as [(Int, String?)] {
            var talk = Dialogue(plan(.s3))
            talk.hear(404)
            talk.hear(412)
            talk.hear(403)
            talk.hear(status, ours)
            #expect(place(talk) == expected, "\(talk.lines)")
            talk.hear(200)
            if expected == nil { #expect(talk.lines.last == "PUT https://h/up/noon-abababab.jpg 0+10") }
        }
    }

    @Test func `a key that never shows its objects gets a name with a mark`() {
        var talk = Dialogue(plan(.s3))
        talk.hear(403)
        talk.hear(200)
        #expect(talk.lines.last == "PUT https://h/up/noon-abababab.jpg 0+10", "\(talk.lines)")
    }

    // MARK: Plain PUT

    @Test(arguments: [405, 501], [false, true])
    func `a server that refuses HEAD once after a lost response is asked again`(_ status: Int, _ isOtherProcess: Bool) {
        var talk = Dialogue(plan(.put))
        talk.hear(404)
        talk.hear(0)
        if isOtherProcess { talk = Dialogue(plan(.put), resuming: talk.memory) }
        talk.hear(status)
        #expect(isRetry(talk))
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: name), "\(talk.lines)")
    }

    @Test func `a refused look at a name that is chosen again is repeated`() {
        var talk = Dialogue(plan(.put))
        talk.hear(404)
        talk.hear(0)
        talk.hear(404)
        talk.hear(429)
        talk.hear(405)
        #expect(isRetry(talk))
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: name), "\(talk.lines)")
    }

    @Test func `Nextcloud that refuses HEAD once after a lost MOVE is asked again`() {
        for status in [405, 501] {
            var talk = Dialogue(plan(.nextcloud), resuming: UploadMemory(step: .move))
            talk.hear(404)
            talk.hear(status)
            #expect(isRetry(talk), "\(status)")
            talk.hear(200, ofOurLength)
            talk.hear(200, comparison: .same)
            #expect(place(talk) == "noon.jpg", "\(talk.lines)")
        }
    }

    // MARK: A MOVE without a clear success

    /// The name already belongs to the file of another machine. A proxy sent 502 instead of the server's 412. For the temporary
    /// file, the response is 404.
    @Test(arguments: [UploadKind.webdav, .nextcloud], [false, true])
    func `a file of our length after a MOVE without a clear yes is read back`(_ kind: UploadKind, _ isMeasured: Bool) {
        for (comparison, expected) in [(BodyComparison.same, "noon.jpg"), (.differs, nil)] as [(BodyComparison, String?)] {
            var talk = Dialogue(plan(kind), resuming: UploadMemory(step: .check, isStored: true))
            if kind == .webdav {
                talk.hear(200, ofOurLength)
                talk.hear(502)
            } else {
                talk = Dialogue(plan(kind), resuming: UploadMemory(step: .move))
            }
            talk.hear(404)
            talk.hear(200, isMeasured ? ofOurLength : [:])
            #expect(talk.outcome == .continue)
            talk.hear(200, comparison: comparison)
            #expect(talk.requests.last?.method == "GET" && place(talk) == expected, "\(talk.lines)")
            #expect(expected == nil || talk.machine.proof == .digest)
            guard expected == nil else { continue }
            talk.hear(404)
            #expect(talk.lines.last?.hasSuffix("/up/noon-1.jpg") == true, "\(talk.lines)")
        }
    }

    @Test func `a moved file without a length that cannot be read is proven by the response alone`() {
        var talk = Dialogue(plan(.webdav), resuming: UploadMemory(step: .check, isStored: true))
        for status in [200, 0, 404, 200, 403] { talk.hear(status, talk.lines.isEmpty ? ofOurLength : [:]) }
        #expect(talk.outcome == .finished(remoteURL: name) && talk.machine.proof == .answer, "\(talk.lines)")
    }

    /// The server may have stored only a part of the file.
    @Test func `a file of a lost PUT without a length is read back`() {
        for (status, comparison, expected) in [(200, .same, "noon.jpg"), (200, .differs, nil), (403, nil, nil)]
            as [(Int, BodyComparison?, String?)]
        {
            var talk = Dialogue(plan(.put), resuming: UploadMemory(step: .put))
            talk.hear(200)
            talk.hear(status, comparison: comparison)
            #expect(place(talk) == expected, "\(talk.lines)")
        }
    }
}
