import Foundation
import Testing

@testable import TransferMachines

/// A server has a file with the name and the length of an upload. Tests how the upload determines whether it sent this file.
@Suite struct ReadBackTests {
    private static let digest = String(repeating: "ab", count: 32)
    private static let encoded = Data(repeating: 0xAB, count: 32).base64EncodedString()
    private let name = "https://h/up/noon.jpg"
    private let next = "https://h/up/noon-1.jpg"

    private func plan(_ byteCount: Int64 = 10, _ kind: UploadKind = .put) -> UploadPlan {
        UploadPlan(
            kind: kind, collectionURL: "https://h/up", fileName: "noon.jpg", byteCount: byteCount, token: "t1",
            sha256: Self.digest)
    }

    /// Returns an upload whose PUT had no response. The server has a file with the length of the upload.
    private func lostPut(_ byteCount: Int64 = 10, _ headers: [String: String] = [:]) -> Dialogue {
        var talk = Dialogue(plan(byteCount))
        talk.hear(404)
        talk.hear(0)
        talk.hear(200, headers.merging(["Content-Length": "\(byteCount)"]) { first, _ in first })
        return talk
    }

    private func finishes(_ talk: Dialogue, _ proof: UploadProof) -> Bool {
        talk.outcome == .finished(remoteURL: name) && talk.machine.proof == proof
    }

    // MARK: Bytes that are read

    @Test func `a small file is read back completely after a lost response`() {
        var talk = lostPut()
        #expect(talk.outcome == .continue)
        talk.hear(200, ["Content-Length": "10"], comparison: .same)
        #expect(finishes(talk, .digest))
        #expect(talk.lines == ["HEAD \(name)", "PUT \(name) 0+10", "HEAD \(name)", "GET \(name)"])
        #expect(talk.compared == [SnapshotPart(start: 0, count: 10, total: 10)])
        #expect(talk.header("Range") == nil && talk.memory == UploadMemory(step: .put))
        #expect(talk.requests.last?.maximumRedirects == 0)
    }

    @Test(arguments: [(1 << 20) + 1, 5_000_000, 3 << 30] as [Int64])
    func `four blocks of a large file are read back`(_ byteCount: Int64) {
        var talk = lostPut(byteCount)
        var ranges: [String] = []
        for _ in 0..<4 {
            talk.hear(206, comparison: .same)
            ranges.append(talk.header("Range") ?? "none")
        }
        #expect(finishes(talk, .content))
        let block: Int64 = 256 << 10
        #expect(ranges.first == "bytes=0-\(block - 1)" && ranges.last == "bytes=\(byteCount - block)-\(byteCount - 1)")
        #expect(zip(ranges, talk.compared).allSatisfy { $0 == "bytes=\($1.start)-\($1.start + $1.count - 1)" })
        #expect(zip(talk.compared, talk.compared.dropFirst()).allSatisfy { $0.start + $0.count <= $1.start })
    }

    @Test func `a server without ranges proves a large file completely`() {
        var talk = lostPut(5_000_000)
        talk.hear(200, ["Content-Length": "5000000"], comparison: .same)
        #expect(finishes(talk, .digest))
    }

    @Test func `an empty file is not read back`() {
        #expect(finishes(lostPut(0), .length))
    }

    // MARK: The temporary file of a WebDAV upload

    private let part = "https://h/up/.t1.part"

    /// Returns an upload whose PUT had no response. The server has a temporary file with the length of the upload.
    private func lostTemporaryFile(_ byteCount: Int64 = 10) -> Dialogue {
        var talk = Dialogue(plan(byteCount, .webdav))
        talk.hear(404)
        // For a large file, the folder is created first.
        if byteCount >= FolderUpload.largeBody { talk.hear(405) }
        talk.hear(0)
        talk.hear(200, ["Content-Length": "\(byteCount)"])
        return talk
    }

    @Test(arguments: [200, 403]) func `a temporary file is read back before it is renamed`(_ status: Int) {
        var talk = lostTemporaryFile()
        // If a server does not send the bytes of the file, the length of the file confirms the upload.
        talk.hear(status, comparison: status == 200 ? .same : nil)
        talk.hear(201)
        talk.hear(200, ["Content-Length": "10"])
        #expect(finishes(talk, status == 200 ? .digest : .length))
        #expect(
            talk.lines == ["HEAD \(name)", "PUT \(part) 0+10", "HEAD \(part)", "GET \(part)", "MOVE \(part)", "HEAD \(name)"])
    }

    /// The server reserves the complete length at the start. The connection was lost in the middle of the body.
    @Test(arguments: [10, 5_000_000] as [Int64]) func `a temporary file of the right length with other bytes is sent again`(
        _ byteCount: Int64
    ) {
        var talk = lostTemporaryFile(byteCount)
        if byteCount > ReadBack.maximumBytes { for _ in 0..<3 { talk.hear(206, comparison: .same) } }
        talk.hear(byteCount > ReadBack.maximumBytes ? 206 : 200, comparison: .differs)
        talk.hear(201)
        #expect(talk.lines.last == "PUT \(part) 0+\(byteCount)" && talk.outcome == .continue)
    }

    @Test func `a temporary file that changes while it is read back is looked at again`() {
        var talk = lostTemporaryFile()
        talk.hear(404)
        talk.hear(404)
        talk.hear(201)
        #expect(talk.lines.suffix(3) == ["GET \(part)", "HEAD \(part)", "PUT \(part) 0+10"])
    }

    // MARK: A file that was cut

    @Test(arguments: [UploadKind.put, .webdav])
    func `a confirmed file that the server cut is sent once more, under the next name`(_ kind: UploadKind) {
        var talk = Dialogue(plan(10, kind))
        talk.hear(404)
        talk.hear(201)
        if kind == .webdav {
            talk.hear(200, ["Content-Length": "10"])
            talk.hear(201)
        }
        for _ in 0..<NameDoubt.maximumChecks { talk.hear(200, ["Content-Length": "4"]) }
        guard case .retry(_, let trouble)? = talk.outcome else {
            Issue.record("\(String(describing: talk.outcome))")
            return
        }
        #expect(trouble.message.hasPrefix("The server stored 4 of 10 bytes."))
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
        talk.hear(201)
        if kind == .webdav {
            talk.hear(200, ["Content-Length": "10"])
            talk.hear(201)
        }
        for _ in 0..<NameDoubt.maximumChecks { talk.hear(200, ["Content-Length": "4"]) }
        if case .fail? = talk.outcome {} else { Issue.record("\(String(describing: talk.outcome))") }
    }

    // MARK: Results

    @Test func `a file of another machine keeps its name`() {
        var talk = lostPut()
        talk.hear(200, comparison: .differs)
        talk.hear(404)
        talk.hear(201)
        talk.hear(200, ["Content-Length": "10"])
        #expect(talk.outcome == .finished(remoteURL: next))
        #expect(talk.lines.suffix(3) == ["HEAD \(next)", "PUT \(next) 0+10", "HEAD \(next)"])
    }

    @Test func `a difference in the last block is enough`() {
        var talk = lostPut(5_000_000)
        for _ in 0..<3 { talk.hear(206, comparison: .same) }
        talk.hear(206, comparison: .differs)
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
    }

    /// The server sends a digest of its file, so no GET is necessary.
    @Test func `the digest of a server is believed`() {
        var talk = lostPut(5_000_000, ["Repr-Digest": "sha-256=:\(Self.encoded):"])
        #expect(finishes(talk, .digest) && talk.lines.count == 3)
        #expect(talk.header("Want-Repr-Digest") == "sha-256=10")
        let another = Data(repeating: 1, count: 32).base64EncodedString()
        talk = lostPut(5_000_000, ["Repr-Digest": "sha-256=:\(another):"])
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
    }

    /// A response to HEAD has no content. The upload has not computed the MD5 of the file.
    @Test(arguments: ["Content-Digest", "ETag", "Content-MD5"])
    func `other headers do not prove the content`(_ header: String) {
        var talk = lostPut(10, [header: "sha-256=:\(Self.encoded):"])
        talk.hear(200, comparison: .same)
        #expect(talk.lines.last == "GET \(name)" && finishes(talk, .digest))
    }

    // MARK: Files that cannot be read

    @Test(arguments: [301, 400, 401, 403, 405, 501])
    func `the length is the proof if the server refuses a GET`(_ status: Int) {
        var talk = lostPut()
        talk.hear(status, ["Location": "https://elsewhere/noon.jpg"])
        #expect(finishes(talk, .length))
    }

    @Test func `the length is the proof if the body cannot be compared`() {
        var talk = lostPut()
        talk.hear(200, ["Content-Encoding": "gzip"], comparison: .impossible)
        #expect(finishes(talk, .length))
    }

    @Test(arguments: [429, 500, 503, 0])
    func `a GET that fails for a moment is sent again`(_ status: Int) {
        var talk = lostPut()
        for _ in 0..<8 {
            talk.hear(status)
            guard case .retry = talk.outcome else { Issue.record("\(String(describing: talk.outcome))"); return }
        }
        talk.hear(200, comparison: .same)
        #expect(finishes(talk, .digest))
    }

    @Test func `the length is the proof if each body breaks off`() {
        var talk = lostPut()
        for _ in 0..<3 {
            talk.hear(200, isCut: true, comparison: .incomplete)
            guard case .retry = talk.outcome else { Issue.record("\(String(describing: talk.outcome))"); return }
        }
        talk.hear(200, isCut: true, comparison: .incomplete)
        #expect(finishes(talk, .length))
    }

    @Test(arguments: [(404, nil), (416, nil), (200, "11")] as [(Int, String?)])
    func `a file that changes while it is read back is looked at again`(_ status: Int, _ length: String?) {
        var talk = lostPut()
        talk.hear(status, length.map { ["Content-Length": $0] } ?? [:], comparison: .differs)
        guard case .retry = talk.outcome else { Issue.record("\(String(describing: talk.outcome))"); return }
        talk.hear(404)
        talk.hear(201)
        #expect(talk.lines.suffix(2) == ["HEAD \(name)", "PUT \(name) 0+10"])
    }

    // MARK: When a file is read back

    /// A server sends 201 for a new file. If the server replaced a file, it sends 200 or 204.
    @Test(arguments: [200, 204])
    func `a PUT that may have replaced a file is read back`(_ status: Int) {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(status)
        talk.hear(200, ["Content-Length": "10"])
        #expect(talk.header("Want-Repr-Digest") != nil && talk.outcome == .continue)
        talk.hear(200, comparison: .differs)
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
    }

    @Test func `a PUT that made a file is not read back`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(201, ["ETag": "\"1\""])
        talk.hear(200, ["Content-Length": "10", "ETag": "\"1\""])
        #expect(finishes(talk, .length) && talk.lines.count == 3)
    }

    /// After the PUT, another machine replaced the file. The upload then checks the file on the server.
    @Test func `a file with another entity tag than the PUT made is read back`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(201, ["ETag": "\"1\""])
        talk.hear(200, ["Content-Length": "10", "ETag": "\"2\""])
        talk.hear(200, comparison: .differs)
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
    }

    @Test(arguments: [UploadMemory.Step.put, .check])
    func `a new process reads back what an earlier one sent`(_ step: UploadMemory.Step) {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: step, isStored: step == .check))
        talk.hear(200, ["Content-Length": "10"])
        talk.hear(200, comparison: .same)
        #expect(finishes(talk, .digest) && talk.lines == ["HEAD \(name)", "GET \(name)"])
    }

    /// No other machine uses a name that contains a part of the digest. If the file name contains a part of the digest, the
    /// upload is not read back.
    @Test func `names that are known are not read back`() {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .put, isMarked: true))
        talk.hear(200, ["Content-Length": "10"])
        #expect(talk.outcome == .finished(remoteURL: "https://h/up/noon-abababab.jpg") && talk.machine.proof == .length)
        talk = Dialogue(plan(), resuming: UploadMemory(step: .put))
        talk.machine.setOtherNames(taken: [name])
        talk.hear(200, ["Content-Length": "10"])
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
    }

    // MARK: The bytes of a response

    @Test(
        arguments: [
            ("bytes 5-9/20", 5..<10), ("bytes 5-9/*", 5..<10), ("bytes 5-9/21", nil), ("bytes 4-8/20", nil),
            ("bytes 5-8/20", nil),
            ("bytes */20", nil), ("", nil),
        ] as [(String, Range<Int64>?)])
    func `a partial response has the bytes that it names`(_ text: String, _ range: Range<Int64>?) {
        let part = SnapshotPart(start: 5, count: 5, total: 20)
        let head = ResponseHead(status: 206, headers: [HeaderField("Content-Range", text)], url: "")
        #expect(part.range(in: head) == range)
        let bare = ResponseHead(status: 206, headers: [], url: "")
        #expect(part.range(in: bare) == nil)
    }

    @Test func `a complete response has all of the file`() {
        let part = SnapshotPart(start: 5, count: 5, total: 5_000_000)
        #expect(part.range(in: ResponseHead(status: 200, headers: [], url: "")) == 0..<5_000_000)
        let coded = ResponseHead(status: 200, headers: [HeaderField("Content-Encoding", "gzip")], url: "")
        #expect(part.range(in: coded) == nil)
        #expect(part.range(in: ResponseHead(status: 404, headers: [], url: "")) == nil)
    }

    @Test func `receipts of older versions and of this one can be read`() throws {
        let known: [(String, UploadProof)] = [
            ("answer", .answer), ("length", .length), ("content", .content), ("digest", .digest),
        ]
        for (text, proof) in known {
            #expect(try JSONDecoder().decode([UploadProof].self, from: Data("[\"\(text)\"]".utf8)) == [proof])
        }
    }
}
