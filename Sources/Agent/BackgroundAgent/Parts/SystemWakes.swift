import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Wakes the machine for due work. This part stores the decisions of ``SystemWake`` and turns these decisions into effects.
struct SystemWakes {
    private var machine = SystemWake()

    /// `true` if due requests have to wait. The agent does not hold the lock that delays sleep yet, or the machine is about to
    /// sleep again.
    var holdsWork: Bool { machine.holdsWork }
    var needsAgent: Bool { machine.needsAgent }

    // MARK: Events

    mutating func handle(_ event: SleepEvent, _ pass: inout Pass) throws {
        if case .notSuspended(let why) = event { pass.log(.sleepRefused, (.reason, why)) }
        try follow(machine.handle(event, at: Self.moment(pass)), &pass)
    }

    mutating func record(_ refusal: WakeRefusal) { machine.record(refusal: refusal.description) }
    mutating func handlePowerChange() { machine.handlePowerChange() }
    mutating func handleWake(_ pass: inout Pass) throws { try follow(machine.wake(at: Self.moment(pass)), &pass) }

    mutating func resetAlarm(_ pass: inout Pass) throws { try follow(machine.setAgain(at: Self.moment(pass)), &pass) }

    // MARK: Planning

    mutating func tick(_ pass: inout Pass) throws { try follow(machine.tick(at: Self.moment(pass)), &pass) }

    mutating func plan(_ pass: inout Pass, hasAttempts: Bool) throws {
        let wanted = try Self.wanted(pass)
        let isWorkDone =
            try machine.isAtWork && !hasAttempts && pass.transaction.liveLaunches().isEmpty
            && !pass.transaction.hasDueWake(now: pass.now)
        try follow(machine.plan(wanted, isWorkDone: isWorkDone, at: Self.moment(pass)), &pass)
        if let deadline = machine.deadline { pass.wake(at: pass.moment.date(atAwake: deadline)) }
        // The next pass starts at the alarm, even if no work becomes due at this time. For example, the request for which the
        // machine wakes may also wait for external power.
        if let alarm = machine.alarm, alarm > pass.now { pass.wake(at: alarm) }
        try report(isWanted: wanted != nil, &pass)
    }

    /// Returns the next date at which the machine has to be woken. A date for which the machine was already woken is not returned
    /// again, even if the clock was set.
    private static func wanted(_ pass: Pass) throws -> Date? {
        guard let next = try pass.transaction.nextWake(after: pass.now) else { return nil }
        guard let served = try pass.transaction.fact(.servedWake), WallClockRule.counts(served: served, now: pass.now),
            served >= next
        else { return next }
        return try pass.transaction.nextWake(after: served)
    }

    private static func moment(_ pass: Pass) -> SystemWake.ClockReading { .init(now: pass.now, awake: pass.moment.awake) }

    /// Writes the report that the commands `why` and `doctor` show.
    private func report(isWanted: Bool, _ pass: inout Pass) throws {
        let known = try pass.transaction.fact(.alarm)
        guard isWanted else { return try pass.transaction.setFact(.alarm, nil) }
        guard known?.alarm != machine.alarm || known?.obstacle != machine.obstacle || known == nil else { return }
        try pass.transaction.setFact(.alarm, AlarmReport(alarm: machine.alarm, obstacle: machine.obstacle, since: pass.now))
        if let obstacle = machine.obstacle, obstacle != known?.obstacle { pass.log(.alarmMissing, (.reason, obstacle.words)) }
    }

    private func follow(_ commands: [SystemWake.Command], _ pass: inout Pass) throws {
        for command in commands {
            switch command {
            case .arm(let instant): pass.perform(.armAlarm(instant))
            case .look: pass.perform(.lookAtMachine)
            case .delaySleep: pass.perform(.delaySleep)
            case .allowSleep: pass.perform(.allowSleep)
            case .serve(let instant):
                try pass.transaction.setFact(.servedWake, instant)
                pass.log(.machineWoken, (.instant, instant.formatted(.iso8601)))
            case .suspend(let isWorkDone):
                pass.perform(.suspendMachine)
                pass.log(
                    .machineSleepsAgain,
                    (.reason, isWorkDone ? "the work is complete" : "the time limit is reached, or the battery is too low"))
            case .stay: pass.log(.machineStaysAwake)
            }
        }
    }
}
