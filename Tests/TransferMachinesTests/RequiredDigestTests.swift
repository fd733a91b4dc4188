import Foundation
import Testing
import TransferMachines

/// Tests the digests that a response announces, and the effect of a wrong digest.
@Suite struct RequiredDigestTests {
    private let hex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    private let base64 = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="

    private func announced(_ status: Int = 200, _ headers: (String, String)...) -> RequiredDigest? {
        RequiredDigest.announced(
            in: ResponseHead(status: status, headers: headers.map { HeaderField($0.0, $0.1) }, url: "http://h/"))
    }

    @Test func `a Repr-Digest counts for complete and partial responses`() {
        let digest = RequiredDigest(askedSHA256: hex)
        #expect(announced(200, ("Repr-Digest", "sha-256=:\(base64):"))?.bytes == digest?.bytes)
        #expect(announced(206, ("repr-digest", " md5=:AAAA:, sha-256=:\(base64):;q=1"))?.bytes == digest?.bytes)
    }

    @Test func `a Content-Digest or Content-MD5 counts only for a complete response`() {
        #expect(announced(200, ("Content-Digest", "sha-256=:\(base64):"))?.header == "Content-Digest")
        #expect(announced(206, ("Content-Digest", "sha-256=:\(base64):")) == nil)
        #expect(announced(200, ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="))?.algorithm == .md5)
        #expect(announced(206, ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg==")) == nil)
    }

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=::", "sha-256=:AAAA:", "sha-256=\(String(repeating: "A", count: 44))", ":=:",
        "sha-256=:=====:", String(repeating: "sha-256=:AAAA:,", count: 1_000), "sha-256=:%%%%:", "=,=,=", ",,,",
    ])
    func `an invalid digest header is ignored`(_ text: String) {
        #expect(announced(200, ("Repr-Digest", text)) == nil)
    }

    @Test(arguments: ["", "zz", "+1", String(repeating: "g", count: 64), String(repeating: "+1", count: 32)])
    func `an invalid SHA-256 is not accepted`(_ text: String) {
        #expect(RequiredDigest(askedSHA256: text) == nil)
    }

    @Test func `SHA-256 is preferred to SHA-512`() {
        let long = Data(repeating: 7, count: 64).base64EncodedString()
        #expect(announced(200, ("Repr-Digest", "sha-512=:\(long):"))?.algorithm == .sha512)
        #expect(announced(200, ("Repr-Digest", "sha-512=:\(long):, sha-256=:\(base64):"))?.algorithm == .sha256)
    }

    // MARK: The machine

    private let whole = ResponseHead(
        status: 200, headers: [HeaderField("Content-Length", "10"), HeaderField("ETag", "\"v1\"")], url: "http://h/")

    @Test func `a wrong digest of bytes from one connection is a failure`() throws {
        var machine = DownloadMachine(request: TransferRequest(url: "http://h/", expectedSHA256: hex), partial: nil)
        _ = machine.begin()
        _ = machine.received(whole)
        let digest = try #require(machine.requiredDigests(of: whole).first)
        let command = machine.refute(digest, found: "abc", resumedFrom: nil, attemptsWithoutProgress: 0, jitter: 0.5)
        guard case .fail(let trouble) = command else {
            Issue.record("\(command)")
            return
        }
        #expect(trouble.code == -1016 && trouble.message.contains("abc"))
    }

    @Test func `a wrong digest of bytes from two connections starts over`() throws {
        let partial = PartialFile(durableBytes: 5, validator: .entityTag("\"v1\""), totalBytes: 10, url: "http://h/")
        var machine = DownloadMachine(request: TransferRequest(url: "http://h/", expectedSHA256: hex), partial: partial)
        _ = machine.begin()
        let digest = try #require(machine.requiredDigests(of: whole).first)
        let command = machine.refute(digest, found: "abc", resumedFrom: 5, attemptsWithoutProgress: 0, jitter: 0.5)
        guard case .restart = command else {
            Issue.record("\(command)")
            return
        }
        #expect(machine.partial == nil && machine.report == .startedOver(.damaged))
    }

    @Test func `a response that is not a file needs no digest`() {
        let machine = DownloadMachine(request: TransferRequest(url: "http://h/", expectedSHA256: hex), partial: nil)
        let head = ResponseHead(status: 404, headers: [HeaderField("Repr-Digest", "sha-256=:\(base64):")], url: "http://h/")
        #expect(machine.requiredDigests(of: head).isEmpty)
    }

    @Test func `a compressed part is not appended to plain bytes`() {
        let partial = PartialFile(durableBytes: 5, validator: .entityTag("\"v1\""), totalBytes: 10, url: "http://h/")
        var machine = DownloadMachine(request: TransferRequest(url: "http://h/"), partial: partial)
        _ = machine.begin()
        let part = ResponseHead(
            status: 206,
            headers: [
                HeaderField("ETag", "\"v1\""), HeaderField("Content-Range", "bytes 5-9/10"),
                HeaderField("Content-Encoding", "br"),
            ], url: "http://h/")
        #expect(machine.received(part) == .discard)
    }

    @Test func `a 404 is a failure if a file is expected`() {
        var machine = DownloadMachine(request: TransferRequest(url: "http://h/", fileName: "file"), partial: nil)
        _ = machine.begin()
        let head = ResponseHead(status: 404, headers: [], url: "http://h/")
        #expect(machine.received(head) == .discard)
        let end = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 3)
        let command = machine.ended(end, durableBytes: 0, now: Date(), attemptsWithoutProgress: 0, jitter: 0.5)
        guard case .fail(let trouble) = command else {
            Issue.record("\(command)")
            return
        }
        #expect(trouble.status == 404)
    }
}
