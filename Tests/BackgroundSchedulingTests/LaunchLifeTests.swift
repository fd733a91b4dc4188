import BackgroundScheduling
import Foundation
import Testing

/// Tests of how each event changes a launch, and of generated sequences of events.
@Suite struct LaunchLifeTests {
    private let start = Date(timeIntervalSince1970: 1_750_000_000)
    private let limits = LaunchLife.Limits(budget: 30, grace: 5, continuation: 10)

    private func launch(
        _ kind: LaunchKind = .appRefresh, _ phase: LaunchLife.Phase = .running, timer: LaunchSupervision? = nil
    ) -> LaunchLife {
        LaunchLife(kind: kind, startedAt: start, phase: phase, timer: timer)
    }

    private func look(_ seconds: Double) -> LaunchLife.Event { .supervised(limits, now: start + seconds) }

    private func ended(_ end: ProcessEnd) -> LaunchLife.Event {
        .processEnded(end, now: start + 60)
    }

    private func outcome(_ life: LaunchLife) -> LaunchOutcome? {
        if case .ended(let outcome, at: _, after: _) = life.phase { outcome } else { nil }
    }

    // MARK: Stopping

    @Test func `a launch is warned when its budget is used up and killed after the grace time`() {
        var life = launch()
        #expect(life.handle(look(0)).isEmpty)
        #expect(life.killAt == nil)
        #expect(life.handle(look(30)) == [.logStop(.expired), .warn])
        #expect(life.phase == .stopping(.expired, hasProcess: true))
        #expect(life.killAt == start + 35)
        #expect(life.handle(look(35)) == [.kill])
        #expect(life.handle(look(99)).isEmpty)
    }

    @Test func `the first reason to stop counts`() {
        var life = launch()
        #expect(life.handle(.stopWanted(.quit, limits, now: start)) == [.logStop(.quit), .warn])
        #expect(life.handle(.stopWanted(.simulated, limits, now: start)).isEmpty)
        _ = life.handle(.stopRecorded(.cancelled))
        #expect(life.phase == .stopping(.quit, hasProcess: true))
    }

    @Test func `a new agent warns again`() {
        var life = launch(.appRefresh, .stopping(.quit, hasProcess: true))
        #expect(life.handle(look(100)) == [.warn])
        #expect(life.killAt == start + 105)
    }

    @Test func `continued processing is neither signalled nor killed`() {
        var life = launch(.continuedProcessing)
        #expect(life.handle(look(30)) == [.logStop(.noProgress)])
        #expect(life.handle(look(35)) == [.end])
        _ = life.handle(ended(.unknown))
        #expect(outcome(life) == .failed)
        #expect(life.detail == "the launch did not stop, and its process was not killed")
    }

    @Test func `a lost condition is in the history`() {
        var life = launch()
        let look = LaunchLife.Event.supervised(limits, lostCondition: "the network was lost", now: start)
        #expect(life.handle(look) == [.logStop(.conditionLost), .warn])
        #expect(life.detail == "the network was lost")
    }

    @Test func `a warning while the ledger could not be written is recorded later`() {
        var timer = LaunchSupervision(startedAt: start, budget: 30, grace: 5)
        _ = timer.tick(now: start + 31, isPersonChoosing: false)
        var life = launch(timer: timer)
        #expect(life.handle(look(32)).isEmpty)
        #expect(life.phase == .stopping(.expired, hasProcess: true))
    }

    @Test func `a launch with a result continues while its transfers do`() {
        var life = launch()
        _ = life.handle(look(0))
        _ = life.handle(.resultRecorded(.completed, detail: nil))
        #expect(life.handle(look(28)).isEmpty)
        #expect(life.handle(look(42)).isEmpty)
        #expect(life.handle(look(43)) == [.logStop(.expired), .warn])
    }

    // MARK: Ending

    @Test func `an outcome follows from the result, the reason and the process`() {
        func end(_ phase: LaunchLife.Phase, _ end: ProcessEnd, _ events: LaunchLife.Event...) -> LaunchOutcome? {
            var life = launch(.appRefresh, phase)
            for event in events { _ = life.handle(event) }
            _ = life.handle(ended(end))
            return outcome(life)
        }
        #expect(end(.running, .exited(0)) == .crashed)
        #expect(end(.stopping(.expired, hasProcess: true), .signalled(9)) == .killed)
        #expect(end(.starting, .unknown) == .neverBegan)
        #expect(end(.starting, .unknown, .notStarted(because: "no such file")) == .crashed)
        #expect(end(.starting, .signalled(11)) == .crashed)
        #expect(end(.running, .signalled(9), .resultRecorded(.completed, detail: nil)) == .completed)
        #expect(end(.running, .exited(78), .abandoned(because: "no disk")) == .crashed)
    }

    @Test func `a result does not count while an event is delivered`() {
        var life = launch(.urlSession)
        _ = life.handle(.resultRecorded(.completed, detail: nil))
        _ = life.handle(.processEnded(.signalled(9), wasInterrupted: true, now: start))
        #expect(outcome(life) == .crashed)
    }

    @Test func `the history describes the end`() {
        func detail(_ events: LaunchLife.Event...) -> String? {
            var life = launch()
            for event in events { _ = life.handle(event) }
            return life.detail
        }
        #expect(detail(ended(.exited(3))) == "the process exited with code 3 without a result")
        #expect(detail(ended(.signalled(11))) == "the process was ended by signal 11")
        #expect(detail(.resultRecorded(.completed, detail: "told"), ended(.exited(0))) == "told")
        let delivery = LaunchLife.Event.processEnded(.exited(0), note: "resumed", now: start)
        #expect(detail(.resultRecorded(.completed, detail: nil), delivery) == "resumed")
        let expired = LaunchLife.Event.resultRecorded(.expired, detail: nil)
        #expect(detail(.stopWanted(.quit, limits, now: start), expired, delivery) == "all background work was ended")
    }

    // MARK: Generated sequences

    /// Runs a hundred thousand sequences. In each sequence, clock changes, deaths of agents and ends of processes occur at random
    /// times.
    @Test(arguments: 0..<20) func `a launch ends once and runs no longer than it may`(_ part: UInt64) {
        for seed in part * 5_000..<(part + 1) * 5_000 {
            var world = LaunchWorld(seed: seed + 1)
            world.run()
            guard !world.broken.isEmpty else { continue }
            world = LaunchWorld(seed: seed + 1, isTold: true)
            world.run()
            Issue.record("seed \(seed): \(world.broken.joined(separator: "; "))\n\(world.story.joined(separator: "\n"))")
            return
        }
    }
}

/// A launch with a clock and an agent. At random times, the clock is set or the agent dies.
private struct LaunchWorld {
    private static let limits = LaunchLife.Limits(budget: 30, grace: 5, continuation: 10)

    private var dice: SeededGenerator
    private(set) var broken: [String] = []
    /// The events so far. The events are recorded only in a run that has to report its events.
    private(set) var story: [String] = []
    private let isTold: Bool
    private var life: LaunchLife
    private var now = Date(timeIntervalSince1970: 1_750_000_000)
    /// The number of seconds that passed, independent of the clock.
    private var passed = 0.0
    /// The times of this agent's first check, warning and kill, measured in the seconds of `passed`.
    private var firstCheck: Double?
    private var warnedAt: Double?
    private var killedAt: Double?
    /// The number of seconds that a launch may run beyond its time limit. The reasons are a choice of the user, progress of the
    /// work, or a continuation.
    private var allowance = 0.0
    private var firstReason: StopReason?
    private var firstResult: LaunchOutcome?

    init(seed: UInt64, isTold: Bool = false) {
        self.isTold = isTold
        dice = SeededGenerator(seed: seed)
        let kinds: [LaunchKind] = [.appRefresh, .processing, .urlSession, .continuedProcessing]
        life = LaunchLife(kind: kinds.randomElement(using: &dice)!, startedAt: now, phase: .running)
    }

    private mutating func found(_ what: String) { broken.append(what) }

    mutating func run() {
        for _ in 0..<30 { step() }
    }

    private mutating func step() {
        let seconds = Double.random(in: 0..<4, using: &dice)
        now += seconds
        passed += seconds
        switch Int.random(in: 0..<60, using: &dice) {
        case 0: setClock()
        case 1: send(.stopWanted([.quit, .simulated, .cancelled].randomElement(using: &dice)!, Self.limits, now: now))
        case 2: send(.stopRecorded(.quit))
        case 3: send(.resultRecorded([.completed, .failed, .expired].randomElement(using: &dice)!, detail: nil))
        case 4: send(.abandoned(because: "no disk"))
        case 5:
            let ends: [ProcessEnd] = [.exited(0), .exited(1), .signalled(9), .unknown]
            let isInterrupted = Int.random(in: 0..<4, using: &dice) == 0
            send(.processEnded(ends.randomElement(using: &dice)!, wasInterrupted: isInterrupted, now: now))
        case 6:
            // The agent died and lost its memory.
            life = LaunchLife(
                kind: life.kind, startedAt: life.startedAt, phase: life.phase, result: life.result, detail: life.detail)
            (firstCheck, warnedAt, killedAt) = (nil, nil, nil)
        case 7:
            allowance = LaunchSupervision.choosingCeiling + 30
            look(isPersonChoosing: true)
        case 8: look(hasMoved: true)
        default: look()
        }
    }

    private mutating func setClock() {
        let shift = Double.random(in: -40_000_000...40_000_000, using: &dice)
        now += shift
        // A real agent shifts the timer in its `LaunchLife`. This test creates the `LaunchLife` again with the shifted timer.
        guard var timer = life.timer else { return }
        timer.shift(by: shift)
        life = LaunchLife(
            kind: life.kind, startedAt: life.startedAt, phase: life.phase, result: life.result, detail: life.detail, timer: timer)
    }

    private mutating func look(isPersonChoosing: Bool = false, hasMoved: Bool = false) {
        if firstCheck == nil { firstCheck = passed }
        if hasMoved { allowance = max(allowance, 60) + 30 }
        if life.result == .completed { allowance = max(allowance, 15) + 15 }
        send(.supervised(Self.limits, isPersonChoosing: isPersonChoosing, hasMoved: hasMoved, now: now))
        guard !hasEnded, let firstCheck else { return }
        let limit = Self.limits.budget + allowance + 5
        if warnedAt == nil, passed - firstCheck > limit { found("it runs for more than \(limit) s without a warning") }
        if let warnedAt, killedAt == nil, passed - warnedAt > Self.limits.grace {
            found("it was not killed after the grace time")
        }
    }

    private var hasEnded: Bool {
        if case .ended = life.phase { true } else { false }
    }

    private mutating func send(_ event: LaunchLife.Event) {
        let before = life
        let commands = life.handle(event)
        if isTold { story.append("\(passed): \(event) → \(commands), \(life.phase)") }
        if case .ended = before.phase, life != before || !commands.isEmpty { found("an ended launch changed") }
        for command in commands { note(command) }
        if case .stopping(let reason, _) = life.phase {
            if let firstReason, reason != firstReason { found("another reason to stop") }
            firstReason = firstReason ?? reason
            if life.timer?.isStopping == true, warnedAt == nil { warnedAt = passed }
        }
        if let result = life.result {
            if let firstResult, result != firstResult { found("another result") }
            firstResult = firstResult ?? result
        }
        guard case .ended(let outcome, at: _, after: let reason) = life.phase, !before.hasEnded else { return }
        if case .processEnded = event {} else { found("it ended without its process") }
        if outcome.isResult, life.result == nil, life.kind != .continuedProcessing { found("a result that nobody recorded") }
        if outcome == .killed, reason == nil { found("killed without a reason") }
        if outcome == .crashed, reason != nil { found("an ended launch was stopped, and counts as a crash") }
    }

    private mutating func note(_ command: LaunchLife.Command) {
        switch command {
        case .logStop: if warnedAt != nil { found("stopped twice by one agent") }
        case .warn:
            if life.kind == .continuedProcessing { found("a process of the user was signalled") }
            if warnedAt != nil { found("warned twice by one agent") }
        case .kill, .end:
            if (command == .end) != (life.kind == .continuedProcessing) { found("\(command) of \(life.kind)") }
            if killedAt != nil { found("killed twice") }
            if let warnedAt, passed - warnedAt < Self.limits.grace - 0.001 { found("killed before the grace time was over") }
            if warnedAt == nil { found("killed without a warning") }
            killedAt = passed
        }
        if case .warn = command { warnedAt = warnedAt ?? passed }
    }
}

extension LaunchLife {
    fileprivate var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }
}
