import Foundation

/// The words of a storm's notification: plain text, English, times in the given locale and zone.
package enum StormText {
    /// "Storm expected in Sydney".
    package static func title(place: String) -> String {
        let name = place.singleLine(limit: 80)
        return name.isEmpty ? "Storm expected" : "Storm expected in \(name)"
    }

    /// What comes and when, worst kind first: "Strong thunderstorm from 17:00 to 20:00, gusts up to 92 km/h."
    /// A reason at another time than the one before it has its own times. Empty without reasons.
    ///
    /// - Parameters:
    ///   - timeZone: of the place. Where its clocks do not show what the reader's show, the times name it.
    ///   - reader: the zone of whoever reads it.
    package static func body(
        _ reasons: [StormReason], timeZone: TimeZone, reader: TimeZone = .current, locale: Locale, units: WeatherUnits
    ) -> String {
        let kinds = StormReasonKind.allCases
        let ordered = reasons.enumerated().sorted { left, right in
            let leftRank = (kinds.firstIndex(of: left.element.kind) ?? 0, left.element.from, left.offset)
            return leftRank < (kinds.firstIndex(of: right.element.kind) ?? 0, right.element.from, right.offset)
        }.map(\.element)
        var spoken: StormWindow?
        let phrases = ordered.map { reason in
            if let window = spoken, window.contains(reason.window) { return reason.phrase(in: units) }
            spoken = reason.window
            return reason.phrase(in: units) + " " + span(reason.window, timeZone: timeZone, reader: reader, locale: locale)
        }
        guard let first = phrases.first else { return "" }
        return ([first.prefix(1).uppercased() + first.dropFirst()] + phrases.dropFirst()).joined(separator: ", ") + "."
    }

    /// "from 17:00 to 20:00".
    package static func span(
        _ window: StormWindow, timeZone: TimeZone, reader: TimeZone = .current, locale: Locale
    ) -> String {
        // Within a day the hours say it all; "from 17:00 to 17:00" would not.
        let needsDay = window.until.timeIntervalSince(window.from) >= 86_400
        var style = Date.FormatStyle(locale: locale, timeZone: timeZone).hour().minute()
        if needsDay { style = style.weekday(.abbreviated) }
        // A day of the week names one of seven.
        if window.until.timeIntervalSince(window.from) >= 6 * 86_400 { style = style.day().month(.abbreviated) }
        // ICU puts narrow no-break spaces before "PM"; notification servers and terminals lack the glyph.
        func clock(_ date: Date) -> String { date.formatted(style).replacingOccurrences(of: "\u{202F}", with: " ") }
        let isReaders = [window.from, window.until].allSatisfy {
            timeZone.secondsFromGMT(for: $0) == reader.secondsFromGMT(for: $0)
        }
        return "from \(clock(window.from)) to \(clock(window.until))" + (isReaders ? "" : " (\(timeZone.identifier) time)")
    }
}
