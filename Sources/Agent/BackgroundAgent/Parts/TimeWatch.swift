import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Detects whether the clock was set, the time zone was changed, or the machine has slept.
struct TimeWatch {
    /// The present time zone.
    private(set) var zone: TimeZone
    /// The date since which this agent has watched without interruption: its start, the end of the last sleep, or the last
    /// change of the clock.
    private(set) var observingSince: Date
    /// `true` if rules with wall-clock times have to be planned again.
    private(set) var mustReplan = true
    /// `true` if the clock was set back by more than a usual correction. Times that were recorded before that came from a wrong
    /// clock.
    private var wasAhead = false
    /// The number of seconds by which the clock was set back since times were planned.
    private var setBack: Double = 0
    /// The time when this agent last recorded a check.
    private var lastRecorded: Date?
    /// The wall clock minus the seconds awake, at the last check.
    private var offset: Double
    /// The seconds that the machine had slept, at the last check.
    private var slept: Double

    init(_ moment: ClockReading) {
        (zone, observingSince, slept) = (moment.zone, moment.now, moment.slept)
        offset = Self.offset(moment)
    }

    private static func offset(_ moment: ClockReading) -> Double { moment.now.timeIntervalSince1970 - moment.awake }

    /// The change of the clocks since the last check.
    struct Change {
        /// The seconds that the wall clock moved against the time awake, because it was set or because of a sleep.
        var shift: Double
        /// `true` if the host slept. The kernel's counter shows a sleep earlier than a bus signal, and also without a bus.
        var hasSlept: Bool
    }

    /// Returns the time that the clock would show if it had not been set since the last check.
    func undisturbed(_ moment: ClockReading) -> Date { Date(timeIntervalSince1970: moment.awake + offset) }

    /// Checks the clocks. Called first in a pass: a budget is a time span, and the jump of a clock must not end it. A time in which
    /// no attempt was possible must not count as a time without progress.
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

    /// - Parameter skipped: the seconds that this agent slept, or that were added to the clock.
    private mutating func creditTimeAway(_ skipped: Double, _ pass: Pass) throws {
        var away = skipped
        if lastRecorded == nil, let seen = try pass.transaction.fact(.lookedAt) {
            // An agent that exited until a planned time missed nothing before that time.
            let absence = try pass.transaction.fact(.absence)
            let planned = absence.map { $0.until ?? pass.now } ?? seen
            away += max(pass.now.timeIntervalSince(max(seen, planned)), 0)
        }
        if away > Self.notAway { try pass.transaction.creditTimeAway(away, now: pass.now) }
        if let lastRecorded, abs(pass.now.timeIntervalSince(lastRecorded)) < Self.recordingInterval { return }
        try pass.transaction.setFact(.lookedAt, pass.now)
        lastRecorded = pass.now
    }

    /// The maximum number of seconds that do not count as an absence.
    private static let notAway: Double = 60
    /// The number of seconds between two records of a check. After a crash, a new agent credits at most this much too much, plus the time
    /// in which there was nothing to check.
    private static let recordingInterval: Double = 300

    /// Handles a change of the clock, or the end of a sleep. Planned times may have been missed.
    mutating func handleTimeJump(_ pass: Pass) {
        mustReplan = true
        observingSince = pass.now
    }

    mutating func handleZoneChange() { mustReplan = true }

    /// Plans wall-clock rules again when the clock or the zone changed, unless their time has already come.
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
