import Foundation

/// Reads and writes dates in the forms of RFC 9110 §5.6.7. The result does not depend on the calendar or the locale of the
/// machine.
package enum HTTPDate {
    /// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. Returns `nil` for
    /// any other text. The name of the day is ignored, because some servers send a wrong name and the date does not depend on the
    /// name.
    /// - Parameter now: The date that determines the century of a two-digit year. The result is at most 50 years after this date.
    ///   A fixed date is sufficient if no clock is available.
    package static func parse(_ text: String, now: Date = Date(timeIntervalSince1970: 1_800_000_000)) -> Date? {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "," }).map(String.init)
        if words.count == 6, words[5] == "GMT", let year = number(words[3], digits: 4) {
            return date(year: year, month: words[2], day: words[1], time: words[4])
        }
        if words.count == 5, let year = number(words[4], digits: 4) {
            return date(year: year, month: words[1], day: words[2], time: words[3])
        }
        if words.count == 4, words[3] == "GMT" {
            let parts = words[1].split(separator: "-").map(String.init)
            guard parts.count == 3, let short = number(parts[2], digits: 2) else { return nil }
            return date(year: fourDigits(short, now: now), month: parts[1], day: parts[0], time: words[2])
        }
        return nil
    }

    /// Returns the date in the form that RFC 9110 requires: `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func text(_ date: Date) -> String {
        let (days, time) = CivilDay.parts(Int(date.timeIntervalSince1970.rounded(.down)), of: 86_400)
        let civil = CivilDay(daysSinceEpoch: days)
        let name = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][CivilDay.parts(days, of: 7).rest]
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(name), \(two(civil.day)) \(months[civil.month - 1]) \(civil.year) \(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func date(year: Int, month: String, day: String, time: String) -> Date? {
        guard let monthIndex = months.firstIndex(of: month),
            let day = number(day, digits: 1...2), (1...31).contains(day)
        else { return nil }
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard clock.count == 3, let hour = number(clock[0], digits: 2), let minute = number(clock[1], digits: 2),
            let second = number(clock[2], digits: 2), hour < 24, minute < 60, second <= 60
        else { return nil }
        let civil = CivilDay(year: year, month: monthIndex + 1, day: day)
        let days = civil.daysSinceEpoch
        guard CivilDay(daysSinceEpoch: days) == civil else { return nil }
        return Date(timeIntervalSince1970: Double(days * 86_400 + hour * 3600 + minute * 60 + min(second, 59)))
    }

    private static func number(_ text: String, digits: Int) -> Int? { number(text, digits: digits...digits) }

    private static func number(_ text: String, digits: ClosedRange<Int>) -> Int? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(text)
    }

    private static func fourDigits(_ short: Int, now: Date) -> Int {
        let thisYear = 1970 + Int(now.timeIntervalSince1970 / 31_556_952)
        let year = thisYear - thisYear % 100 + short
        return year > thisYear + 50 ? year - 100 : year
    }
}
