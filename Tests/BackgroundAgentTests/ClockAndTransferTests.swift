@testable import BackgroundLedger
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests in which the clock is set while a transfer is running.
@Suite struct ClockAndTransferTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// Bytes that arrive after the clock was corrected do not count as bytes from the time of the wrong clock.
    @Test(arguments: [-8.0, -400, 8]) func `bytes that arrive together with a clock change are kept`(_ days: Double) throws {
        let id = try bench.download()
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(
            status: 200, headers: [HeaderField("ETag", "\"v1\""), HeaderField("Content-Length", "10")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        try bench.pass(5)
        try bench.stepUnseen(days * 86_400)
        #expect(Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        let broken = WireEnd(head: head, failure: .connectionLost, bytesSent: 0, bytesReceived: 5)
        try bench.hear(.timeChanged, .transport(.ended(attempt.id, broken)))
        let transfer = try bench.transfer(id)
        #expect(transfer.bytesDone == 5 && !transfer.state.isTerminal, "\(transfer.errorMessage ?? "")")
        #expect(abs(transfer.lastProgressAt.timeIntervalSince(bench.now)) < 60 && transfer.createdAt <= bench.now)
        try bench.pass(600)
        #expect(try bench.transfer(id).state == .running)
    }

    /// Breaks the connection of a download. Returns the seconds until the next attempt.
    private func brokenDownload() throws -> (id: Int64, pause: Double) {
        let id = try bench.download()
        try bench.turn()
        let attempt = try bench.attempt(id)
        let broken = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
        try bench.hear(.transport(.ended(attempt.id, broken)))
        return (id, try #require(try bench.transfer(id).nextAttemptAt).timeIntervalSince(bench.now))
    }

    @Test(arguments: [-60.0, -1_200, -7_200]) func `a clock that is set back does not prolong the pause of a transfer`(
        _ step: Double
    )
        throws
    {
        let (id, pause) = try brokenDownload()
        try bench.step(step)
        let rest = try #require(try bench.transfer(id).nextAttemptAt).timeIntervalSince(bench.now)
        #expect(abs(rest - pause) < 0.01)
    }

    @Test(arguments: [-60.0, -7_200, -39_600])
    func `a clock that is set back while no agent runs does not prolong the pause of a transfer`(_ step: Double) throws {
        let (id, pause) = try brokenDownload()
        try bench.stepUnseen(step)
        try bench.startAgent()
        try bench.pass(pause + 0.01)
        #expect(try bench.transfer(id).state == .running)
    }

    /// A clock change does not change the remaining time until a planned start.
    @Test func `a clock that is set back does not delay the planned start of a transfer`() throws {
        let id = try bench.download { $0.earliestBegin = bench.now + 3_600 }
        try bench.turn()
        try bench.step(-8 * 86_400)
        let transfer = try bench.transfer(id)
        #expect(transfer.earliestBegin == bench.now + 3_600)
    }
}
