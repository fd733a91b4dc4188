import Foundation

/// The machine is woken for what is due, and sent back to sleep when that is done and nobody came: events in, commands out.
///
/// The lock that delays a sleep is held for as long as an alarm is set. So the battery is looked at once more before each sleep, and the
/// alarm taken off where too little is left. The lock is let go of as soon as that is known: a person's sleep waits for two
/// questions, and not for the service's limit of 5 s. In a sleep that has not come to its end the lock cannot be had (systemd#14045), nor can
/// another sleep begin: work waits for the end, and takes the lock first.
package struct SystemWake: Sendable, Equatable {
    /// Seconds that a machine which nobody came to stays awake, at most.
    package static let patience: Double = 20
    /// Seconds after its instant at which a wake is still that of the alarm.
    static let lateness: Double = 15
    /// Seconds that a service may take to answer.
    static let answerTime: Double = 5

    package enum Command: Sendable, Equatable {
        case arm(Date?)
        case look
        case delaySleep
        case allowSleep
        /// The machine was woken for this instant: to be written down before any work begins, so that it is never used again.
        case serve(Date)
        /// - isWorkDone: `false`: its time is over, and what is under way goes on at the next wake.
        case suspend(isWorkDone: Bool)
        /// Somebody is there, or nobody can say: the machine stays awake.
        case stay
    }

    /// One instant on both clocks.
    package struct Moment: Sendable, Equatable {
        package var now: Date
        /// Seconds that the machine has been awake.
        package var awake: Double

        package init(now: Date, awake: Double) { (self.now, self.awake) = (now, awake) }
    }

    private enum State: Sendable, Equatable {
        case awake
        /// About to sleep: it is looked at for the last time.
        case falling
        /// As far as anybody said. What it was like before tells whether somebody came.
        case asleep(before: MachineLook?)
        case woken(Wake)
        /// It was asked to sleep, at so many seconds awake.
        case suspending(since: Double)
    }

    private struct Wake: Sendable, Equatable {
        let instant: Date
        /// Seconds awake at its begin.
        let since: Double
        var before: MachineLook?
        var step = Step.preparing
        /// Somebody else sends the machine to sleep, and waits for the lock.
        var isSleepAwaited = false
    }

    private enum Step: Sendable, Equatable {
        /// No work yet: the lock and a look are waited for.
        case preparing
        case working
        /// Whether somebody came is asked.
        case deciding(since: Double, isWorkDone: Bool)
    }

    private enum Lock: Sendable, Equatable {
        case none, asked, held, refused
        /// To be had when the sleep that is under way has ended.
        case awaited

        var isAnswered: Bool { self == .held || self == .refused }
    }

    private enum Look: Sendable, Equatable {
        case none, asked
        case known(MachineLook?)

        var machine: MachineLook? { if case .known(let look) = self { look } else { nil } }
    }

    private var state = State.awake
    private var lock = Lock.none
    private var look = Look.none
    private var refusal: String?
    /// The instant of the alarm that is set.
    private var armed: Date?
    /// The first instant to come for which the machine is to be woken.
    private var wanted: Date?

    package init() {}

    // MARK: What others may know

    /// Why no alarm is set although one is wanted.
    package var obstacle: WakeObstacle? {
        guard wanted != nil else { return nil }
        if let refusal { return .noAlarm(refusal) }
        guard case .known(let machine) = look else { return nil }
        guard let machine else { return .noSleepManager }
        return machine.isBatteryLow ? .lowBattery : nil
    }

    package var alarm: Date? { armed }

    /// Due work waits: the lock is not held yet, or the machine is on its way back to sleep.
    package var holdsWork: Bool {
        switch state {
        case .woken(let wake): wake.step == .preparing
        case .suspending: true
        case .awake, .falling, .asleep: false
        }
    }

    /// Whether anything depends on work being done.
    package var isAtWork: Bool { if case .woken = state { true } else { false } }

    /// The alarm dies with its process, and only who stays hears of a battery that was charged.
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

    /// When it has to be asked again, in seconds awake; `nil`: events alone matter.
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

    package mutating func hear(_ event: SleepEvent, at moment: Moment) -> [Command] {
        switch event {
        case .falling: return fall()
        case .looked(let machine):
            look = .known(machine)
            return seen(machine, at: moment)
        case .delayed:
            guard lock == .asked else { return [.allowSleep] }
            lock = .held
            return proceed()
        case .notDelayed(let isUnderWay):
            guard lock == .asked else { return [] }
            if case .woken = state, isUnderWay { lock = .awaited } else { lock = .refused }
            return proceed()
        case .notSuspended:
            if case .suspending = state { state = .awake }
            return []
        }
    }

    /// The alarm could not be set.
    package mutating func hear(refusal why: String) {
        refusal = why
        armed = nil
    }

    /// Power was plugged in or out: what was seen is old.
    package mutating func notePower() { if state == .awake, case .known = look { look = .none } }

    /// The wall clock was set: an alarm runs by the time since boot.
    package func setAgain(at moment: Moment) -> [Command] { armed.map { $0 > moment.now ? [.arm($0)] : [] } ?? [] }

    /// A sleep has ended, as a service or the clocks say; both may, one after the other.
    package mutating func wake(at moment: Moment) -> [Command] {
        switch state {
        case .awake:
            if lock == .refused { lock = .none }
            // Nobody said that it would sleep.
            let commands = ring(before: look.machine, moment)
            if commands.isEmpty { look = .none }
            return commands
        case .falling, .asleep:
            let before: MachineLook? = if case .asleep(let before) = state { before } else { look.machine }
            state = .awake
            if lock == .refused { lock = .none }
            let commands = ring(before: before, moment)
            if commands.isEmpty { look = .none }
            return commands
        case .woken(let wake):
            if lock == .awaited {
                lock = .asked
                return [.delaySleep]
            }
            // Somebody else sent it to sleep, and woke it.
            if wake.isSleepAwaited { (state, look) = (.awake, .none) }
            return []
        case .suspending:
            (state, look) = (.awake, .none)
            return []
        }
    }

    /// The alarm's instant may have come, or an answer be overdue. Before any work begins.
    package mutating func tick(at moment: Moment) -> [Command] {
        switch state {
        case .awake, .falling: return []
        case .asleep(let before): return ring(before: before, moment)
        case .suspending(let since):
            if moment.awake >= since + Self.answerTime * 2 { state = .awake }
            return []
        case .woken(let wake):
            guard moment.awake >= wake.since + Self.answerTime, wake.step == .preparing else { return [] }
            if !lock.isAnswered { lock = .refused }
            if look == .asked { look = .known(nil) }
            return proceed()
        }
    }

    /// What is wanted, and whether anything is still to do. After everything else that a pass decides.
    ///
    /// - Parameter wanted: the first instant to come for which the machine is to be woken.
    package mutating func plan(_ wanted: Date?, isWorkDone: Bool, at moment: Moment) -> [Command] {
        self.wanted = wanted
        switch state {
        case .awake: return prepare()
        case .falling: return []
        // Asked for at the last moment.
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
        guard wanted != nil, refusal == nil else { return leaveAlone() }
        switch look {
        case .none:
            look = .asked
            return [.look]
        case .asked: return []
        case .known: break
        }
        guard obstacle == nil else { return leaveAlone() }
        var commands = setAlarm()
        if lock == .none {
            lock = .asked
            commands.append(.delaySleep)
        }
        return commands
    }

    /// The one that is wanted, or none where something keeps the machine from being woken.
    private mutating func setAlarm() -> [Command] {
        let instant = obstacle == nil ? wanted : nil
        guard refusal == nil, armed != instant else { return [] }
        armed = instant
        return [.arm(instant)]
    }

    private mutating func leaveAlone() -> [Command] {
        let commands = setAlarm()
        return lock == .none ? commands : commands + letGo()
    }

    private mutating func letGo() -> [Command] {
        lock = .none
        return [.allowSleep]
    }

    // MARK: To sleep

    private mutating func fall() -> [Command] {
        switch state {
        case .awake:
            guard armed != nil else { return [] }
            (state, look) = (.falling, .asked)
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

    private mutating func seen(_ machine: MachineLook?, at moment: Moment) -> [Command] {
        switch state {
        case .awake, .asleep, .suspending: return []
        case .falling:
            state = .asleep(before: machine)
            return setAlarm() + letGo()
        case .woken(let wake):
            switch wake.step {
            case .preparing: return proceed()
            case .working: return []
            case .deciding(_, let isWorkDone): return decide(wake, machine, isWorkDone: isWorkDone, at: moment)
            }
        }
    }

    // MARK: Woken

    /// Where the alarm's instant has come in a sleep. One that is long past woke nobody.
    private mutating func ring(before: MachineLook?, _ moment: Moment) -> [Command] {
        guard let instant = armed, moment.now >= instant else { return [] }
        armed = nil
        guard moment.now <= instant.addingTimeInterval(Self.lateness) else {
            state = .awake
            return []
        }
        state = .woken(Wake(instant: instant, since: moment.awake, before: before))
        look = .asked
        guard lock != .held else { return [.look] }
        lock = .asked
        return [.delaySleep, .look]
    }

    private mutating func proceed() -> [Command] {
        guard case .woken(var wake) = state, wake.step == .preparing, lock.isAnswered, case .known(let machine) = look else {
            return []
        }
        // With too little left nothing is begun.
        let isSpent = machine?.isBatteryLow ?? false
        wake.step = isSpent ? .deciding(since: wake.since, isWorkDone: false) : .working
        state = .woken(wake)
        guard isSpent else { return [.serve(wake.instant)] }
        return [.serve(wake.instant)]
            + decide(wake, machine, isWorkDone: false, at: Moment(now: wake.instant, awake: wake.since))
    }

    private mutating func work(_ wake: Wake, isWorkDone: Bool, _ moment: Moment) -> [Command] {
        guard isWorkDone || moment.awake >= wake.since + Self.patience else { return [] }
        if wake.isSleepAwaited {
            state = .asleep(before: look.machine)
            return letGo()
        }
        var wake = wake
        wake.step = .deciding(since: moment.awake, isWorkDone: isWorkDone)
        (state, look) = (.woken(wake), .asked)
        return [.look]
    }

    private mutating func decide(_ wake: Wake, _ machine: MachineLook?, isWorkDone: Bool, at moment: Moment) -> [Command] {
        // A person's own sleep waits for nothing.
        if wake.isSleepAwaited {
            state = .asleep(before: machine)
            return setAlarm() + letGo()
        }
        // Without an answer nobody knows.
        guard let machine, !machine.showsSomebody(since: wake.before) else {
            state = .awake
            return [.stay]
        }
        state = .suspending(since: moment.awake)
        return setAlarm() + letGo() + [.suspend(isWorkDone: isWorkDone)]
    }
}
