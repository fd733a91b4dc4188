import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Tells time that passes from a clock that was set, a zone that changed and a sleep.
struct TimeWatch {
    /// The zone in force.
    private(set) var zone: TimeZone
    /// Since when nothing kept this agent from looking: its start, the end of a sleep, a clock that was set.
    private(set) var lookingSince: Date
    /// Wall-clock rules have to be planned anew.
    private(set) var mustReplan = true
    /// It was set back by more than it is mistaken by in passing: what was written just now was written by a clock that was wrong.
    private var wasAhead = false
    /// Seconds that the clock was set back since moments were planned.
    private var setBack: Double = 0
    /// When this agent last noted that it looked.
    private var lastNoted: Date?
    /// Wall clock minus seconds awake, as last seen.
    private var offset: Double
    /// Seconds slept, as last seen.
    private var slept: Double

    init(_ moment: Moment) {
        (zone, lookingSince, slept) = (moment.zone, moment.now, moment.slept)
        offset = Self.offset(moment)
    }

    private static func offset(_ moment: Moment) -> Double { moment.now.timeIntervalSince1970 - moment.awake }

    /// What happened to the clocks since the look before.
    struct Change {
        /// By how many seconds the wall clock moved against the time awake: it was set, or stood still in sleep.
        var shift: Double
        /// The host slept: the kernel's count says so before anybody on a bus does, and without a bus.
        var hasSlept: Bool
    }

    /// What the clock would show if nobody had set it since the look before.
    func undisturbed(_ moment: Moment) -> Date { Date(timeIntervalSince1970: moment.awake + offset) }

    /// Before anything else in a pass: a budget is a span, and the jump itself must not end one; nor may a time in which nobody could try
    /// count as one without progress.
    mutating func look(_ pass: inout Pass) throws -> Change {
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

    /// - Parameter skipped: seconds that this agent slept, or that somebody added to the clock.
    private mutating func creditTimeAway(_ skipped: Double, _ pass: Pass) throws {
        var away = skipped
        if lastNoted == nil, let seen = try pass.transaction.fact(.lookedAt) {
            // One that left until a moment missed nothing before that.
            let absence = try pass.transaction.fact(.absence)
            let planned = absence.map { $0.until ?? pass.now } ?? seen
            away += max(pass.now.timeIntervalSince(max(seen, planned)), 0)
        }
        if away > Self.notAway { try pass.transaction.creditTimeAway(away, now: pass.now) }
        if let lastNoted, abs(pass.now.timeIntervalSince(lastNoted)) < Self.notingInterval { return }
        try pass.transaction.setFact(.lookedAt, pass.now)
        lastNoted = pass.now
    }

    /// Seconds that are no absence.
    private static let notAway: Double = 60
    /// Seconds between two notes of when an agent looked: a new one after a crash credits at most so much too much, and the time in which
    /// there was nothing to look at.
    private static let notingInterval: Double = 300

    /// The clock was set, or the host woke: what lies behind may have been missed.
    mutating func noteJump(_ pass: Pass) {
        mustReplan = true
        lookingSince = pass.now
    }

    mutating func noteZone() { mustReplan = true }

    /// Wall-clock rules are planned anew when the clock or the zone changed, unless their moment has already come.
    mutating func plan(_ pass: inout Pass) throws {
        guard mustReplan else { return }
        mustReplan = false
        let limit = wasAhead ? pass.now : pass.now.addingTimeInterval(WallClockRule.servedAhead)
        wasAhead = false
        try pass.transaction.mendMoments(beyond: limit, now: pass.now)
        let replanned = try pass.transaction.planAgain(
            backoffBase: pass.settings.backoffBase, now: pass.now, in: pass.zone)
        for identifier in replanned { pass.log(.requestReplanned, (.identifier, identifier)) }
        let latestAttempt = pass.now.addingTimeInterval(RetryPolicy.standard.maximumRetryAfter)
        try pass.transaction.shortenTransferDelays(by: setBack, to: latestAttempt)
        setBack = 0
    }
}
