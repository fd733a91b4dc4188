@testable import BackgroundLedger
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests the removal of data that cancelled uploads left on servers.
@Suite struct LeftoverTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// The requests that remove data.
    private var removals: [FakeTransport.Attempt] { bench.transport.started.filter { $0.request.method == "DELETE" } }

    private func end(_ attempt: FakeTransport.Attempt, _ status: Int?, _ headers: [HeaderField] = []) throws {
        let head = status.map { ResponseHead(status: $0, headers: headers, url: attempt.request.url) }
        let failure: WireFailure? = status == nil ? .couldNotConnect : nil
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: failure, bytesSent: 0, bytesReceived: 0))))
    }

    /// Cancels an upload whose temporary file may be on the server.
    private func cancelUpload() throws {
        let id = try bench.upload(.webdav)
        try end(bench.attempt(id), 404)
        try end(bench.attempt(id), nil)
        let now = bench.now
        try bench.ledger.write { try $0.handle(.cancelled(message: "", now: now), transfer: id, now: now) }
        try bench.turn()
    }

    @Test func `a server out of reach is cleaned when it is back, also by a later agent`() throws {
        try cancelUpload()
        let first = try #require(removals.last)
        #expect(first.request.url.hasSuffix(".t.part"))
        try end(first, nil)
        #expect(removals.count == 1)
        try bench.pass(61)
        #expect(removals.count == 2)
        try end(try #require(removals.last), 503)
        try bench.startAgent()
        try bench.pass(3_600)
        try end(try #require(removals.last), 204)
        let count = removals.count
        try bench.pass(40 * 86_400)
        #expect(removals.count == count && count > 0)
        #expect(try bench.ledger.read { try !$0.hasLeftovers() })
    }

    @Test func `a change of the network sends the request again`() throws {
        try cancelUpload()
        try end(try #require(removals.last), nil)
        try bench.hear(.conditions(bench.conditions.current))
        #expect(removals.count == 2)
    }

    @Test(arguments: [(404, false), (403, false), (405, false), (401, true), (500, true), (423, true)])
    func `the response decides whether the request is sent again`(_ status: Int, _ isRepeated: Bool) throws {
        try cancelUpload()
        try end(try #require(removals.last), status)
        #expect(try bench.ledger.read { try $0.hasLeftovers() } == isRepeated)
    }

    @Test func `a page of a captive portal does not show that the data was removed`() throws {
        let page = ResponseHead(status: 200, headers: [HeaderField("Content-Type", "text/html")], url: "http://h/x")
        #expect(!ServerRemoval.isOver(WireEnd(head: page, failure: nil, bytesSent: 0, bytesReceived: 0)))
    }

    @Test func `the request ends after a month, and a clock that is set back does not delay it`() throws {
        try cancelUpload()
        try end(try #require(removals.last), nil)
        try bench.step(-10 * 86_400)
        try bench.pass(6 * 3_600)
        #expect(removals.count > 1)
        try bench.pass(60 * 86_400)
        #expect(try bench.ledger.read { try !$0.hasLeftovers() })
    }
}
