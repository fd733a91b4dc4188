import Foundation

/// What to do with an occurrence that passed while nobody could serve it.
public enum MissedPolicy: String, Codable, Sendable {
    /// Run once as soon as possible, however many were missed.
    case once
    /// Leave it and wait for the next; the history says so.
    case skip
}

/// A rule on a person's clock, planned again whenever the zone or the clock changes.
public enum WallClockRule: Hashable, Sendable, Codable {
    /// Every day at this time of day.
    case daily(WallClockTime)

    public var time: WallClockTime {
        switch self {
        case .daily(let time): time
        }
    }

    /// The first occurrence strictly after `instant` on the clocks of `zone`.
    ///
    /// - A day on which the time is skipped (clocks go 12:00 → 13:00) has its occurrence at the first instant after the gap.
    /// - A day on which the time comes twice has it at the first one, once.
    /// - A day that does not exist (Apia, 2011-12-30) has none.
    ///
    /// `Calendar.nextDate` is not used: it drops a whole day around gaps that are not one hour long.
    /// Cost: a few look-ups in the zone's table. Always finds one: no zone has ever skipped two days.
    public func next(after instant: Date, in zone: TimeZone) -> Date {
        var day = CivilDay(of: instant, in: zone).adding(days: -1)
        while true {
            if let occurrence = occurrence(on: day, in: zone), occurrence > instant { return occurrence }
            day = day.adding(days: 1)
        }
    }

    /// The next occurrence after one has been served: strictly after both now and what was served, so that a
    /// clock stepped back does not serve the same noon twice.
    ///
    /// What was served further ahead than ``servedAhead`` was served by a clock that was wrong, and does not count.
    public func next(after now: Date, served: Date?, in zone: TimeZone) -> Date {
        guard let served, Self.counts(served: served, now: now) else { return next(after: now, in: zone) }
        return next(after: max(now, served), in: zone)
    }

    /// Whether what was served then was served by a clock that can be believed now.
    package static func counts(served: Date, now: Date) -> Bool { served <= now.addingTimeInterval(servedAhead) }

    /// Seconds, half the period of a daily rule: how far ahead of now something that was served may lie. A clock that is stepped back
    /// by less serves nothing twice; one that was ahead by a day or a year leaves nothing out.
    public static let servedAhead: Double = 43_200

    private func occurrence(on day: CivilDay, in zone: TimeZone) -> Date? {
        let wanted = Double(day.daysSince1970) * 86_400 + Double(time.secondsIntoDay)
        // Every offset in force near that moment: no zone changes its offset twice within two days of one noon
        // without one of these three seeing it.
        let offsets = Set([-86_400.0, 0, 86_400].map { offset(of: zone, at: wanted + $0) })
        let exact = offsets.map { wanted - $0 }.filter { $0 + offset(of: zone, at: $0) == wanted }
        if let first = exact.min() { return Date(timeIntervalSince1970: first) }

        // In a gap. The transition lies between the two readings of the wanted time.
        guard let early = offsets.max(), let late = offsets.min(), early > late else { return nil }
        let transition = firstInstantAfterGap(from: wanted - early, to: wanted - late, wanted: wanted, in: zone)
        // The gap may reach to midnight (23:00 → 00:00 in Nuuk): the day exists if it is there on either side.
        let sides = [transition - 1, transition].map { CivilDay(of: Date(timeIntervalSince1970: $0), in: zone) }
        return sides.contains(day) ? Date(timeIntervalSince1970: transition) : nil
    }

    /// Local time jumps over `wanted` between the two instants; whole seconds are enough, as zone tables have no fractions.
    private func firstInstantAfterGap(from start: Double, to end: Double, wanted: Double, in zone: TimeZone) -> Double {
        var before = start - 1
        var after = end
        while after - before > 1 {
            let middle = ((before + after) / 2).rounded(.down)
            if middle + offset(of: zone, at: middle) < wanted { before = middle } else { after = middle }
        }
        return after
    }

    private func offset(of zone: TimeZone, at seconds: Double) -> Double {
        Double(zone.secondsFromGMT(for: Date(timeIntervalSince1970: seconds)))
    }
}
