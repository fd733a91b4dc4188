import Foundation

/// Wakes the machine for due work, and suspends the machine again when the work is complete and no user is present. The type is
/// pure: it receives an event and returns a list of commands.
///
/// While an alarm is set, the agent holds the lock that delays a sleep. So the agent checks the battery level again before each
/// sleep, and removes the alarm if the level is too low. The agent then releases the lock immediately. So a sleep that the user
/// requests is delayed only by the time of two queries, and not by the service's limit of 5 s.
///
/// While a sleep has not ended, the lock is not available (systemd#14045), and another sleep cannot begin. Work waits until the
/// sleep ends and the lock is taken.
package struct SystemWake: Sendable, Equatable {
    /// The maximum number of seconds that a woken machine stays awake if no user is present.
    package static let patience: Double = 20
    /// The maximum number of seconds between the alarm's instant and a wake that the alarm caused. A later wake has another
    /// cause.
    static let lateness: Double = 15
    /// The maximum number of seconds that a service may take to respond.
    static let answerTime: Double = 5

    package enum Command: Sendable, Equatable {
        case arm(Date?)
        case look
        case delaySleep
        case allowSleep
        /// The machine was woken for this instant. Store the instant before any work begins, so that the machine is not woken for
        /// this instant again.
        case serve(Date)
        /// `isWorkDone` is `false` if the time limit was reached. Unfinished work then continues at the next wake.
        case suspend(isWorkDone: Bool)
        /// The machine stays awake, because a user is present or because the presence of a user is unknown.
        case stay
    }

    /// A point in time on two clocks: the wall clock, and the clock that stops during sleep.
    package struct ClockReading: Sendable, Equatable {
        package var now: Date
        /// The time in seconds of the clock that stops during sleep.
        package var awake: Double

        package init(now: Date, awake: Double) { (self.now, self.awake) = (now, awake) }
    }

    private enum State: Sendable, Equatable {
        case awake
        /// The machine is about to sleep. The state of the machine is checked for the last time.
        case falling
        /// The machine sleeps, according to the sleep service. `before` is the state of the machine before the sleep. After the
        /// sleep, `before` helps to detect whether a user came.
        case asleep(before: MachineState?)
        case woken(Wake)
        /// The agent requested sleep. `since` is the time of the request, in seconds of the clock that stops during sleep.
        case suspending(since: Double)
    }

    private struct Wake: Sendable, Equatable {
        let instant: Date
        /// The time at which the machine woke, in seconds of the clock that stops during sleep.
        let since: Double
        var before: MachineState?
        var step = Step.preparing
        /// `true` if another program requested a sleep. The machine sleeps when the agent releases the lock that delays sleep.
        var isSleepAwaited = false
    }

    private enum Step: Sendable, Equatable {
        /// No work has begun, because the lock or the state of the machine is not available yet.
        case preparing
        case working
        /// The work ended, and the state of the machine is requested. The state shows whether a user is present.
        case deciding(since: Double, isWorkDone: Bool)
    }

    private enum Lock: Sendable, Equatable {
        case none, requested, held, refused
        /// The lock becomes available when the current sleep has ended.
        case awaited

        var isAnswered: Bool { self == .held || self == .refused }
    }

    private enum MachineReading: Sendable, Equatable {
        case none, requested
        case known(MachineState?)

        var machine: MachineState? { if case .known(let look) = self { look } else { nil } }
    }

    private var state = State.awake
    private var lock = Lock.none
    private var look = MachineReading.none
    private var refusal: String?
    /// The instant for which the alarm is set.
    private var armed: Date?
    /// The first future instant for which the machine has to be woken.
    private var wanted: Date?

    package init() {}

    // MARK: State for the agent

    /// The reason why no alarm is set although the app needs an alarm. `nil` if no problem exists.
    package var obstacle: WakeObstacle? {
        guard wanted != nil else { return nil }
        if let refusal { return .noAlarm(refusal) }
        guard case .known(let machine) = look else { return nil }
        guard let machine else { return .noSleepManager }
        return machine.isBatteryLow ? .lowBattery : nil
    }

    package var alarm: Date? { armed }

    /// `true` if due work has to wait, because the lock is not held yet or because the machine is about to sleep again.
    package var holdsWork: Bool {
        switch state {
        case .woken(let wake): wake.step == .preparing
        case .suspending: true
        case .awake, .falling, .asleep: false
        }
    }

    /// `true` if the machine was woken for work. The machine is suspended again when the work is complete.
    package var isAtWork: Bool { if case .woken = state { true } else { false } }

    /// `true` if the agent has to keep running. The alarm is removed when the agent's process ends. In addition, only a running
    /// agent detects that a battery was charged.
    package var needsAgent: Bool {
        switch state {
        case .woken, .suspending: return true
        case .awake, .falling, .asleep: break
        }
        switch obstacle {
        case .noAlarm, .noSleepManager: return false
        case .lowBattery, nil: return wanted != nil
        }
    }

    /// The time at which `tick` has to be called again, in seconds of the clock that stops during sleep. `nil` if only events
    /// change the state.
    package var deadline: Double? {
        switch state {
        case .awake, .falling, .asleep: nil
        case .suspending(let since): since + Self.answerTime * 2
        case .woken(let wake):
            switch wake.step {
            case .preparing: wake.since + Self.answerTime
            case .working: wake.since + Self.patience
            case .deciding(let since, _): since + Self.answerTime
            }
        }
    }

    // MARK: Events

    package mutating func handle(_ event: SleepEvent, at moment: ClockReading) -> [Command] {
        switch event {
        case .falling: return fall()
        case .machineState(let machine):
            look = .known(machine)
            return seen(machine, at: moment)
        case .delayed:
            guard lock == .requested else { return [.allowSleep] }
            lock = .held
            return proceed()
        case .notDelayed(let isUnderWay):
            guard lock == .requested else { return [] }
            if case .woken = state, isUnderWay { lock = .awaited } else { lock = .refused }
            return proceed()
        case .notSuspended:
            if case .suspending = state { state = .awake }
            return []
        }
    }

    /// Records that the alarm could not be set.
    package mutating func record(refusal why: String) {
        refusal = why
        armed = nil
    }

    /// Discards the known state of the machine, because power was connected or disconnected.
    package mutating func handlePowerChange() { if state == .awake, case .known = look { look = .none } }

    /// Returns the commands that are necessary after the wall clock was set. The alarm counts the time since boot, so it has to
    /// be set again.
    package func setAgain(at moment: ClockReading) -> [Command] { armed.map { $0 > moment.now ? [.arm($0)] : [] } ?? [] }

    /// Handles the end of a sleep. A service and the clocks may both report the end of the same sleep.
    package mutating func wake(at moment: ClockReading) -> [Command] {
        switch state {
        case .awake:
            if lock == .refused { lock = .none }
            // The machine slept, although no service announced the sleep.
            let commands = ring(before: look.machine, moment)
            if commands.isEmpty { look = .none }
            return commands
        case .falling, .asleep:
            let before: MachineState? = if case .asleep(let before) = state { before } else { look.machine }
            state = .awake
            if lock == .refused { lock = .none }
            let commands = ring(before: before, moment)
            if commands.isEmpty { look = .none }
            return commands
        case .woken(let wake):
            if lock == .awaited {
                lock = .requested
                return [.delaySleep]
            }
            // If another program waited to suspend the machine, the sleep that ended is the sleep of that program.
            if wake.isSleepAwaited { (state, look) = (.awake, .none) }
            return []
        case .suspending:
            (state, look) = (.awake, .none)
            return []
        }
    }

    /// Checks whether the alarm's instant was reached, and whether a response is overdue. Call this method before any work
    /// begins.
    package mutating func tick(at moment: ClockReading) -> [Command] {
        switch state {
        case .awake, .falling: return []
        case .asleep(let before): return ring(before: before, moment)
        case .suspending(let since):
            if moment.awake >= since + Self.answerTime * 2 { state = .awake }
            return []
        case .woken(let wake):
            guard moment.awake >= wake.since + Self.answerTime, wake.step == .preparing else { return [] }
            if !lock.isAnswered { lock = .refused }
            if look == .requested { look = .known(nil) }
            return proceed()
        }
    }

    /// Sets or removes the alarm, and decides what follows if the work is complete. Call this method after all other decisions of
    /// a pass.
    ///
    /// - Parameter wanted: The first future instant for which the machine has to be woken.
    package mutating func plan(_ wanted: Date?, isWorkDone: Bool, at moment: ClockReading) -> [Command] {
        self.wanted = wanted
        switch state {
        case .awake: return prepare()
        case .falling: return []
        // The app submitted the request just before the sleep, so the alarm is set now.
        case .asleep, .suspending: return setAlarm()
        case .woken(let wake):
            switch wake.step {
            case .preparing: return []
            case .working: return setAlarm() + work(wake, isWorkDone: isWorkDone, moment)
            case .deciding(let since, let isWorkDone):
                guard moment.awake >= since + Self.answerTime else { return [] }
                return decide(wake, nil, isWorkDone: isWorkDone, at: moment)
            }
        }
    }

    // MARK: Awake

    private mutating func prepare() -> [Command] {
        guard wanted != nil, refusal == nil else { return setAlarmOnly() }
        switch look {
        case .none:
            look = .requested
            return [.look]
        case .requested: return []
        case .known: break
        }
        guard obstacle == nil else { return setAlarmOnly() }
        var commands = setAlarm()
        if lock == .none {
            lock = .requested
            commands.append(.delaySleep)
        }
        return commands
    }

    /// Sets the wanted alarm, or removes the alarm if the machine cannot be woken.
    private mutating func setAlarm() -> [Command] {
        let instant = obstacle == nil ? wanted : nil
        guard refusal == nil, armed != instant else { return [] }
        armed = instant
        return [.arm(instant)]
    }

    private mutating func setAlarmOnly() -> [Command] {
        let commands = setAlarm()
        return lock == .none ? commands : commands + releaseHold()
    }

    private mutating func releaseHold() -> [Command] {
        lock = .none
        return [.allowSleep]
    }

    // MARK: To sleep

    private mutating func fall() -> [Command] {
        switch state {
        case .awake:
            guard armed != nil else { return [] }
            (state, look) = (.falling, .requested)
            return [.look]
        case .woken(var wake):
            wake.isSleepAwaited = true
            state = .woken(wake)
            return []
        case .suspending:
            state = .asleep(before: look.machine)
            return []
        case .falling, .asleep: return []
        }
    }

    private mutating func seen(_ machine: MachineState?, at moment: ClockReading) -> [Command] {
        switch state {
        case .awake, .asleep, .suspending: return []
        case .falling:
            state = .asleep(before: machine)
            return setAlarm() + releaseHold()
        case .woken(let wake):
            switch wake.step {
            case .preparing: return proceed()
            case .working: return []
            case .deciding(_, let isWorkDone): return decide(wake, machine, isWorkDone: isWorkDone, at: moment)
            }
        }
    }

    // MARK: Woken

    /// Handles an alarm whose instant was reached during a sleep. If the instant is long past, another cause woke the machine.
    private mutating func ring(before: MachineState?, _ moment: ClockReading) -> [Command] {
        guard let instant = armed, moment.now >= instant else { return [] }
        armed = nil
        guard moment.now <= instant.addingTimeInterval(Self.lateness) else {
            state = .awake
            return []
        }
        state = .woken(Wake(instant: instant, since: moment.awake, before: before))
        look = .requested
        guard lock != .held else { return [.look] }
        lock = .requested
        return [.delaySleep, .look]
    }

    private mutating func proceed() -> [Command] {
        guard case .woken(var wake) = state, wake.step == .preparing, lock.isAnswered, case .known(let machine) = look else {
            return []
        }
        // No work begins if the battery level is too low.
        let isSpent = machine?.isBatteryLow ?? false
        wake.step = isSpent ? .deciding(since: wake.since, isWorkDone: false) : .working
        state = .woken(wake)
        guard isSpent else { return [.serve(wake.instant)] }
        return [.serve(wake.instant)]
            + decide(wake, machine, isWorkDone: false, at: ClockReading(now: wake.instant, awake: wake.since))
    }

    private mutating func work(_ wake: Wake, isWorkDone: Bool, _ moment: ClockReading) -> [Command] {
        guard isWorkDone || moment.awake >= wake.since + Self.patience else { return [] }
        if wake.isSleepAwaited {
            state = .asleep(before: look.machine)
            return releaseHold()
        }
        var wake = wake
        wake.step = .deciding(since: moment.awake, isWorkDone: isWorkDone)
        (state, look) = (.woken(wake), .requested)
        return [.look]
    }

    private mutating func decide(_ wake: Wake, _ machine: MachineState?, isWorkDone: Bool, at moment: ClockReading) -> [Command] {
        // The user requested a sleep, so the sleep begins immediately.
        if wake.isSleepAwaited {
            state = .asleep(before: machine)
            return setAlarm() + releaseHold()
        }
        // Without the state of the machine, it is unknown whether a user is present.
        guard let machine, !machine.showsSomebody(since: wake.before) else {
            state = .awake
            return [.stay]
        }
        state = .suspending(since: moment.awake)
        return setAlarm() + releaseHold() + [.suspend(isWorkDone: isWorkDone)]
    }
}
