import Foundation

/// The policy for an occurrence that was missed.
public enum MissedPolicy: String, Codable, Sendable {
    /// The request is launched once as soon as possible. A single launch replaces all missed occurrences.
    case once
    /// The occurrence is skipped, and the request waits for the next occurrence. The history shows the skipped occurrence.
    case skip
}

/// A rule on the user's wall clock. Requests with a rule are planned again when the time zone or the clock is set.
public enum WallClockRule: Hashable, Sendable, Codable {
    /// Every day at this time of day.
    case daily(WallClockTime)

    public var time: WallClockTime {
        switch self {
        case .daily(let time): time
        }
    }

    /// Returns the first occurrence after `instant` in the time zone `zone`.
    ///
    /// - If the clocks skip the time on a day (12:00 → 13:00), the occurrence is the first instant after the gap.
    /// - If the time occurs twice on a day, the day has a single occurrence, at the first of the two times.
    /// - A day that does not exist (Apia, 2011-12-30) has no occurrence.
    ///
    /// `Calendar.nextDate` is not used, because `Calendar.nextDate` skips a complete day around gaps that are not one hour long.
    /// The search needs a few look-ups in the zone's table. A result always exists, because no time zone has ever skipped two
    /// days.
    public func next(after instant: Date, in zone: TimeZone) -> Date {
        var day = CivilDay(of: instant, in: zone).adding(days: -1)
        while true {
            if let occurrence = occurrence(on: day, in: zone), occurrence > instant { return occurrence }
            day = day.adding(days: 1)
        }
    }

    /// Returns the next occurrence after the occurrence `served`, which was already launched. The result is later than now and
    /// later than `served`. So a clock that was set back does not repeat an occurrence.
    ///
    /// If `served` is ahead of now by more than ``servedAhead``, a wrong clock caused its launch, and `served` is ignored.
    public func next(after now: Date, served: Date?, in zone: TimeZone) -> Date {
        guard let served, Self.counts(served: served, now: now) else { return next(after: now, in: zone) }
        return next(after: max(now, served), in: zone)
    }

    /// Returns whether a served occurrence is taken into account. The occurrence is ignored if only a wrong clock can have caused
    /// its launch.
    package static func counts(served: Date, now: Date) -> Bool { served <= now.addingTimeInterval(servedAhead) }

    /// The maximum number of seconds by which an occurrence that was already launched may be ahead of now. The value is half the
    /// period of a daily rule. If a clock is set back by less than this value, no occurrence runs twice. If a clock was ahead by
    /// a day or a year, no occurrence is missed.
    public static let servedAhead: Double = 43_200

    private func occurrence(on day: CivilDay, in zone: TimeZone) -> Date? {
        let wanted = Double(day.daysSince1970) * 86_400 + Double(time.secondsIntoDay)
        // The offsets of the time zone one day before the wanted time, at the wanted time, and one day after it. No time zone has
        // more than three offsets within these two days.
        let offsets = Set([-86_400.0, 0, 86_400].map { offset(of: zone, at: wanted + $0) })
        let exact = offsets.map { wanted - $0 }.filter { $0 + offset(of: zone, at: $0) == wanted }
        if let first = exact.min() { return Date(timeIntervalSince1970: first) }

        // The clocks of this time zone skip the wanted time. The clock change is between two instants: the wanted time with the
        // greatest offset, and the wanted time with the least offset.
        guard let early = offsets.max(), let late = offsets.min(), early > late else { return nil }
        let transition = firstInstantAfterGap(from: wanted - early, to: wanted - late, wanted: wanted, in: zone)
        // The skipped hour may end at midnight (23:00 → 00:00 in Nuuk). The day exists if the instant before or after the skipped
        // hour is on this day.
        let sides = [transition - 1, transition].map { CivilDay(of: Date(timeIntervalSince1970: $0), in: zone) }
        return sides.contains(day) ? Date(timeIntervalSince1970: transition) : nil
    }

    /// Returns the first instant after the local time jumps over `wanted`. Whole seconds are sufficient, because zone tables
    /// contain no fractions of a second.
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
