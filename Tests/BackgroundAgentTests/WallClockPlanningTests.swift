@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundAgent

/// Tests of rules in local time: missed occurrences, moved occurrences, and clocks that are set back.
@Suite struct WallClockPlanningTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func serveNoon() throws {
        try bench.submit(daily: true)
        try bench.pass(2 * 3600)
        try bench.end(bench.onlyLive(), .completed)
    }

    @Test func `a daily request runs every day at noon`() throws {
        try bench.submit(daily: true)
        for day in 0..<5 {
            try bench.pass(day == 0 ? 2 * 3600 : 86_400)
            #expect(bench.launcher.started.count == day + 1)
            try bench.end(bench.onlyLive(), .completed)
        }
        let served = try bench.history().compactMap(\.servedOccurrence)
        #expect(served == (try (10...14).map { try bench.instant("2025-06-\($0)T10:00:00Z") }))
    }

    @Test func `missed occurrences run once with the policy once`() throws {
        try bench.submit(daily: true, missed: .once)
        try bench.turn()
        try bench.step(3 * 86_400)
        let id = try bench.onlyLive()
        try bench.end(id, .completed)
        #expect(bench.launcher.started == [id], "one launch replaces all missed occurrences")
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-13T10:00:00Z"))
    }

    @Test func `missed occurrences are recorded as skipped with the policy skip`() throws {
        try bench.submit(daily: true, missed: .skip)
        try bench.turn()
        try bench.step(3 * 86_400)
        #expect(bench.launcher.started.isEmpty)
        #expect(try bench.history().map(\.outcome) == [.skipped])
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-13T10:00:00Z"))
        try bench.pass(2 * 3600)
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `occurrences during a sleep run once on waking with the policy once`() throws {
        try bench.submit(daily: true, missed: .once)
        try bench.turn()
        try bench.suspend(3 * 86_400 + 7_300)
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).woke == WakeCause.resumed.rawValue || bench.launch(id).woke == WakeCause.time.rawValue)
        try bench.end(id, .completed)
        try bench.pass(60)
        #expect(bench.launcher.started == [id])
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-14T10:00:00Z"))
    }

    @Test func `occurrences during a sleep are skipped with the policy skip`() throws {
        try bench.submit(daily: true, missed: .skip)
        try bench.turn()
        try bench.suspend(3 * 86_400 + 7_300)
        #expect(bench.launcher.started.isEmpty)
        #expect(try bench.history().map(\.outcome) == [.skipped])
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-14T10:00:00Z"))
    }

    @Test(arguments: [86_400.0, -86_400.0]) func `a clock change of one day does not lose an occurrence`(_ step: Double) throws {
        try serveNoon()
        try bench.step(step)
        // If the clock was set forward over noon, the daily check for the skipped noon runs once, late. If the clock was set
        // back, the daily check for this noon had already run.
        #expect(bench.launcher.started.count == (step > 0 ? 2 : 1))
        if step > 0 { try bench.end(bench.onlyLive(), .completed) }
        let next = try #require(try bench.request()?.occurrence)
        #expect(next > bench.now)
        #expect(try next == bench.instant(step > 0 ? "2025-06-12T10:00:00Z" : "2025-06-10T10:00:00Z"))
    }

    /// The occurrence is late although an agent was running all the time. `why` shows the condition that delays the occurrence.
    @Test func `an occurrence that waits for a condition is not missed`() throws {
        bench.conditions.set {
            $0.isLowPowerMode = true
            $0.isOnExternalPower = false
        }
        try bench.hear(.conditions(bench.conditions.current))
        try bench.submit(daily: true, missed: .skip)
        try bench.pass(5 * 3600)
        #expect(try bench.history().isEmpty)
        bench.conditions.set { $0.isLowPowerMode = false }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(try bench.launch(bench.onlyLive()).servedOccurrence == bench.instant("2025-06-10T10:00:00Z"))
    }

    @Test func `an occurrence whose launch still runs is not missed`() throws {
        try bench.settings { $0.refreshBudget = 7_200 }
        try bench.submit(daily: true, missed: .skip)
        try bench.pass(2 * 3600)
        let id = try bench.onlyLive()
        try bench.pass(1_800)
        try bench.hear(.timeChanged)
        #expect(try bench.history().map(\.id) == [id])
        try bench.end(id, nil, .signalled(9))
        try bench.pass(60)
        #expect(try bench.launch(bench.onlyLive()).generation == 2, "today's launch is repeated")
    }

    @Test func `an occurrence that is less than ten minutes late is not missed`() throws {
        try bench.submit(daily: true, missed: .skip)
        try bench.turn()
        try bench.step(2 * 3600 + 599)
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `a crashed launch is repeated with the policy skip`() throws {
        try bench.settings { $0.backoffBase = 3_600 }
        try bench.submit(daily: true, missed: .skip)
        try bench.pass(2 * 3600)
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a change of the time zone moves the next occurrence`() throws {
        try bench.submit(daily: true)
        try bench.turn()
        bench.zone = try #require(TimeZone(identifier: "America/New_York"))
        try bench.hear(.timeChanged)
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-10T16:00:00Z"))
        try bench.pass(2 * 3600)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(6 * 3600)
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `a new agent in another time zone moves the next occurrence`() throws {
        try bench.submit(daily: true)
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.startAgent()
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-11T03:00:00Z"))
    }

    @Test func `the spread delays every occurrence`() throws {
        try bench.submit(daily: true, spread: 90)
        try bench.pass(2 * 3600 + 89)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(1)
        try bench.end(bench.onlyLive(), .completed)
        #expect(try bench.request()?.earliestBegin == bench.instant("2025-06-11T10:01:30Z"))
    }

    @Test(arguments: [-60.0, -3_600.0, -10_800.0, -36_000.0])
    func `a clock that is set back does not run an occurrence twice`(_ seconds: Double) throws {
        try serveNoon()
        try bench.step(seconds)
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-11T10:00:00Z"))
        try bench.pass(-seconds + 3_600)
        #expect(bench.launcher.started.count == 1)
    }

    /// The clock was ahead by a day or a year, and is corrected. The daily check for the next noon runs, started by the same
    /// agent or by a new agent.
    @Test(arguments: [86_400.0, 259_200, 31_536_000], [false, true])
    func `a clock that was ahead does not lose an occurrence`(_ seconds: Double, _ hasNewAgent: Bool) throws {
        // At 10:00 the clock becomes wrong, so the daily check runs for the noon of a wrong day.
        try bench.submit(daily: true)
        try bench.step(seconds)
        try bench.pass(2 * 3600)
        let first = bench.launcher.started.count
        #expect(first >= 1)
        while let live = try bench.ledger.read({ try $0.liveLaunches().first?.id }) {
            try bench.end(live, .completed)
            try bench.turn()
        }
        // The clock is corrected in the night before the next noon.
        try bench.pass(15 * 3600)
        try bench.step(-seconds)
        if hasNewAgent { try bench.startAgent() }
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-11T10:00:00Z"))
        let before = bench.launcher.started.count
        try bench.pass(9 * 3600)
        #expect(bench.launcher.started.count == before + 1)
    }

    /// No agent was running when the clock was corrected.
    @Test func `a clock that is corrected while no agent runs does not lose an occurrence`() throws {
        try bench.submit(daily: true)
        try bench.step(365 * 86_400)
        try bench.pass(2 * 3600)
        while let live = try bench.ledger.read({ try $0.liveLaunches().first?.id }) {
            try bench.end(live, .completed)
            try bench.turn()
        }
        try bench.stepUnseen(-365 * 86_400)
        try bench.startAgent()
        #expect(try bench.request()?.occurrence == bench.instant("2025-06-11T10:00:00Z"))
    }

    @Test func `a request that was submitted with a clock ahead starts after its delay`() throws {
        try bench.step(365 * 86_400)
        try bench.submit(after: 3_600)
        try bench.turn()
        try bench.step(-365 * 86_400)
        try bench.pass(3_599)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(2)
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `a new agent after a clock change does not run an occurrence twice`() throws {
        try serveNoon()
        try bench.step(-3_600)
        try bench.startAgent()
        try bench.pass(2 * 3_600)
        #expect(bench.launcher.started.count == 1)
    }

    /// The launch for the noon crashed. The launch has to be repeated, even if the clock is set back first.
    @Test func `a clock that is set back before the retry does not lose the occurrence`() throws {
        try bench.submit(daily: true)
        try bench.pass(2 * 3600)
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        try bench.step(-600)
        try bench.pass(1_200)
        #expect(bench.launcher.started.count == 2)
        #expect(try bench.launch(bench.onlyLive()).servedOccurrence == bench.instant("2025-06-10T10:00:00Z"))
    }

    /// The delay is stored as a number of seconds, and not as a date. A clock change does not prolong the delay.
    @Test(arguments: [-60.0, -3_600, -604_800, -31_536_000] as [Double])
    func `a clock that is set back does not prolong a delay`(_ step: Double)
        throws
    {
        try bench.submit()
        try bench.turn()
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        try bench.step(step)
        try bench.pass(4.9)
        #expect(bench.launcher.started.count == 1)
        try bench.pass(0.1)
        #expect(bench.launcher.started.count == 2)
    }
}
