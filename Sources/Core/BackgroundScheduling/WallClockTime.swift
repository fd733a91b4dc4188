import Foundation

/// A time of day on the user's clock, such as 12:00. The date of this time depends on the day and the time zone.
/// ``WallClockRule/next(after:in:)`` computes this date.
public struct WallClockTime: Hashable, Sendable, Codable, CustomStringConvertible {
    public let hour: Int
    public let minute: Int
    public let second: Int

    /// Creates a time. Returns `nil` if a value is outside its range: 0–23 for hours, 0–59 for minutes and seconds.
    public init?(hour: Int, minute: Int, second: Int = 0) {
        guard (0..<24).contains(hour), (0..<60).contains(minute), (0..<60).contains(second) else { return nil }
        self.hour = hour
        self.minute = minute
        self.second = second
    }

    /// Reads a text of the form "HH:MM" or "HH:MM:SS". Returns `nil` for any other text.
    public init?(parsing text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3 else { return nil }
        var numbers: [Int] = []
        for part in parts {
            guard (1...2).contains(part.count), part.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(part)
            else { return nil }
            numbers.append(number)
        }
        self.init(hour: numbers[0], minute: numbers[1], second: numbers.count == 3 ? numbers[2] : 0)
    }

    public static let noon = WallClockTime(unchecked: 12)
    public static let midnight = WallClockTime(unchecked: 0)

    private init(unchecked hour: Int) {
        self.hour = hour
        minute = 0
        second = 0
    }

    public var secondsIntoDay: Int { hour * 3600 + minute * 60 + second }

    /// The time as "12:00", or as "12:00:05" if the seconds are not 0.
    public var description: String {
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let short = padded(hour) + ":" + padded(minute)
        return second == 0 ? short : short + ":" + padded(second)
    }
}

/// A day of the proleptic Gregorian calendar, counted from 1970-01-01. Calculations with days need no time zone, so they are also
/// correct for days with 23 or 25 hours.
struct CivilDay: Hashable, Comparable {
    var daysSince1970: Int

    static func < (one: CivilDay, other: CivilDay) -> Bool { one.daysSince1970 < other.daysSince1970 }

    /// Creates the day that clocks in `zone` show at `instant`.
    init(of instant: Date, in zone: TimeZone) {
        let local = instant.timeIntervalSince1970 + Double(zone.secondsFromGMT(for: instant))
        daysSince1970 = Int((local / 86_400).rounded(.down))
    }

    init(daysSince1970: Int) { self.daysSince1970 = daysSince1970 }

    func adding(days: Int) -> CivilDay { CivilDay(daysSince1970: daysSince1970 + days) }
}
