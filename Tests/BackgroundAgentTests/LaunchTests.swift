@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

/// Tests of launches. A request becomes a launch, and the agent watches the launch until it ends.
@Suite struct LaunchTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    // MARK: Launching

    @Test func `a due request is launched once`() throws {
        try bench.submit(after: 60)
        #expect(try bench.turn() == bench.now + 60)
        try bench.pass(59)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.started.count == 1)
        for _ in 0..<5 { try bench.turn() }
        #expect(bench.launcher.started.count == 1)
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).reason == "due")
        #expect(try bench.launch(id).generation == 1)
        #expect(try bench.launch(id).pid != nil)
        try bench.end(id, .completed)
        #expect(try bench.launch(id).outcome == .completed)
        #expect(try bench.request() == nil, "consumed")
        #expect(bench.launcher.forgotten == [id])
    }

    @Test(arguments: [LaunchKind.appRefresh, .processing])
    func `a request waits for the network without a time limit`(_ kind: LaunchKind) throws {
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.submit(kind: kind, network: true)
        // The request still waits after three days.
        try bench.pass(3 * 86_400)
        #expect(bench.launcher.started.isEmpty)
        bench.conditions.set { $0.isNetworkAvailable = true }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `a crashed launch is repeated with growing pauses`() throws {
        try bench.settings { $0.backoffBase = 10 }
        try bench.submit()
        try bench.turn()
        var delays: [Double] = []
        for generation in 1...4 {
            let id = try bench.onlyLive()
            #expect(try bench.launch(id).generation == generation)
            try bench.end(id, nil, .signalled(11))
            #expect(try bench.launch(id).outcome == .crashed)
            #expect(try bench.launch(id).detail == "the process was ended by signal 11")
            let ended = bench.now
            let wake = try #require(try bench.turn())
            delays.append(wake.timeIntervalSince(ended))
            try bench.pass(delays[generation - 1] - 0.001)
            #expect(try bench.live().isEmpty)
            try bench.pass(0.002)
        }
        #expect(delays == [10, 20, 40, 80])
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).reason == "relaunch after 4 launches without a result")
        try bench.end(id, .completed)
        #expect(try bench.request() == nil)
    }

    @Test func `a launch whose process cannot start is repeated`() throws {
        bench.launcher.refuses = true
        try bench.submit()
        try bench.turn()
        #expect(try bench.live().isEmpty)
        #expect(try bench.history().map(\.outcome) == [.crashed])
        #expect(try bench.request()?.backoffUntil == bench.now + 5)
        bench.launcher.refuses = false
        try bench.pass(5)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
    }

    @Test(arguments: [LaunchOutcome.completed, .failed, .expired])
    func `every result consumes the request`(_ result: LaunchOutcome) throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.end(id, result)
        #expect(try bench.launch(id).outcome == result)
        #expect(try bench.request() == nil)
        try bench.pass(86_400)
        #expect(bench.launcher.started == [id])
    }

    /// The process waits for transfers that it started, and then exits by itself. If the process does not exit, the agent ends
    /// it.
    @Test func `a launch with a result may live beyond its budget`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.pass(20)
        try bench.ledger.write { try $0.setResult(.completed, detail: nil, ofLaunch: id) }
        try bench.turn()
        try bench.pass(34)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(2)
        #expect(bench.launcher.warned == [id])
        try bench.end(id)
        #expect(try bench.launch(id).outcome == .completed)
        #expect(try bench.request() == nil)
    }

    @Test func `a cancelled request is not repeated after a crash`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { try $0.deleteRequest("noon") }
        try bench.end(id, nil, .signalled(9))
        try bench.pass(86_400)
        #expect(bench.launcher.started == [id])
    }

    @Test(arguments: [ProcessEnd.exited(0), .signalled(11)])
    func `a launch that began transfers and exits with 0 is not repeated`(_ end: ProcessEnd) throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { try $0.recordTransfer(inLaunch: id) }
        try bench.end(id, nil, end)
        #expect(try bench.launch(id).outcome == .crashed)
        #expect(try (bench.request() == nil) == (end == .exited(0)))
        #expect(try bench.ledger.read { try $0.fact(.launchesWithTransfers) } == nil)
    }

    // MARK: Handlers that submit requests

    @Test func `cancelling a request does not stop its running launch`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { _ = try $0.deleteRequest("noon") }
        try bench.pass(10)
        #expect(bench.launcher.warned.isEmpty)
        try bench.end(id, .completed)
        #expect(try bench.launch(id).outcome == .completed)
    }

    @Test func `a request that is submitted again during its launch is kept`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        let next = try bench.submit(after: 3_600)
        try bench.turn()
        #expect(try bench.live().count == 1, "no second launch begins beside the running launch")
        try bench.end(id, .completed)
        #expect(try bench.request() == next)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a handler that submits again and then crashes is launched again`() throws {
        try bench.submit()
        try bench.turn()
        let tomorrow = bench.now + 86_400
        try bench.submit(after: 86_400)
        try bench.end(bench.onlyLive(), nil, .signalled(6))
        try bench.pass(5)
        let second = try bench.onlyLive()
        #expect(try bench.launch(second).generation == 2)
        try bench.end(second, .completed)
        #expect(try bench.request()?.earliestBegin == tomorrow, "and tomorrow stands")
        #expect(try bench.request()?.failures == 0)
        try bench.pass(86_000)
        #expect(bench.launcher.started.count == 2)
        try bench.pass(500)
        #expect(bench.launcher.started.count == 3)
    }

    @Test func `a daily handler that submits again and then crashes is launched again for the same day`() throws {
        try bench.submit(daily: true)
        try bench.pass(2 * 3600)
        let noon = try bench.instant("2025-06-10T10:00:00Z")
        let first = try bench.onlyLive()
        #expect(try bench.launch(first).servedOccurrence == noon)
        try bench.submit(daily: true, in: first)
        try bench.end(first, nil, .signalled(6))
        try bench.pass(5)
        let second = try bench.onlyLive()
        #expect(try bench.launch(second).servedOccurrence == noon, "today's, again")
        try bench.end(second, .completed)
        #expect(try bench.request()?.occurrence == noon + 86_400)
        try bench.pass(86_400 - 10)
        #expect(bench.launcher.started.count == 2)
    }

    // MARK: Expiry

    @Test func `an expired launch is warned and then killed`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.pass(29)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .expired, "the stop reason is committed before the process is warned")
        try bench.pass(4.9)
        #expect(bench.launcher.killed.isEmpty)
        try bench.pass(0.2)
        #expect(bench.launcher.killed == [id])
        try bench.end(id, nil, .signalled(9))
        #expect(try bench.launch(id).outcome == .killed)
        #expect(try bench.request()?.failures == 1, "a killed launch counts as a failure")
        #expect(try bench.request()?.backoffUntil != nil)
    }

    @Test func `a launch that returns after the warning has a result`() throws {
        try bench.submit()
        try bench.pass(30)
        let id = try bench.onlyLive()
        try bench.end(id, .expired)
        #expect(bench.launcher.killed.isEmpty)
        #expect(try bench.launch(id).outcome == .expired)
        #expect(try bench.request() == nil)
    }

    @Test func `a launch does not expire for up to 10 minutes while the user chooses`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { try $0.setPersonChoosing(true, launch: id) }
        try bench.pass(599)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned == [id], "the ceiling")
    }

    @Test func `processing has a budget of 10 minutes`() throws {
        try bench.submit(kind: .processing)
        try bench.pass(599)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned.count == 1)
    }

    @Test func `a clock change neither ends nor prolongs a budget`() throws {
        try bench.submit()
        try bench.turn()
        try bench.pass(10)
        try bench.step(3_600)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(10)
        try bench.step(-7_200)
        try bench.pass(9)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned.count == 1)
    }

    // MARK: Commands

    @Test func `a request can be launched and expired by a simulation`() throws {
        try bench.submit(after: 86_400)
        func ask(_ verb: ControlRecord.Verb, _ argument: String) throws -> String? {
            let id = try bench.ledger.write { try $0.addControl(verb, argument, now: bench.now) }
            try bench.turn()
            return try bench.ledger.read { try $0.answer(to: id) }
        }
        #expect(try ask(.simulateLaunch, "nobody")?.hasPrefix("error") == true)
        #expect(try ask(.simulateExpire, "noon")?.hasPrefix("error") == true)
        #expect(try ask(.simulateLaunch, "noon") == "launched noon")
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).simulated)
        #expect(try ask(.simulateLaunch, "noon")?.hasPrefix("error") == true, "never two")
        #expect(try ask(.simulateExpire, "noon") == "the app was warned that the launch of noon must end")
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .simulated)
    }

    // MARK: Exit

    @Test func `an idle agent exits after its linger time`() throws {
        #expect(!bench.host.hasFinished)
        #expect(try bench.turn() == bench.now + Lifetime.linger)
        try bench.pass(Lifetime.linger - 0.1)
        #expect(!bench.host.hasFinished)
        try bench.pass(0.1)
        #expect(bench.host.hasFinished)
    }

    @Test func `an agent with a pending request does not exit`() throws {
        try bench.submit(after: 3_600)
        try bench.pass(1_000)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { try $0.deleteRequest("noon") }
        try bench.turn()
        try bench.pass(Lifetime.linger)
        #expect(bench.host.hasFinished)
    }

    @Test func `an agent that stops waits for its launches`() throws {
        try bench.submit("a")
        try bench.submit("b", after: 10, kind: .processing)
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.hear(.stopRequested)
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .quit)
        #expect(!bench.host.hasFinished)
        try bench.pass(4.9)
        #expect(bench.launcher.killed.isEmpty)
        try bench.pass(0.2)
        #expect(bench.launcher.killed == [id])
        #expect(!bench.host.hasFinished, "the process of the launch has not ended yet")
        try bench.pass(60)
        #expect(bench.launcher.started == [id], "the agent starts no new launch")
        try bench.end(id, nil, .signalled(9))
        #expect(bench.host.hasFinished)
        #expect(try bench.request("b") != nil, "the queued request is kept")
    }

    /// A logout ends the agent and its launches, but the requests stay in the ledger. The command `quit` also removes the requests.
    @Test(arguments: [false, true])
    func `a request of a handler is kept after a logout and removed by quit`(_ isQuit: Bool) throws {
        try bench.submit("a")
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.submit("next", after: 3_600, in: id)
        if isQuit {
            try bench.ledger.write { _ = try $0.addControl(.quit, now: bench.now) }
            try bench.turn()
        } else {
            try bench.hear(.stopRequested)
        }
        try bench.end(id, .completed)
        #expect(bench.host.hasFinished)
        #expect(try (bench.request("next") == nil) == isQuit)
    }

    /// The agent was stopped by a signal, and the process of the command `quit` has also ended.
    @Test func `an abandoned quit does not stop an agent with work`() throws {
        func quit(_ asker: ProcessIdentity) throws -> String? {
            let question = try bench.ledger.write { try $0.addControl(.quit, by: asker, now: bench.now) }
            try bench.turn()
            return try bench.ledger.read { try $0.answer(to: question) }
        }
        let ended = ProcessIdentity(pid: .max, start: 1)
        try bench.submit("a", after: 3_600)
        #expect(try quit(ended)?.hasPrefix("error") == true)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { try $0.deleteRequest("a") }
        #expect(try quit(ended) == "stopping")
        #expect(bench.host.hasFinished)
    }

    @Test func `the quit command stops the agent and gets a reply`() throws {
        let question = try bench.ledger.write { try $0.addControl(.quit, now: bench.now) }
        try bench.turn()
        #expect(bench.host.hasFinished)
        #expect(try bench.ledger.read { try $0.answer(to: question) } == "stopping")
    }
}
