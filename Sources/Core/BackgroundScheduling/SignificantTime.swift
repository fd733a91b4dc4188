import Foundation

/// The parts of the time whose change a user would notice: the day, the time zone and the offset of the time zone.
package struct SignificantTime: Sendable, Equatable, Codable {
    package var zone: String
    /// The offset from UTC in seconds. Offsets to the east are positive. Daylight saving time changes the offset.
    package var offset: Int
    /// The number of days since 1970-01-01 in the user's time zone.
    package var day: Int

    package init(at now: Date, in zone: TimeZone) {
        self.zone = zone.identifier
        offset = zone.secondsFromGMT(for: now)
        day = CivilDay(of: now, in: zone).daysSince1970
    }

    /// Returns a text for the history about the change since `earlier`, or `nil` if a user would notice no change.
    package func change(since earlier: SignificantTime) -> String? {
        if zone != earlier.zone { return "the time zone changed from \(earlier.zone) to \(zone)" }
        if offset != earlier.offset { return "the clocks changed by \((offset - earlier.offset) / 60) min" }
        if day != earlier.day { return "a new day began" }
        return nil
    }

    /// Returns the date of the next regular change. This date is the next midnight or the next daylight saving change of the time
    /// zone, whichever is earlier.
    package static func nextChange(after now: Date, in zone: TimeZone) -> Date {
        let midnight = WallClockRule.daily(.midnight).next(after: now, in: zone)
        guard let change = zone.nextDaylightSavingTimeTransition(after: now), change > now else { return midnight }
        return min(midnight, change)
    }
}
