import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Detects changes of the clock and the time zone, and sleep of the machine.
struct TimeWatch {
    /// The current time zone.
    private(set) var zone: TimeZone
    /// The date since which this agent has observed the time without interruption. The date is the start of the agent, the end of
    /// the last sleep, or the last change of the clock.
    private(set) var observingSince: Date
    /// `true` if rules with wall-clock times have to be planned again.
    private(set) var mustReplan = true
    /// `true` if the clock was set back by more than a usual correction. In this case, the dates that were recorded earlier came
    /// from a wrong clock.
    private var wasAhead = false
    /// The number of seconds by which the clock was set back after dates were last planned.
    private var setBack: Double = 0
    /// The date at which this agent last recorded a check.
    private var lastRecorded: Date?
    /// The difference between the wall clock and the clock that stops during sleep, at the last check.
    private var offset: Double
    /// The number of seconds for which the machine had slept, at the last check.
    private var slept: Double

    init(_ moment: ClockReading) {
        (zone, observingSince, slept) = (moment.zone, moment.now, moment.slept)
        offset = Self.offset(moment)
    }

    private static func offset(_ moment: ClockReading) -> Double { moment.now.timeIntervalSince1970 - moment.awake }

    /// The change of the clocks since the last check.
    struct Change {
        /// The number of seconds by which the wall clock moved relative to the time awake. The cause is a set clock or a sleep.
        var shift: Double
        /// `true` if the host slept. The kernel's counter shows a sleep earlier than a signal of the bus, and also if no bus is
        /// available.
        var hasSlept: Bool
    }

    /// Returns the time that the clock would show if it had not been set after the last check.
    func undisturbed(_ moment: ClockReading) -> Date { Date(timeIntervalSince1970: moment.awake + offset) }

    /// Checks the clocks. This method is called first in a pass, because a change of a clock must not end a budget (a length of
    /// time). Time in which no attempt was possible must also not count as time without progress.
    mutating func check(_ pass: inout Pass) throws -> Change {
        let shift = Self.offset(pass.moment) - offset
        offset += shift
        let hasSlept = pass.moment.slept > slept + 1
        slept = pass.moment.slept
        if abs(shift) > 0.5 { mustReplan = true }
        if shift < -0.5 { setBack -= shift }
        if shift < -WallClockRule.servedAhead { wasAhead = true }
        if pass.zone != zone {
            zone = pass.zone
            pass.log(.zoneChanged, (.zone, zone.identifier))
        }
        try creditTimeAway(max(shift, 0), pass)
        return Change(shift: abs(shift) > 0.5 ? shift : 0, hasSlept: hasSlept)
    }

    /// - Parameter skipped: the number of seconds for which the machine slept or by which the clock was set forward.
    private mutating func creditTimeAway(_ skipped: Double, _ pass: Pass) throws {
        var away = skipped
        if lastRecorded == nil, let seen = try pass.transaction.fact(.lookedAt) {
            // The clock was set back while no agent was running. An earlier agent computed the dates of pauses with the old clock.
            setBack += max(seen.timeIntervalSince(pass.now), 0)
            // If an agent exited until a planned date, no work was missed before this date.
            let absence = try pass.transaction.fact(.absence)
            let planned = absence.map { $0.until ?? pass.now } ?? seen
            away += max(pass.now.timeIntervalSince(max(seen, planned)), 0)
        }
        if away > Self.notAway { try pass.transaction.creditTimeAway(away, now: pass.now) }
        if let lastRecorded, abs(pass.now.timeIntervalSince(lastRecorded)) < Self.recordingInterval { return }
        try pass.transaction.setFact(.lookedAt, pass.now)
        lastRecorded = pass.now
    }

    /// Time in which no agent ran or the machine slept is ignored if it is at most this number of seconds.
    private static let notAway: Double = 60
    /// The number of seconds after which the time of a check is recorded again. After a crash, a new agent treats the time after
    /// the last record as time in which no agent ran. The earlier agent may have been running for up to this number of seconds of
    /// that time.
    private static let recordingInterval: Double = 300

    /// Handles a change of the clock, or the end of a sleep. The agent may have missed planned dates.
    mutating func handleTimeJump(_ pass: Pass) {
        mustReplan = true
        observingSince = pass.now
    }

    mutating func handleZoneChange() { mustReplan = true }

    /// Plans rules with wall-clock times again after a change of the clock or the time zone. Occurrences that are already due are
    /// not changed.
    mutating func plan(_ pass: inout Pass) throws {
        guard mustReplan else { return }
        mustReplan = false
        let limit = wasAhead ? pass.now : pass.now.addingTimeInterval(WallClockRule.servedAhead)
        wasAhead = false
        try pass.transaction.correctFutureDates(beyond: limit, now: pass.now)
        let replanned = try pass.transaction.planAgain(
            backoffBase: pass.settings.backoffBase, now: pass.now, in: pass.zone)
        for identifier in replanned { pass.log(.requestReplanned, (.identifier, identifier)) }
        let latestAttempt = pass.now.addingTimeInterval(RetryPolicy.standard.maximumRetryAfter)
        try pass.transaction.shortenTransferDelays(by: setBack, to: latestAttempt)
        setBack = 0
    }
}
