import Foundation
import TransferMachines

/// Parses times in the forms that services send.
enum ServiceTime {
    /// The range of valid times: the years 1970 to 2200. Times outside this range are errors.
    private static let range = 0.0...7_258_118_400.0

    /// Returns the date of a unix time, or of a text such as `2026-02-06T16:30`, with optional seconds and zone.
    ///
    /// - Parameter utcOffset: the offset from UTC, in seconds, of times without a time zone. `nil` if such times cannot be
    ///   converted.
    static func date(_ value: JSONValue?, utcOffset: Int? = nil) -> Date? {
        // Unix times are GMT. The service's offset is not added, because the offset is only for the names of days.
        if let seconds = value?.finite { return instant(seconds) }
        return value?.text.flatMap { date($0, utcOffset: utcOffset) }
    }

    /// Parses a time of RFC 3339, 5.6. Also allowed are a lower-case "t" or a blank in the place of "T", and ISO 8601 times
    /// without seconds or without the offset's minutes.
    static func date(_ text: String, utcOffset: Int? = nil) -> Date? {
        let halves = halves(text)
        guard halves.count == 2, let (clock, zone) = clockAndZone(halves[1], utcOffset) else { return nil }
        return secondsFromEpoch(halves[0], clock).flatMap { instant($0 - Double(zone)) }
    }

    /// Returns the offset that a time contains, in seconds. `nil` if the text is not a time, or has no offset.
    static func utcOffset(of text: String) -> Int? {
        guard date(text) != nil, let clock = halves(text).last else { return nil }
        return clockAndZone(clock, nil)?.1
    }

    private static func halves(_ text: String) -> [Substring] {
        text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "T" || $0 == "t" || $0 == " " }
    }

    private static func instant(_ seconds: Double) -> Date? {
        range.contains(seconds) ? Date(timeIntervalSince1970: seconds) : nil
    }

    private static func clockAndZone(_ text: Substring, _ utcOffset: Int?) -> (Substring, Int)? {
        if text.hasSuffix("Z") || text.hasSuffix("z") { return (text.dropLast(), 0) }
        guard let sign = text.lastIndex(where: { $0 == "+" || $0 == "-" }) else { return utcOffset.map { (text, $0) } }
        var digits = text[text.index(after: sign)...].filter { $0 != ":" }
        if digits.count == 2 { digits += "00" }
        guard digits.count == 4, let hours = number(digits.prefix(2)), let minutes = number(digits.suffix(2)), hours <= 18,
            minutes < 60
        else { return nil }
        return (text[..<sign], (text[sign] == "-" ? -1 : 1) * (hours * 3600 + minutes * 60))
    }

    /// Returns the seconds since 1970, as if the time were GMT. A calendar is not used, because a calendar would use the
    /// process's time zone. A service's local times have a constant offset, even across a clock change.
    private static func secondsFromEpoch(_ date: Substring, _ time: Substring) -> Double? {
        let day = date.split(separator: "-", omittingEmptySubsequences: false).map { number($0) }
        // Fractions of a second are ignored, because they do not change the hour.
        let clock = time.prefix { $0 != "." }.split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
        guard day.count == 3, (2...3).contains(clock.count),
            let year = day[0], let month = day[1], let date = day[2], let hour = clock[0], let minute = clock[1],
            let second = clock.count == 3 ? clock[2] : 0,
            (1970...2200).contains(year), (1...12).contains(month), (1...31).contains(date),
            (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
        else { return nil }
        return Double(CivilDay(year: year, month: month, day: date).daysSinceEpoch * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ digits: some StringProtocol) -> Int? {
        guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(digits)
    }
}
