@testable import BackgroundLedger
import Foundation
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests in which the agent reads a file back from a server, and compares it with the queued copy at the same time.
@Suite struct ReadBackTests {
    private let bench: Bench
    private let copy: URL

    init() throws {
        bench = try Bench()
        copy = bench.ledger.directories.spool.appendingPathComponent("upload-1")
    }

    /// Starts an upload whose response to the PUT is lost. Later the server reports a file of the same length.
    ///
    /// - Returns: The number of the transfer.
    private func lostPut(_ bytes: Data, to folder: String = "photos/") throws -> Int64 {
        let id = try queue(bytes, to: folder)
        try bench.turn()
        try end(id, status: 404)
        #expect(try bench.attempt(id).request.method == "PUT")
        try bench.fail(id, .connectionLost)
        try waitForNextAttempt(id)
        try end(id, status: 200, [HeaderField("Content-Length", "\(bytes.count)")])
        return id
    }

    private func queue(_ bytes: Data, to folder: String) throws -> Int64 {
        try bytes.write(to: copy)
        return try bench.download(folder) {
            $0.kind = .upload
            $0.method = "PUT"
            $0.bodyFile = "upload-1"
            $0.bytesTotal = Int64(bytes.count)
            $0.sourceSHA256 = FileDigest.sha256(of: bytes)
            $0.upload = UploadOrder(method: .put, fileName: "a.jpg", byteCount: Int64(bytes.count), token: "t")
        }
    }

    private func waitForNextAttempt(_ id: Int64) throws {
        let before = bench.transport.started.count
        let next = try #require(try bench.transfer(id).nextAttemptAt)
        try bench.pass(next.timeIntervalSince(bench.now))
        try #require(bench.transport.started.count == before + 1)
    }

    /// Ends the running attempt of an upload with a response.
    private func end(
        _ id: Int64, status: Int, _ headers: [HeaderField] = [], _ failure: WireFailure? = nil, sent: Int64 = 0
    ) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: status, headers: headers, url: attempt.request.url)
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: failure, bytesSent: sent, bytesReceived: 0))))
    }

    /// Sends the bytes in pieces, and ends the attempt when the agent refuses more bytes.
    private func send(_ bytes: Data, to id: Int64, status: Int = 200, _ headers: [HeaderField] = []) throws {
        let attempt = try bench.attempt(id)
        #expect(attempt.request.method == "GET" && attempt.source == nil)
        #expect(attempt.sink.receive(head: ResponseHead(status: status, headers: headers, url: attempt.request.url)))
        var isWanted = true
        var rest = bytes
        while isWanted, !rest.isEmpty {
            isWanted = Data(rest.prefix(70_000)).withUnsafeBytes { attempt.sink.write($0) }
            rest = Data(rest.dropFirst(70_000))
        }
        try end(id, status: status, headers, isWanted ? nil : .stoppedByOwner)
    }

    private func photo(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 9) }) }

    /// Returns the proof in the receipt of a completed upload; `nil` if the upload is not completed.
    private func proof(_ id: Int64) throws -> UploadProof? {
        let transfer = try bench.transfer(id)
        return transfer.state == .completed ? transfer.receipt?.proof : nil
    }

    @Test func `a small file with the uploaded bytes completes the upload`() throws {
        let id = try lostPut(photo(200_000))
        #expect(try bench.attempt(id).request.maximumBodyBytes == nil, "the sink ends the body, so the request has no limit")
        try send(photo(200_000), to: id)
        #expect(try proof(id) == .digest)
    }

    @Test(arguments: [0, 100_000, 199_999]) func `a file with one different byte is another file`(_ place: Int) throws {
        let id = try lostPut(photo(200_000))
        var another = photo(200_000)
        another[place] ^= 1
        try send(another, to: id)
        let next = try bench.attempt(id).request
        #expect(next.method == "HEAD" && next.url.hasSuffix("/a-1.jpg"))
    }

    @Test func `a longer file is another file`() throws {
        let id = try lostPut(photo(1_000))
        try send(photo(1_000) + Data("more".utf8), to: id)
        #expect(try bench.attempt(id).request.url.hasSuffix("/a-1.jpg"))
    }

    @Test func `blocks of a large file are compared at their places`() throws {
        let bytes = photo(1_500_000)
        let id = try lostPut(bytes)
        for _ in 0..<4 {
            let range = try #require(try bench.attempt(id).request.headers.first { $0.name == "Range" }?.value)
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            try #require(ends.count == 2)
            let field = HeaderField("Content-Range", "bytes \(ends[0])-\(ends[1])/\(bytes.count)")
            try send(bytes.subdata(in: ends[0]..<ends[1] + 1), to: id, status: 206, [field])
        }
        #expect(try proof(id) == .content)
    }

    @Test(arguments: [nil, 1_200_000]) func `a large file is compared completely without ranges`(_ changed: Int?) throws {
        let bytes = photo(1_500_000)
        var shown = bytes
        if let changed { shown[changed] ^= 1 }
        let id = try lostPut(bytes)
        try send(shown, to: id)
        #expect(try proof(id) == (changed == nil ? .digest : nil))
    }

    /// An earlier version of a file often has the same length, for example if a few pixels of an uncompressed image were changed.
    @Test(arguments: [nil, 400_000, 1_499_999]) func `a file that was there before is read completely`(_ changed: Int?) throws {
        let bytes = photo(1_500_000)
        var shown = bytes
        if let changed { shown[changed] ^= 1 }
        let id = try queue(bytes, to: "photos/")
        try bench.turn()
        try end(id, status: 200, [HeaderField("Content-Length", "1500000")])
        #expect(try bench.attempt(id).request.headers.allSatisfy { $0.name != "Range" })
        // An agent is killed while it reads the file back. The next agent also does not send the file again.
        try bench.startAgent()
        try bench.turn()
        try end(id, status: 200, [HeaderField("Content-Length", "1500000")])
        try send(shown, to: id)
        if changed == nil {
            #expect(try proof(id) == .digest)
        } else {
            let next = try bench.attempt(id).request
            #expect(next.method == "HEAD" && next.url.hasSuffix("/a-1.jpg"))
        }
    }

    @Test func `the body of an error response is not read`() throws {
        let id = try lostPut(photo(1_000))
        try send(Data("<html>".utf8), to: id, status: 403)
        #expect(try proof(id) == .length)
    }

    @Test func `a body that breaks off is requested again`() throws {
        let id = try lostPut(photo(1_000))
        let attempt = try bench.attempt(id)
        #expect(attempt.sink.receive(head: ResponseHead(status: 200, headers: [], url: attempt.request.url)))
        #expect(photo(500).withUnsafeBytes { attempt.sink.write($0) })
        try end(id, status: 200, [], .connectionLost)
        #expect(try bench.transfer(id).state == .waiting)
        try waitForNextAttempt(id)
        try send(photo(1_000), to: id)
        #expect(try proof(id) == .digest)
    }

    @Test func `an agent that starts looks at the file and reads it back`() throws {
        let id = try lostPut(photo(1_000))
        try bench.startAgent()
        try bench.turn()
        #expect(try bench.attempt(id).request.method == "HEAD")
        try end(id, status: 200, [HeaderField("Content-Length", "1000")])
        try send(photo(1_000), to: id)
        #expect(try proof(id) == .digest)
    }

    /// An earlier photo with this name was removed from the server, but the ledger still contains its receipt.
    @Test func `a file with the name of an earlier upload is read back after a lost response`() throws {
        let bytes = photo(1_000)
        for (shown, isOurs) in [(bytes, true), (photo(999) + Data("x".utf8), false)] {
            let folder = "photos-\(isOurs)/"
            let earlier = try queue(Data("earlier".utf8), to: folder)
            try bench.turn()
            try end(earlier, status: 404)
            try end(earlier, status: 201, sent: 7)
            try end(earlier, status: 200, [HeaderField("Content-Length", "7")])
            #expect(try proof(earlier) == .length)
            let id = try lostPut(bytes, to: folder)
            try send(shown, to: id)
            if isOurs {
                #expect(try proof(id) == .digest)
            } else {
                let next = try bench.attempt(id).request
                #expect(next.method == "HEAD" && next.url.hasSuffix("/a-1.jpg"))
            }
        }
    }
}
