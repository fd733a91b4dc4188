import Spool
@testable import BackgroundLedger
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of received bytes: which bytes of an interrupted response are kept, and which bytes count as progress. Also tests how
/// partial files are checked.
@Suite struct ReceivedBytesTests {
    private let bench: Bench
    private let tag = HeaderField("ETag", "\"v1\"")

    init() throws { bench = try Bench() }

    /// Delivers response headers and a part of a body of ten bytes. After that, the connection is lost, unless `losing` is
    /// `false`.
    private func cut(_ id: Int64, _ text: String, _ headers: [HeaderField], status: Int = 200, losing: Bool = true) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: status, headers: headers, url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes { attempt.sink.write($0) })
        let end = WireEnd(
            head: head, failure: losing ? .connectionLost : nil, bytesSent: 0, bytesReceived: Int64(bytes.count))
        try bench.hear(.transport(.ended(attempt.id, end)))
    }

    private func header(_ name: String, _ id: Int64) throws -> String? {
        try bench.attempt(id).request.headers.first { $0.name.lowercased() == name }?.value
    }

    /// Lets time pass until the next attempt.
    private func waitForNextAttempt(_ id: Int64) throws {
        let before = bench.transport.started.count
        let next = try #require(try bench.transfer(id).nextAttemptAt)
        try bench.pass(next.timeIntervalSince(bench.now))
        try #require(bench.transport.started.count == before + 1)
    }

    @Test func `a resumed response becomes one complete file`() throws {
        let id = try bench.download()
        try bench.turn()
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        try waitForNextAttempt(id)
        #expect(try header("range", id) == "bytes=5-")
        #expect(try header("if-range", id) == "\"v1\"")
        let rest = [tag, HeaderField("Content-Range", "bytes 5-9/10"), HeaderField("Content-Length", "5")]
        try cut(id, "later", rest, status: 206, losing: false)
        #expect(try bench.spooled(id) == "sunnylater")
        #expect(try bench.transfer(id).sha256 == FileDigest.sha256(of: Data("sunnylater".utf8)))
    }

    /// Bytes arrive before the server stops sending. These bytes are synced and recorded while the attempt is running. After a
    /// crash, the next agent does not request these bytes again.
    @Test func `bytes that arrived before a silent server are kept after an agent crash`() throws {
        bench.disk = DiskWorker()
        try bench.startAgent()
        let id = try bench.download()
        try bench.turn()
        let attempt = try bench.attempt(id)
        let headers = [tag, HeaderField("Content-Length", "10")]
        #expect(attempt.sink.receive(head: ResponseHead(status: 200, headers: headers, url: "")))
        #expect(Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        guard case .attemptMoved(let synced)? = bench.posted.next() else {
            Issue.record("no bytes were made durable")
            return
        }
        #expect(synced == attempt.id)
        try bench.hear(.attemptMoved(synced))
        #expect(try bench.transfer(id).partial?.durableBytes == 5)
        #expect(try bench.transfer(id).bytesDone == 5)
        try bench.startAgent()
        #expect(try header("range", id) == "bytes=5-")
    }

    /// A server cuts every response at the same byte. The agent retries with growing pauses, until the transfer fails.
    @Test func `bytes that must be fetched again do not count as progress`() throws {
        let id = try bench.download { $0.resourceTimeout = 7_200 }
        try bench.turn()
        var attempts = 0
        while try bench.transfer(id).state != .failed {
            try #require(attempts < 200, "asked without end")
            if try bench.transfer(id).state == .running {
                attempts += 1
                try cut(id, "sunny", [HeaderField("Content-Length", "10")])
            }
            try bench.pass(60)
        }
        #expect(try bench.transfer(id).errorCode == URLError.Code.timedOut.rawValue)
        #expect(attempts < 60, "\(attempts) attempts in two hours")
        #expect(attempts > 5)
    }

    @Test func `bytes that are kept count as progress`() throws {
        let id = try bench.download { $0.resourceTimeout = 100 }
        try bench.turn()
        try bench.pass(90)
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        #expect(try bench.transfer(id).fruitlessAttempts == 0)
        try bench.pass(60)
        #expect(try bench.transfer(id).state != .failed, "patience starts anew")
    }

    // MARK: A new version

    private var spool: URL { bench.ledger.directories.spool }
    private func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: spool.path).sorted() }

    /// Starts a response that contains a complete new version of the file instead of the remaining bytes.
    private func begin(newVersion text: String, _ id: Int64) throws -> (FakeTransport.Attempt, ResponseHead) {
        let attempt = try bench.attempt(id)
        let headers = [HeaderField("ETag", "\"v2\""), HeaderField("Content-Length", "\(text.utf8.count)")]
        let head = ResponseHead(status: 200, headers: headers, url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array(text.utf8).withUnsafeBytes { attempt.sink.write($0) })
        return (attempt, head)
    }

    /// The ledger still describes the old version of the file. The old bytes are kept, and are not mixed with bytes of the new
    /// version.
    @Test func `an agent crash while a new version starts keeps the old part`() throws {
        let id = try bench.download()
        try bench.turn()
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        try waitForNextAttempt(id)
        _ = try begin(newVersion: "windwind", id)
        try bench.startAgent()
        #expect(try header("range", id) == "bytes=5-")
        #expect(try header("if-range", id) == "\"v1\"")
        let rest = [tag, HeaderField("Content-Range", "bytes 5-9/10"), HeaderField("Content-Length", "5")]
        try cut(id, "later", rest, status: 206, losing: false)
        #expect(try bench.spooled(id) == "sunnylater")
        #expect(try files() == [try #require(try bench.transfer(id).file)], "the other partial file was removed")
    }

    @Test func `a new version replaces the old part`() throws {
        let id = try bench.download()
        try bench.turn()
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        try waitForNextAttempt(id)
        let (attempt, head) = try begin(newVersion: "wind", id)
        try bench.hear(.transport(.progress(attempt.id, sent: 0, received: 4)))
        #expect(try bench.transfer(id).partial?.validator?.ifRange == "\"v2\"")
        #expect(try files() == [try #require(try bench.transfer(id).partFile(in: spool)).lastPathComponent])
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 4))))
        #expect(try bench.spooled(id) == "wind")
        #expect(try files().count == 1)
    }

    // MARK: Large files

    /// Ends a download whose bytes the disk worker still has to hash. The event loop continues during the hashing.
    private func endLarge(_ id: Int64) throws -> AgentEvent {
        // If `waitedFor` is negative, the agent never waits for a hash.
        bench.disk = DiskWorker(waitedFor: -1)
        try bench.startAgent()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(
            status: 200, headers: [tag, HeaderField("Content-Length", "5")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5))))
        while let event = bench.posted.next() {
            if case .attemptFinished = event { return event }
            try bench.hear(event)
        }
        throw CancellationError()
    }

    @Test func `a large file is complete after it is hashed`() throws {
        let id = try bench.download()
        let settled = try endLarge(id)
        #expect(try bench.transfer(id).state == .running)
        try bench.hear(settled)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try bench.transfer(id).sha256 == FileDigest.sha256(of: Data("sunny".utf8)))
        #expect(try files().count == 1)
    }

    @Test func `a large file that is paused while it is hashed keeps all its bytes`() throws {
        let id = try bench.download()
        let settled = try endLarge(id)
        try bench.change(id) { _ = $0.handle(.paused) }
        try bench.turn()
        try bench.hear(settled)
        #expect(try bench.transfer(id).state == .paused)
        #expect(try bench.transfer(id).partial?.durableBytes == 5)
        #expect(try files() == [try #require(try bench.transfer(id).partFile(in: spool)).lastPathComponent])
    }

    // MARK: Part files that differ from the ledger

    @Test(arguments: ["removed", "shorter", "a link"])
    func `a part that is missing, shorter or a link is fetched from the start`(_ fate: String) throws {
        let id = try bench.download()
        try bench.turn()
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        switch fate {
        case "removed": try FileManager.default.removeItem(at: part)
        case "shorter": try Data("sun".utf8).write(to: part)
        default:
            let elsewhere = bench.folder.appendingPathComponent("elsewhere")
            try Data("private".utf8).write(to: elsewhere)
            try FileManager.default.removeItem(at: part)
            try FileManager.default.createSymbolicLink(at: part, withDestinationURL: elsewhere)
        }
        try waitForNextAttempt(id)
        #expect(try header("range", id) == nil)
        if fate == "a link" { try FileManager.default.removeItem(at: part) }
        try cut(id, "sunnylater", [tag, HeaderField("Content-Length", "10")], losing: false)
        #expect(try bench.spooled(id) == "sunnylater")
    }

    /// The partial file was removed after the attempt had requested the remaining bytes.
    @Test func `the rest of a part that was removed is not written`() throws {
        let id = try bench.download()
        try bench.turn()
        try cut(id, "sunny", [tag, HeaderField("Content-Length", "10")])
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try waitForNextAttempt(id)
        #expect(try header("range", id) == "bytes=5-")
        try FileManager.default.removeItem(at: part)
        let attempt = try bench.attempt(id)
        let rest = [tag, HeaderField("Content-Range", "bytes 5-9/10"), HeaderField("Content-Length", "5")]
        let head = ResponseHead(status: 206, headers: rest, url: attempt.request.url)
        #expect(!attempt.sink.receive(head: head), "no bytes may be added to a missing file")
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: .stoppedByOwner, bytesSent: 0, bytesReceived: 0))))
        #expect(try bench.transfer(id).state != .completed)
        #expect(!FileManager.default.fileExists(atPath: part.path))
    }

    /// If response headers of a stopped attempt arrive late, they change neither the ledger nor the file of the next attempt.
    @Test func `late response headers of a stopped attempt are refused`() throws {
        let id = try bench.download()
        try bench.turn()
        let late = try bench.attempt(id)
        try bench.change(id) { $0.state = .paused }
        try bench.turn()
        #expect(bench.transport.cancelled == [late.id])
        let head = ResponseHead(status: 200, headers: [HeaderField("Content-Length", "10")], url: late.request.url)
        try bench.change(id) { $0.state = .queued }
        try bench.turn()
        #expect(try bench.attempt(id).id != late.id)
        #expect(!late.sink.receive(head: head))
        #expect(try bench.transfer(id).bytesTotal == nil)
    }
}
