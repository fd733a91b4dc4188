@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

/// Requests become launches, are watched, and end.
@Suite struct LaunchTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    // MARK: Launching

    @Test func aDueRequestIsLaunchedOnce() throws {
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

    @Test(arguments: [LaunchKind.appRefresh, .processing]) func conditionsHoldItBack(_ kind: LaunchKind) throws {
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.submit(kind: kind, network: true)
        // However late: three days.
        try bench.pass(3 * 86_400)
        #expect(bench.launcher.started.isEmpty)
        bench.conditions.set { $0.isNetworkAvailable = true }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(bench.launcher.started.count == 1)
    }

    @Test func aCrashIsMadeUpForWithABackoff() throws {
        try bench.settings { $0.backoffBase = 10 }
        try bench.submit()
        try bench.turn()
        var delays: [Double] = []
        for generation in 1...4 {
            let id = try bench.onlyLive()
            #expect(try bench.launch(id).generation == generation)
            try bench.end(id, nil, .signalled(11))
            #expect(try bench.launch(id).outcome == .crashed)
            #expect(try bench.launch(id).detail == "ended by signal 11")
            let ended = bench.now
            let wake = try #require(try bench.turn())
            delays.append(wake.timeIntervalSince(ended))
            try bench.pass(delays[generation - 1] - 0.001)
            #expect(try bench.live().isEmpty)
            try bench.pass(0.002)
        }
        #expect(delays == [10, 20, 40, 80])
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).reason == "relaunch after 4 without a result")
        try bench.end(id, .completed)
        #expect(try bench.request() == nil)
    }

    @Test func aProcessThatCannotStartIsTriedAgain() throws {
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
    func everyResultConsumes(_ result: LaunchOutcome) throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.end(id, result)
        #expect(try bench.launch(id).outcome == result)
        #expect(try bench.request() == nil)
        try bench.pass(86_400)
        #expect(bench.launcher.started == [id])
    }

    /// The process waits for transfers that it began, and ends by itself. The agent ends a process that does not.
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

    @Test func aCancelledRequestIsNotMadeUpFor() throws {
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
        try bench.ledger.write { try $0.noteTransfer(inLaunch: id) }
        try bench.end(id, nil, end)
        #expect(try bench.launch(id).outcome == .crashed)
        #expect(try (bench.request() == nil) == (end == .exited(0)))
        #expect(try bench.ledger.read { try $0.fact(.launchesWithTransfers) } == nil)
    }

    // MARK: Handlers that submit

    @Test func cancellingDoesNotStopWhatRuns() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { _ = try $0.deleteRequest("noon") }
        try bench.pass(10)
        #expect(bench.launcher.warned.isEmpty)
        try bench.end(id, .completed)
        #expect(try bench.launch(id).outcome == .completed)
    }

    @Test func aResubmittedRequestStands() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        let next = try bench.submit(after: 3_600)
        try bench.turn()
        #expect(try bench.live().count == 1, "not beside the one that runs")
        try bench.end(id, .completed)
        #expect(try bench.request() == next)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func aHandlerThatResubmitsAndThenCrashesIsMadeUpFor() throws {
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

    @Test func theSameWithAWallClockRule() throws {
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

    // MARK: Time runs out

    @Test func expiryWarnsThenKills() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.pass(29)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .expired, "committed before the poke")
        try bench.pass(4.9)
        #expect(bench.launcher.killed.isEmpty)
        try bench.pass(0.2)
        #expect(bench.launcher.killed == [id])
        try bench.end(id, nil, .signalled(9))
        #expect(try bench.launch(id).outcome == .killed)
        #expect(try bench.request()?.failures == 1, "not finishing earns a delay")
        #expect(try bench.request()?.backoffUntil != nil)
    }

    @Test func returningAfterTheWarningIsAResult() throws {
        try bench.submit()
        try bench.pass(30)
        let id = try bench.onlyLive()
        try bench.end(id, .expired)
        #expect(bench.launcher.killed.isEmpty)
        #expect(try bench.launch(id).outcome == .expired)
        #expect(try bench.request() == nil)
    }

    @Test func noExpiryWhileAPersonChooses() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { try $0.setPersonChoosing(true, launch: id) }
        try bench.pass(599)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned == [id], "the ceiling")
    }

    @Test func processingHasABudgetOfItsOwn() throws {
        try bench.submit(kind: .processing)
        try bench.pass(599)
        #expect(bench.launcher.warned.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.warned.count == 1)
    }

    @Test func aSetClockNeitherEndsNorProlongsABudget() throws {
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

    // MARK: Questions

    @Test func simulation() throws {
        try bench.submit(after: 86_400)
        func ask(_ verb: ControlRecord.Verb, _ argument: String) throws -> String? {
            let id = try bench.ledger.write { try $0.ask(verb, argument, now: bench.now) }
            try bench.turn()
            return try bench.ledger.read { try $0.answer(to: id) }
        }
        #expect(try ask(.simulateLaunch, "nobody")?.hasPrefix("error") == true)
        #expect(try ask(.simulateExpire, "noon")?.hasPrefix("error") == true)
        #expect(try ask(.simulateLaunch, "noon") == "launched noon")
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).simulated)
        #expect(try ask(.simulateLaunch, "noon")?.hasPrefix("error") == true, "never two")
        #expect(try ask(.simulateExpire, "noon") == "ended the time of noon")
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .simulated)
    }

    // MARK: Leaving

    @Test func anIdleAgentLeavesAfterItsLinger() throws {
        #expect(!bench.host.hasFinished)
        #expect(try bench.turn() == bench.now + Lifetime.linger)
        try bench.pass(Lifetime.linger - 0.1)
        #expect(!bench.host.hasFinished)
        try bench.pass(0.1)
        #expect(bench.host.hasFinished)
    }

    @Test func workKeepsItThere() throws {
        try bench.submit(after: 3_600)
        try bench.pass(1_000)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { try $0.deleteRequest("noon") }
        try bench.turn()
        try bench.pass(Lifetime.linger)
        #expect(bench.host.hasFinished)
    }

    @Test func quitWaitsForLaunches() throws {
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
        #expect(!bench.host.hasFinished, "it is not gone yet")
        try bench.pass(60)
        #expect(bench.launcher.started == [id], "nothing new is begun")
        try bench.end(id, nil, .signalled(9))
        #expect(bench.host.hasFinished)
        #expect(try bench.request("b") != nil, "what is queued stays")
    }

    /// A logout ends the agent and its launches; only `quit` means that nothing is wanted any more.
    @Test(arguments: [false, true]) func whatAHandlerAskedForOutlivesALogoutAndNoQuit(_ isQuit: Bool) throws {
        try bench.submit("a")
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.submit("next", after: 3_600, in: id)
        if isQuit {
            try bench.ledger.write { _ = try $0.ask(.quit, now: bench.now) }
            try bench.turn()
        } else {
            try bench.hear(.stopRequested)
        }
        try bench.end(id, .completed)
        #expect(bench.host.hasFinished)
        #expect(try (bench.request("next") == nil) == isQuit)
    }

    /// The agent was stopped by a signal, and the command that asked has ended.
    @Test func `work that came after an abandoned quit is wanted`() throws {
        func quit(_ asker: ProcessIdentity) throws -> String? {
            let question = try bench.ledger.write { try $0.ask(.quit, by: asker, now: bench.now) }
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

    @Test func quitByQuestionIsAnswered() throws {
        let question = try bench.ledger.write { try $0.ask(.quit, now: bench.now) }
        try bench.turn()
        #expect(bench.host.hasFinished)
        #expect(try bench.ledger.read { try $0.answer(to: question) } == "stopping")
    }
}
