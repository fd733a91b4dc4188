import ProcessSupport
@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of deliveries: the agent launches the app for ended transfers.
@Suite struct DeliveryTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `transfers that end shortly after each other share one launch`() throws {
        let ids = try ["a", "b", "c"].map { try bench.download($0) }
        try bench.turn()
        try bench.answer(ids[0])
        #expect(bench.launcher.started.isEmpty, "the agent waits, because other downloads may finish soon")
        try bench.pass(2)
        try bench.answer(ids[1])
        try bench.pass(2.9)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(0.1)
        #expect(bench.launcher.started.count == 1, "the stalled third download does not delay the delivery")
        #expect(try bench.ledger.read { try $0.undeliveredEvents() }.count == 2)
    }

    /// The next transfer starts in the same run of the agent's loop in which the previous transfer ended. Between the two
    /// transfers, no transfer is running, but the app must not be launched yet.
    @Test func `the delivery waits for a transfer that starts when another one ends`() throws {
        let ids = try ["a", "b", "c"].map { try bench.download($0) { $0.hostLimit = 1 } }
        try bench.turn()
        for id in ids.dropLast() {
            try bench.answer(id)
            #expect(bench.launcher.started.isEmpty)
        }
        try bench.answer(ids[2])
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `the end of the last transfer launches the app at once`() throws {
        let ids = try ["a", "b"].map { try bench.download($0) }
        try bench.turn()
        try bench.answer(ids[0])
        try bench.answer(ids[1])
        #expect(bench.launcher.started.count == 1)
    }

    /// Ends one transfer of each of two sessions. The transfer that ends first belongs to the session whose name is last in
    /// alphabetical order.
    private func endTransfersOfTwoSessions() throws {
        let ids = [try bench.download("a", session: "two"), try bench.download("b", session: "one")]
        try bench.turn()
        try bench.answer(ids[0])
        try bench.pass(1)
        try bench.answer(ids[1])
    }

    @Test func `sessions are launched one after the other, the oldest event first`() throws {
        try endTransfersOfTwoSessions()
        #expect(try bench.live().map(\.identifier) == ["two"])
        try bench.end(bench.onlyLive(), .completed)
        #expect(try bench.live().map(\.identifier) == ["one"])
    }

    @Test func `a launch that does not end delays the launch of another session for a limited time`() throws {
        try endTransfersOfTwoSessions()
        let settings = AgentSettings()
        let turn = settings.refreshBudget + settings.grace + settings.continuation
        try bench.pass(turn - 2)
        #expect(try bench.live().map(\.identifier) == ["two"])
        try bench.pass(2)
        #expect(Set(try bench.live().map(\.identifier)) == ["one", "two"])
    }

    @Test func `a session whose launches fail does not delay another session`() throws {
        try endTransfersOfTwoSessions()
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        #expect(try bench.live().map(\.identifier) == ["one"])
    }

    @Test func `a failed delivery is repeated with growing pauses and loses no event`() throws {
        try bench.settings { $0.backoffBase = 10 }
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        var gaps: [Double] = []
        for generation in 1...4 {
            let launch = try bench.onlyLive()
            #expect(try bench.launch(launch).generation == generation)
            let outcomes: [LaunchOutcome?] = [nil, .failed, .expired, nil]
            try bench.end(launch, outcomes[generation - 1], .signalled(9))
            let ended = bench.now
            gaps.append(try #require(try bench.turn()).timeIntervalSince(ended))
            #expect(try pause() == .failed(launches: generation, until: ended + gaps[generation - 1]))
            try bench.pass(gaps[generation - 1])
        }
        #expect(gaps == [10, 20, 40, 80])
        #expect(try pause() == nil)
        #expect(try bench.ledger.read { try $0.undeliveredEvents() }.count == 1)
        try bench.deliver()
        try bench.end(bench.onlyLive(), .completed)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 5)
    }

    /// The pause ends early, because the user may have corrected the configuration.
    @Test func `a change of a watched file ends the pause after failed launches`() throws {
        try bench.settings { $0.backoffBase = 1_000 }
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        for _ in 0..<2 {
            try bench.end(bench.onlyLive(), nil, .signalled(9))
            try bench.pass(1)
            #expect(try bench.live().isEmpty)
            try bench.hear(.filesChanged)
        }
        // The next failure counts as the third failure.
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        #expect(try pause() == .failed(launches: 3, until: bench.now + 4_000))
    }

    /// Returns the pause that `why` shows.
    private func pause() throws -> DeliveryHistory.Pause? {
        try bench.ledger.read { transaction in
            let oldest = try #require(try transaction.waitingSessions().first?.oldest)
            let settings = try transaction.fact(.settings) ?? AgentSettings()
            return try transaction.deliveryHistory(.urlSession, "isStormy", since: oldest, settings: settings, now: bench.now)
                .pause
        }
    }

    /// The agent died after it had committed the launch, and before it started the process. The death of the agent does not count
    /// as a failure of the app.
    @Test func `a launch that never began is repeated without a pause`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        for generation in 1...3 {
            let launch = try #require(try bench.live().first)
            #expect(launch.generation == generation)
            try bench.alter(launch: launch.id!, "outcome = 'neverBegan', endedAt = \(bench.now.timeIntervalSince1970)")
            try bench.turn()
        }
        #expect(try bench.live().map(\.generation) == [4])
    }

    /// The handler `.backgroundTask(.urlSession("isStormy")) { }` returns without receiving the events. The events still count as
    /// delivered.
    @Test func `a handler that takes no events is launched once`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        try bench.pass(1)
        try bench.end(bench.onlyLive(), .completed)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 1)
        #expect(try bench.ledger.read { try $0.undeliveredEvents() }.isEmpty)
    }

    /// Claims all waiting events for the process of a launch, and acknowledges `count` of these events.
    private func hear(_ launch: Int64, acknowledging count: Int, givingBack: Bool = false) throws {
        let process = try #require(try bench.launch(launch).process)
        try bench.ledger.write { transaction in
            let claimed = try transaction.claimAllEvents(
                session: "isStormy", process: process, isAlive: { _ in false })
            for event in claimed.prefix(count) { try transaction.eventWasDelivered(#require(event.id), now: bench.now) }
            guard givingBack else { return }
            for event in claimed.dropFirst(count) { try transaction.releaseClaim(of: #require(event.id)) }
        }
    }

    private func endThree() throws {
        let ids = try ["a", "b", "c"].map { try bench.download($0) }
        try bench.turn()
        for id in ids { try bench.answer(id) }
        try bench.pass(5)
    }

    private var undelivered: Int { get throws { try bench.ledger.read { try $0.undeliveredEvents() }.count } }

    /// The handler of the launch had returned. After that, the process was killed while it called its delegate.
    @Test func `events that were not acknowledged are delivered again`() throws {
        try endThree()
        let first = try bench.onlyLive()
        try hear(first, acknowledging: 1)
        try bench.end(first, .completed, .signalled(9))
        #expect(try bench.launch(first).outcome == .crashed && undelivered == 2)
        // If a launch acknowledged some events, the next launch starts immediately. If a launch acknowledged no event, the
        // next launch starts after a pause.
        let second = try bench.onlyLive()
        try hear(second, acknowledging: 0)
        try bench.end(second, .completed, .signalled(9))
        #expect(try bench.live().isEmpty && undelivered == 2)
        try bench.pass(60)
        let third = try bench.onlyLive()
        try hear(third, acknowledging: 2)
        try bench.end(third, .completed)
        #expect(try bench.launch(third).outcome == .completed && undelivered == 0)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 3)
    }

    /// The time limit of a launch is too short for all events. The launch acknowledged some events, so the next launch follows
    /// immediately.
    @Test func `launches that run out of time do not count as failures if they delivered events`() throws {
        try endThree()
        for number in 1...3 {
            let launch = try bench.onlyLive()
            #expect(try bench.launch(launch).generation == 1)
            try hear(launch, acknowledging: 1)
            try bench.end(launch, .expired)
            #expect(try bench.launch(launch).outcome == .expired && undelivered == 3 - number)
        }
        #expect(try bench.live().isEmpty)
    }

    /// The delegate starts the next transfer as soon as a transfer ends. The first launches start without a pause, and later
    /// launches start after growing pauses.
    @Test func `an app that repeats its transfers is launched with growing pauses`() throws {
        var begun = 0
        var pauses: Set<Int> = []
        let end = bench.now + 3_600
        while bench.now < end {
            if try bench.live().isEmpty {
                let id = try bench.download("again\(begun)")
                try bench.turn()
                if try bench.transfer(id).state == .running { try bench.answer(id) }
            }
            guard let launch = try bench.live().first?.id else {
                if case .often(let launches, _)? = try pause() { pauses.insert(launches) }
                // Each call of `pass` makes the agent read all launches of the last hour, so the test makes few calls.
                try bench.pass(10)
                continue
            }
            begun += 1
            try bench.pass(0.1)
            try bench.deliver()
            try bench.end(launch, .completed)
        }
        #expect((30...45).contains(begun), "\(begun) launches in an hour")
        #expect(pauses == Set(21...begun), "each is explained")
    }

    /// The user opened the app, and the opened process delivers the events. A background launch finds no events, and must not
    /// complete the events of the other process.
    @Test func `a launch does not complete events that another process has claimed`() throws {
        try endThree()
        let opened = ProcessIdentity(pid: 6_000_009, start: 1)
        let first = try bench.onlyLive()
        try bench.ledger.write {
            try $0.attach(session: "isStormy", process: opened)
            _ = try $0.claimEvents(session: "isStormy", process: opened, isAlive: { _ in false })
        }
        try bench.end(first, .completed)
        #expect(try undelivered == 3 && bench.live().isEmpty, "a running process has claimed the events")
        // The opened process ends and has not delivered any event. The next launch delivers the events.
        try bench.hear(.processEnded(opened))
        try bench.pass(60)
        let second = try bench.onlyLive()
        try hear(second, acknowledging: 3)
        try bench.end(second, .completed)
        #expect(try undelivered == 0)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    /// Each process acknowledges one event and gives back the other events. If a process acknowledged an event, the next launch
    /// follows immediately.
    @Test func `events that a process gives back are delivered by the next launch at once`() throws {
        try endThree()
        for number in 1...3 {
            let launch = try bench.onlyLive()
            try hear(launch, acknowledging: 1, givingBack: true)
            try bench.end(launch, .completed)
            #expect(try bench.launch(launch).outcome == .completed && undelivered == 3 - number)
        }
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 3)
    }

    @Test func `a transfer that ends during a launch is delivered by the next launch`() throws {
        let ids = try ["a", "b"].map { try bench.download($0) }
        try bench.turn()
        try bench.answer(ids[0])
        try bench.pass(5)
        let first = try bench.onlyLive()
        try bench.pass(1)
        try bench.answer(ids[1])
        #expect(try bench.live().count == 1, "the running launch may receive the event itself")
        try bench.pass(1)
        try bench.end(first, .completed)
        #expect(bench.launcher.started.count == 2, "it did not")
    }

    @Test func `an app with an attached process is not launched before that process ends`() throws {
        let process = ProcessIdentity(pid: 6_000_002, start: 1)
        try bench.ledger.write { try $0.attach(session: "isStormy", process: process) }
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        try bench.pass(60)
        #expect(bench.launcher.started.isEmpty)
        try bench.hear(.processEnded(process))
        #expect(bench.launcher.started.count == 1, "the process ended before it received the events")
    }

    /// Lets a delivery fail, and sets the clock back by a day.
    private func failAndStepBack() throws {
        try bench.settings { $0.backoffBase = 10 }
        let id = try bench.download()
        try bench.turn()
        try bench.answer(id)
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        try bench.step(-86_400)
    }

    @Test func `a clock that is set back does not delay a delivery`() throws {
        try failAndStepBack()
        try bench.pass(10)
        #expect(bench.launcher.started.count == 2)
    }

    /// After the clock was set back, the recorded time of the failed launch is in the future. The failed launch must still cause
    /// a pause.
    @Test func `a clock that is set back does not remove the pauses between deliveries`() throws {
        try failAndStepBack()
        try bench.pass(10)
        #expect(bench.launcher.started.count == 2)
        for (pause, count) in [(20.0, 3), (40, 4), (80, 5)] {
            try bench.end(bench.onlyLive(), nil, .signalled(9))
            try bench.pass(pause - 1)
            #expect(bench.launcher.started.count == count - 1)
            try bench.pass(2)
            #expect(bench.launcher.started.count == count)
        }
    }
}
