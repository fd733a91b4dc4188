import BackgroundScheduling
import Foundation
import Testing

/// Tests of a machine that wakes up, works and sleeps again. The tests consist of single cases and thousands of generated
/// sequences.
@Suite struct SystemWakeTests {
    private typealias ClockReading = SystemWake.ClockReading

    private static let noon = Date(timeIntervalSince1970: 1_000_000)

    // MARK: Signs of a user

    /// Each row of the table has the state before, the state now, and whether a user is present.
    @Test func `the lid, the idle state and the lock show whether a user is present`() {
        let open = MachineState()
        let closed = MachineState(isLidClosed: true)
        let idle = MachineState(isIdle: true)
        let locked = MachineState(isLocked: true)
        let table: [(MachineState?, MachineState, Bool)] = [
            (closed, closed, false), (closed, open, true), (closed, idle, true), (closed, locked, true),
            (idle, idle, false), (idle, open, true), (idle, locked, true),
            (locked, locked, false), (locked, open, true), (locked, MachineState(isIdle: true, isLocked: true), false),
            (open, open, true), (open, idle, false), (open, locked, false), (open, closed, false),
            (nil, open, true), (nil, closed, false), (nil, idle, false), (nil, locked, false),
        ]
        for (before, now, came) in table {
            #expect(now.showsSomebody(since: before) == came, "\(String(describing: before)) \(now)")
        }
    }

    @Test(arguments: [(true, 29.9, true), (true, 30, false), (false, 1, false)])
    func `a battery below 30 per cent is low while it is in use`(_ isOnBattery: Bool, _ percent: Double, _ isLow: Bool) {
        #expect(MachineState(isOnBattery: isOnBattery, batteryPercent: percent).isBatteryLow == isLow)
    }

    @Test func `a battery without a known level is not low`() { #expect(!MachineState(isOnBattery: true).isBatteryLow) }

    // MARK: Single cases

    private static func at(_ seconds: Double, awake: Double = 0) -> ClockReading {
        ClockReading(now: noon + seconds, awake: awake)
    }

    /// Returns the state after an alarm was set and the machine fell asleep.
    private func sleeping(_ machine: MachineState) -> SystemWake {
        var wake = SystemWake()
        #expect(wake.plan(Self.noon, isWorkDone: false, at: Self.at(-60)) == [.look])
        #expect(wake.handle(.machineState(MachineState()), at: Self.at(-60)) == [])
        #expect(wake.plan(Self.noon, isWorkDone: false, at: Self.at(-60)) == [.arm(Self.noon), .delaySleep])
        #expect(wake.handle(.delayed, at: Self.at(-60)) == [])
        #expect(wake.handle(.falling, at: Self.at(-50)) == [.look])
        #expect(wake.handle(.machineState(machine), at: Self.at(-50)) == [.allowSleep])
        return wake
    }

    @Test func `a wake serves its alarm, waits for the work and suspends the machine`() {
        let closed = MachineState(isLidClosed: true)
        var wake = sleeping(closed)
        #expect(wake.tick(at: Self.at(0)) == [.delaySleep, .look])
        #expect(wake.holdsWork)
        #expect(wake.handle(.machineState(closed), at: Self.at(0)) == [])
        #expect(wake.handle(.delayed, at: Self.at(0)) == [.serve(Self.noon)])
        #expect(!wake.holdsWork)
        let next = Self.noon + 86_400
        #expect(wake.plan(next, isWorkDone: false, at: Self.at(1, awake: 1)) == [.arm(next)])
        #expect(wake.plan(next, isWorkDone: true, at: Self.at(2, awake: 2)) == [.look])
        #expect(wake.handle(.machineState(closed), at: Self.at(2, awake: 2)) == [.allowSleep, .suspend(isWorkDone: true)])
        #expect(wake.plan(next, isWorkDone: true, at: Self.at(3, awake: 3)) == [])
        #expect(wake.handle(.falling, at: Self.at(3, awake: 3)) == [])
        #expect(wake.wake(at: Self.at(500, awake: 4)) == [])
        #expect(wake.plan(next, isWorkDone: true, at: Self.at(500, awake: 4)) == [.look])
    }

    /// The user closes the lid again while the agent reads the state of the machine.
    @Test func `a sleep that begins during the last look is allowed and keeps the next alarm`() {
        let closed = MachineState(isLidClosed: true)
        var wake = sleeping(closed)
        _ = wake.tick(at: Self.at(0))
        _ = wake.handle(.machineState(closed), at: Self.at(0))
        _ = wake.handle(.delayed, at: Self.at(0))
        let next = Self.noon + 86_400
        #expect(wake.plan(next, isWorkDone: false, at: Self.at(1, awake: 1)) == [.arm(next)])
        #expect(wake.plan(next, isWorkDone: true, at: Self.at(2, awake: 2)) == [.look])
        #expect(wake.handle(.falling, at: Self.at(2, awake: 2)) == [])
        #expect(wake.handle(.machineState(MachineState()), at: Self.at(2, awake: 2)) == [.allowSleep])
        #expect(wake.alarm == next)
        // At the next alarm, the commands are the same as at the first alarm.
        #expect(wake.tick(at: Self.at(86_400, awake: 3)) == [.delaySleep, .look])
    }

    @Test func `a machine that the user wakes before the alarm keeps the alarm`() {
        var wake = sleeping(MachineState())
        #expect(wake.wake(at: Self.at(-20)) == [])
        #expect(wake.alarm == Self.noon)
        #expect(wake.plan(Self.noon, isWorkDone: true, at: Self.at(-20)) == [.look])
        _ = wake.handle(.machineState(MachineState()), at: Self.at(-20))
        #expect(wake.plan(Self.noon, isWorkDone: true, at: Self.at(-20)) == [.delaySleep])
    }

    /// No alarm woke the machine, for example because the machine's clock cannot wake it.
    @Test func `a wake long after the alarm does not count as a wake by the alarm`() {
        var wake = sleeping(MachineState(isLidClosed: true))
        #expect(wake.wake(at: Self.at(3_600)) == [])
        #expect(!wake.isAtWork && !wake.holdsWork)
    }

    @Test func `a sleep that another program starts waits for the work and is not requested again`() {
        var wake = sleeping(MachineState(isLidClosed: true))
        _ = wake.tick(at: Self.at(0))
        _ = wake.handle(.delayed, at: Self.at(0))
        _ = wake.handle(.machineState(MachineState(isLidClosed: true)), at: Self.at(0))
        #expect(wake.handle(.falling, at: Self.at(1, awake: 1)) == [])
        #expect(wake.plan(nil, isWorkDone: false, at: Self.at(1, awake: 1)) == [])
        #expect(wake.plan(nil, isWorkDone: true, at: Self.at(2, awake: 2)) == [.allowSleep])
    }

    @Test func `no alarm is set without logind`() {
        var wake = SystemWake()
        _ = wake.plan(Self.noon, isWorkDone: false, at: Self.at(-60))
        _ = wake.handle(.machineState(nil), at: Self.at(-60))
        #expect(wake.plan(Self.noon, isWorkDone: false, at: Self.at(-60)) == [])
        #expect(wake.obstacle == .noSleepManager)
        #expect(!wake.needsAgent)
    }

    // MARK: Generated sequences

    /// Checks random orders of events. The agent never starts two launches for one date, and requests sleep at most once after a
    /// wake. The agent never delays work for long, and sets no alarm if the battery is low.
    @Test func `a random sequence of events breaks no rule of a wake`() {
        for seed in 1...3_000 as ClosedRange<UInt64> {
            var trial = Trial(seed: seed)
            trial.run()
            #expect(
                trial.complaints.isEmpty, "seed \(seed): \(trial.complaints)\n\(trial.story.suffix(40).joined(separator: "\n"))")
            if !trial.complaints.isEmpty { return }
        }
    }
}

/// A machine, a logind and an agent with random events.
private struct Trial {
    private var random: SplitMix
    private var wake = SystemWake()
    private var now = Date(timeIntervalSince1970: 1_000_000)
    private var awake = 0.0
    private var machine = MachineState()
    private var answers: [SleepEvent] = []
    private var alarm: Date?
    private var hasLock = false
    private var served: [Date] = []
    private var instant: Date
    private var sleepsSinceServe = 0
    private var heldSince: Double?
    private var atWorkSince: Double?
    private var isWorkDone = true
    private(set) var complaints: [String] = []
    private(set) var story: [String] = []

    init(seed: UInt64) {
        random = SplitMix(state: seed)
        instant = Date(timeIntervalSince1970: 1_000_050)
    }

    private var moment: SystemWake.ClockReading { .init(now: now, awake: awake) }

    private mutating func chance(_ share: Double) -> Bool { Double(random.next() >> 11) / Double(1 << 53) < share }
    private mutating func pick(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    mutating func run() {
        for _ in 0..<200 {
            step()
            follow(wake.tick(at: moment), "tick")
            if wake.isAtWork, !wake.holdsWork, chance(0.3) { isWorkDone = true }
            if instant <= now { instant = now + Double(20 + pick(200)) }
            var wanted: Date? = instant
            if let last = served.last, last >= instant { wanted = nil }
            if chance(0.05) { wanted = nil }
            follow(wake.plan(wanted, isWorkDone: isWorkDone, at: moment), "plan")
            check()
        }
    }

    private mutating func step() {
        switch pick(10) {
        case 0, 1, 2: pass(Double(pick(8)))
        case 3: if let alarm { pass(max(alarm.timeIntervalSince(now), 0)) }
        case 4: follow(wake.handle(.falling, at: moment), "falling")
        case 5:
            // The machine slept until its alarm, or until the user woke it.
            let end = chance(0.7) ? alarm ?? now + 30 : now + Double(pick(100))
            now = max(now, end)
            follow(wake.wake(at: moment), "woke")
        case 6:
            machine = MachineState(
                isLidClosed: chance(0.5), isIdle: chance(0.5), isLocked: chance(0.5), isOnBattery: chance(0.5),
                batteryPercent: chance(0.5) ? 80 : 20)
            if chance(0.5) { wake.handlePowerChange() }
        default:
            guard !answers.isEmpty else { return }
            let answer = answers.removeFirst()
            if answer == .delayed { hasLock = true }
            follow(wake.handle(answer, at: moment), "\(answer)")
        }
    }

    private mutating func pass(_ seconds: Double) {
        // The agent runs at each time that it requested.
        var left = seconds
        while let deadline = wake.deadline, deadline - awake <= left {
            let part = max(deadline - awake, 0)
            (now, awake, left) = (now + part, awake + part, left - part)
            let before = wake
            follow(wake.tick(at: moment), "tick")
            follow(wake.plan(instant > now ? instant : nil, isWorkDone: isWorkDone, at: moment), "plan")
            check()
            if wake == before { break }
        }
        (now, awake) = (now + max(left, 0), awake + max(left, 0))
    }

    private mutating func follow(_ commands: [SystemWake.Command], _ why: String) {
        story.append("\(Int(now.timeIntervalSince1970) % 100_000) \(why): \(commands)")
        for command in commands {
            switch command {
            case .arm(let date):
                alarm = date
                if date != nil, wake.obstacle != nil { complaints.append("an alarm in spite of \(wake.obstacle!)") }
            case .look: answers.append(.machineState(chance(0.05) ? nil : machine))
            case .delaySleep:
                // Responses to an earlier request are not delivered.
                answers.removeAll(where: Self.isOfLock)
                answers.append(chance(0.7) ? .delayed : .notDelayed(isUnderWay: chance(0.5)))
            case .allowSleep:
                hasLock = false
                answers.removeAll(where: Self.isOfLock)
            case .serve(let date):
                if served.contains(date) { complaints.append("\(date) is used twice") }
                served.append(date)
                (sleepsSinceServe, isWorkDone) = (0, false)
            case .suspend:
                sleepsSinceServe += 1
                if served.isEmpty || sleepsSinceServe > 1 { complaints.append("a sleep that nobody was woken for") }
                if hasLock { complaints.append("asks for sleep, and holds it up") }
                answers.append(chance(0.8) ? .falling : .notSuspended("no"))
            case .stay: break
            }
        }
    }

    private static func isOfLock(_ event: SleepEvent) -> Bool {
        switch event {
        case .delayed, .notDelayed: true
        case .falling, .machineState, .notSuspended: false
        }
    }

    private mutating func check() {
        heldSince = wake.holdsWork ? heldSince ?? awake : nil
        if let heldSince, awake > heldSince + 16 { complaints.append("work is held for long") }
        atWorkSince = wake.isAtWork ? atWorkSince ?? awake : nil
        if let atWorkSince, awake > atWorkSince + 26 { complaints.append("awake for long") }
        if wake.obstacle == .lowBattery, !wake.isAtWork, wake.alarm != nil { complaints.append("an alarm with little battery") }
    }
}

private struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
