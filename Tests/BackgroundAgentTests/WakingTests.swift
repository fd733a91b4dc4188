@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Synchronization
import Testing

@testable import BackgroundAgent

/// Tests of requests that wake a sleeping machine. After the launch, the machine sleeps again.
@Suite struct WakingTests {
    private let bench: Bench
    private let clock = FakeWakeClock()
    private let activator = FakeActivator()
    private let sleep: FakeSleepManager

    init() throws {
        bench = try Bench()
        sleep = FakeSleepManager { [posted = bench.posted] in posted.add(.sleepEvent($0)) }
        (bench.wakeClock, bench.sleep, bench.activator) = (clock, sleep, activator)
        try bench.startAgent()
    }

    private var report: AlarmReport? { get throws { try bench.ledger.read { try $0.fact(.alarm) } } }

    /// Suspends the machine until an instant.
    private func sleepUntil(_ instant: Date) throws {
        try bench.hear(.sleepEvent(.falling))
        #expect(!sleep.isDelayed, "the agent does not delay the sleep longer than necessary")
        try bench.suspend(instant.timeIntervalSince(bench.now))
    }

    /// Submits a request for noon that wakes the machine. The machine then sleeps until noon.
    @discardableResult
    private func wakeAtNoon() throws -> Date {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.turn()
        #expect(clock.alarm == noon)
        #expect(sleep.isDelayed)
        sleep.machine.isLidClosed = true
        try sleepUntil(noon + 1)
        return noon
    }

    @Test func `the agent does not exit while an alarm is set`() throws {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.pass(3_600)
        #expect(clock.alarm == noon)
        #expect(try report?.alarm == noon)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { _ = try $0.deleteRequest("noon") }
        try bench.pass(60)
        #expect(clock.alarm == nil)
        #expect(!sleep.isDelayed)
        #expect(try report == nil)
        #expect(bench.host.hasFinished)
    }

    @Test func `the wake clock and logind are not used without a request that wakes`() throws {
        try bench.submit(daily: true)
        try bench.hear(.sleepEvent(.falling))
        try bench.suspend(90_000)
        try bench.pass(600)
        #expect(clock.calls == 0)
        #expect(sleep.calls.isEmpty)
    }

    @Test func `without the wake capability a request runs late and the agent may exit`() throws {
        clock.refusal = WakeRefusal("the agent lacks the capability CAP_WAKE_ALARM")
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.pass(60)
        #expect(try report?.obstacle == .noAlarm("the agent lacks the capability CAP_WAKE_ALARM"))
        #expect(bench.host.hasFinished)
        #expect(clock.calls == 1)
        #expect(!sleep.isDelayed)
        try bench.startAgent()
        try bench.suspend(noon.timeIntervalSince(bench.now) + 3_600)
        #expect(try bench.live().map(\.servedOccurrence) == [noon])
        #expect(!sleep.calls.contains(.suspend))
    }

    @Test func `a woken machine runs the launch and sleeps again`() throws {
        let noon = try wakeAtNoon()
        #expect(sleep.isDelayed)
        #expect(try bench.ledger.read { try $0.fact(.servedWake) } == noon)
        let launch = try bench.onlyLive()
        try bench.pass(3)
        #expect(!sleep.calls.contains(.suspend))
        try bench.end(launch, .completed)
        #expect(sleep.calls.suffix(2) == [.allowSleep, .suspend])
        // The agent sets the alarm for the next day before the machine sleeps.
        let tomorrow = try #require(bench.request()?.occurrence)
        #expect(clock.alarm == tomorrow)
        try sleepUntil(noon + 7_200)
        // The user opens the lid.
        sleep.machine.isLidClosed = false
        try bench.hear(.resumed)
        try bench.pass(600)
        #expect(sleep.calls.filter { $0 == .suspend }.count == 1)
        #expect(try bench.history().count == 1)
        #expect(clock.alarm == tomorrow)
    }

    /// After a wake, processes run before logind has finished the sleep operation. Until logind has finished, no sleep lock is
    /// available, and no process can suspend the machine again.
    @Test func `a launch waits for the end of the sleep`() throws {
        sleep.isUnderWay = true
        // The lock is not available when the alarm is set. The agent requests the lock again at the end of the next sleep.
        try wakeAtNoonWithoutLock()
        #expect(try bench.live().isEmpty)
        #expect(try bench.ledger.read { try $0.fact(.servedWake) } == nil)
        sleep.isUnderWay = false
        try bench.hear(.resumed)
        #expect(sleep.isDelayed)
        #expect(try bench.live().count == 1)
    }

    /// If logind never responds, the launch is delayed only by five seconds.
    @Test func `a launch starts after five seconds without a sleep lock`() throws {
        sleep.isUnderWay = true
        try wakeAtNoonWithoutLock()
        try bench.pass(4.9)
        #expect(try bench.live().isEmpty)
        try bench.pass(0.2)
        #expect(try bench.live().count == 1)
    }

    private func wakeAtNoonWithoutLock() throws {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.turn()
        #expect(clock.alarm == noon)
        try sleepUntil(noon)
    }

    @Test(arguments: ["opened", "unlocked", "moved", "unknown"])
    func `the machine stays awake if the user is present or the state is unknown`(_ sign: String) throws {
        switch sign {
        case "opened": sleep.machine.isLidClosed = true
        case "unlocked": sleep.machine.isLocked = true
        case "moved": sleep.machine.isIdle = true
        default: break
        }
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.turn()
        try sleepUntil(noon)
        sleep.machine = MachineState()
        try bench.end(try bench.onlyLive(), .completed)
        try bench.pass(600)
        #expect(!sleep.calls.contains(.suspend))
    }

    /// The launch that is running when the machine sleeps continues at the next wake.
    @Test func `a woken machine sleeps again after 20 seconds although a launch runs`() throws {
        let noon = try wakeAtNoon()
        let launch = try bench.onlyLive()
        try bench.pass(19)
        #expect(!sleep.calls.contains(.suspend))
        try bench.pass(1.1)
        #expect(sleep.calls.filter { $0 == .suspend }.count == 1)
        try sleepUntil(noon + 7_200)
        try bench.hear(.resumed)
        #expect(try bench.launch(launch).endedAt == nil)
        #expect(try bench.launch(launch).stopReason == nil, "the time limit does not count the time in sleep")
        try bench.end(launch, .completed)
        try bench.pass(60)
        #expect(sleep.calls.filter { $0 == .suspend }.count == 1)
    }

    @Test func `an alarm is not set if the battery is low`() throws {
        (sleep.machine.isOnBattery, sleep.machine.batteryPercent) = (true, 29)
        try bench.submit(daily: true, wakes: true)
        try bench.pass(600)
        #expect(clock.alarm == nil)
        #expect(try report?.obstacle == .lowBattery)
        #expect(!bench.host.hasFinished, "the agent keeps running, because it must detect external power")
        sleep.machine.isOnBattery = false
        try bench.hear(.conditions(bench.conditions.current))
        #expect(clock.alarm != nil)
        #expect(try report?.obstacle == nil)
    }

    /// The battery was drained while the machine was in use. The agent's last check before the sleep detects the low battery.
    @Test func `the battery is checked before each sleep`() throws {
        try bench.submit(daily: true, wakes: true)
        try bench.turn()
        #expect(clock.alarm != nil)
        (sleep.machine.isOnBattery, sleep.machine.batteryPercent) = (true, 12)
        try bench.hear(.sleepEvent(.falling))
        #expect(clock.alarm == nil)
        #expect(!sleep.isDelayed)
    }

    /// The alarm wakes the machine while it runs on battery with a closed lid.
    @Test(arguments: [31.0, 29.0])
    func `a machine that wakes on battery launches only with enough charge and sleeps again`(_ percent: Double) throws {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.turn()
        sleep.machine.isLidClosed = true
        (sleep.machine.isOnBattery, sleep.machine.batteryPercent) = (true, 80)
        try bench.hear(.sleepEvent(.falling))
        sleep.machine.batteryPercent = percent
        try bench.suspend(noon.timeIntervalSince(bench.now))
        #expect(try bench.live().count == (percent < 30 ? 0 : 1))
        if percent >= 30 { try bench.end(try bench.onlyLive(), .completed) }
        #expect(sleep.calls.filter { $0 == .suspend }.count == 1)
        #expect(try bench.ledger.read { try $0.fact(.servedWake) } == noon)
        // The user opens the lid in the evening. The launch that was skipped at noon runs now.
        try bench.hear(.sleepEvent(.falling))
        sleep.machine = MachineState()
        try bench.suspend(20_000)
        try bench.hear(.resumed)
        #expect(try bench.history().count == 1)
    }

    /// The clock is set back to a time before the alarm. The app submits a request for the same time again.
    @Test func `an alarm is not set twice for one instant`() throws {
        let noon = try wakeAtNoon()
        try bench.end(try bench.onlyLive(), .completed)
        try bench.hear(.sleepEvent(.notSuspended("no")))
        try bench.step(-600)
        try bench.submit("again", after: noon.timeIntervalSince(bench.now), wakes: true)
        try bench.turn()
        #expect(clock.alarm != noon)
        #expect(clock.alarm == (try bench.request()?.earliestBegin))
    }

    /// The agent was killed between the wake and the launch. The next agent runs the launch late. The next agent does not suspend
    /// the machine, because another agent set the alarm that woke the machine.
    @Test func `a new agent does not suspend the machine`() throws {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        try bench.turn()
        sleep.machine.isLidClosed = true
        try bench.hear(.sleepEvent(.falling))
        try bench.stepUnseen(noon.timeIntervalSince(bench.now) + 1)
        try bench.startAgent()
        try bench.end(try bench.onlyLive(), .completed)
        try bench.pass(60)
        #expect(!sleep.calls.contains(.suspend))
    }

    @Test func `an alarm on a machine that is awake does not suspend it`() throws {
        let noon = try #require(bench.submit(daily: true, wakes: true).occurrence)
        sleep.machine.isIdle = true
        try bench.pass(noon.timeIntervalSince(bench.now))
        try bench.hear(.alarmRang)
        try bench.end(try bench.onlyLive(), .completed)
        try bench.pass(600)
        #expect(!sleep.calls.contains(.suspend))
    }

    @Test func `the alarm is set again when the clock changes`() throws {
        try bench.submit(after: 7_200, wakes: true)
        try bench.turn()
        let calls = clock.calls
        try bench.step(-60)
        #expect(clock.calls == calls + 1)
    }
}

/// A wake clock that records the alarm.
final class FakeWakeClock: WakeClock {
    private let state = Mutex<(alarm: Date?, calls: Int, refusal: WakeRefusal?)>((nil, 0, nil))

    var alarm: Date? { state.withLock { $0.alarm } }
    var calls: Int { state.withLock { $0.calls } }
    var refusal: WakeRefusal? {
        get { state.withLock { $0.refusal } }
        set { state.withLock { $0.refusal = newValue } }
    }

    func arm(at instant: Date?) throws(WakeRefusal) {
        let refusal = state.withLock { state in
            state.calls += 1
            if state.refusal == nil { state.alarm = instant }
            return state.refusal
        }
        if let refusal { throw refusal }
    }
}

/// A test double of logind that responds immediately with a state that the test sets.
final class FakeSleepManager: SleepManager {
    enum Call: Equatable { case look, delaySleep, allowSleep, suspend }

    private struct State {
        var machine = MachineState()
        var isUnderWay = false
        var isDelayed = false
        var calls: [Call] = []
    }

    private let state = Mutex(State())
    private let tell: @Sendable (SleepEvent) -> Void

    init(tell: @escaping @Sendable (SleepEvent) -> Void) { self.tell = tell }

    var machine: MachineState {
        get { state.withLock { $0.machine } }
        set { state.withLock { $0.machine = newValue } }
    }
    /// `true` if a sleep has begun and has not ended yet.
    var isUnderWay: Bool {
        get { state.withLock { $0.isUnderWay } }
        set { state.withLock { $0.isUnderWay = newValue } }
    }
    var isDelayed: Bool { state.withLock { $0.isDelayed } }
    var calls: [Call] { state.withLock { $0.calls } }

    func query() {
        let machine = state.withLock { state in
            state.calls.append(.look)
            return state.machine
        }
        tell(.machineState(machine))
    }

    func delaySleep() {
        let isUnderWay = state.withLock { state in
            state.calls.append(.delaySleep)
            if !state.isUnderWay { state.isDelayed = true }
            return state.isUnderWay
        }
        tell(isUnderWay ? .notDelayed(isUnderWay: true) : .delayed)
    }

    func allowSleep() {
        state.withLock { state in
            state.calls.append(.allowSleep)
            state.isDelayed = false
        }
    }

    func suspend() { state.withLock { $0.calls.append(.suspend) } }
}
