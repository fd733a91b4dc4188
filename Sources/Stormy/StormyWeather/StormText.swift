import Foundation

/// The texts of a storm's notification: plain English text, with times in the given locale and time zone.
package enum StormText {
    /// Returns a title such as "Storm expected in Sydney" or "Severe storm expected in Sydney".
    package static func title(place: String, _ severity: StormSeverity = .moderate) -> String {
        let name = place.singleLine(limit: 80)
        return word(severity) + " expected" + (name.isEmpty ? "" : " in \(name)")
    }

    /// Returns a title such as "No longer expected: storm in Sydney".
    package static func calledOff(place: String) -> String {
        let name = place.singleLine(limit: 80)
        return "No longer expected: storm" + (name.isEmpty ? "" : " in \(name)")
    }

    /// Returns the reason why a storm is no longer expected. A warning may have ended, its severity may have been lowered, or the
    /// user may have removed the source of the warning.
    package static func calledOffBody(_ reasons: [StormReason]) -> String {
        reasons.allSatisfy(\.hangsOnWarnings)
            ? "No official warning of the chosen severity is valid here now." : "The newest forecast no longer shows the storm."
    }

    private static func word(_ severity: StormSeverity) -> String {
        switch severity {
        case .moderate: "Storm"
        case .severe: "Severe storm"
        case .extreme: "Extreme storm"
        }
    }

    /// Returns the expected weather with times, for example "Strong thunderstorm 17:00–20:00, gusts up to 92 km/h". The worst
    /// kind and the most severe warning are first, because some desktops show only one line. The times of a reason are shown if
    /// they differ from the times of the previous reason. The text is empty without reasons.
    ///
    /// - Parameters:
    ///   - timeZone: the time zone of the place. If the time in the reader's zone differs, the text contains the time zone.
    ///   - reader: the reader's time zone.
    ///   - now: the current time. A reason that has already begun is shown only with its end, "until 20:00". `nil` to always show
    ///     the beginning and the end.
    package static func body(
        _ reasons: [StormReason], timeZone: TimeZone, reader: TimeZone = .current, locale: Locale, units: WeatherUnits,
        now: Date? = nil
    ) -> String {
        let kinds = StormReasonKind.allCases
        func rank(_ reason: (offset: Int, element: StormReason)) -> (Int, Double, Date, Int) {
            // The peak of a warning is its severity.
            let severity = reason.element.kind == .alert ? reason.element.peak : 0
            return (kinds.firstIndex(of: reason.element.kind) ?? 0, -severity, reason.element.from, reason.offset)
        }
        let ordered = reasons.enumerated().sorted { rank($0) < rank($1) }.map(\.element)
        var spoken: StormWindow?
        let phrases = ordered.map { reason in
            let hours = Hours(timeZone: timeZone, reader: reader, locale: locale)
            if reason.hasOpenEnd == true {
                spoken = nil
                return reason.phrase(in: units) + hours.open(reason.from, now)
            }
            if let window = spoken, window.contains(reason.window) { return reason.phrase(in: units) }
            spoken = reason.window
            return reason.phrase(in: units) + " " + hours.short(reason.window, now)
        }
        guard let first = phrases.first else { return "" }
        return ([first.prefix(1).uppercased() + first.dropFirst()] + phrases.dropFirst()).joined(separator: ", ") + "."
    }

    /// Returns the headline of the most severe warning. `nil` if the warning has no headline, or if the headline is only the name
    /// of the warning.
    package static func headline(_ reasons: [StormReason]) -> String? {
        let warnings = reasons.filter { $0.kind == .alert }
        guard let worst = warnings.max(by: { $0.peak < $1.peak }), let headline = worst.texts?.headline,
            headline.lowercased() != worst.event?.lowercased()
        else { return nil }
        return headline
    }

    /// Returns the text of a period, such as "from 17:00 to 20:00" or "from 17:00, no end given".
    package static func span(
        _ window: StormWindow, hasOpenEnd: Bool = false, timeZone: TimeZone, reader: TimeZone = .current, locale: Locale
    ) -> String {
        let hours = Hours(timeZone: timeZone, reader: reader, locale: locale)
        return hasOpenEnd ? String(hours.open(window.from, nil).dropFirst()) : hours.span(window)
    }
}

/// Formats times of day at a place for a reader.
private struct Hours {
    let timeZone: TimeZone
    let reader: TimeZone
    let locale: Locale

    func span(_ window: StormWindow) -> String {
        let style = style(window)
        return "from \(clock(window.from, style)) to \(clock(window.until, style))" + zone(window)
    }

    /// Returns " from 17:00, no end given", or ", no end given" if the period has begun.
    func open(_ from: Date, _ now: Date?) -> String {
        if let now, from <= now { return ", no end given" }
        let beginning = StormWindow(from: from, until: from)
        return " from \(clock(from, style(beginning)))\(zone(beginning)), no end given"
    }

    /// Returns a short text for a period, such as "17:00–20:00", "until 20:00" or "until midnight".
    func short(_ window: StormWindow, _ now: Date?) -> String {
        let style = style(window)
        guard let now, window.from <= now else {
            return "\(clock(window.from, style))–\(clock(window.until, style))" + zone(window)
        }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = timeZone
        let isNextMidnight =
            calendar.startOfDay(for: window.until) == window.until && window.until.timeIntervalSince(now) <= 86_400
        return "until " + (isNextMidnight ? "midnight" : clock(window.until, style)) + zone(window)
    }

    private func style(_ window: StormWindow) -> Date.FormatStyle {
        // Periods of less than a day are shown without the day. A longer period also shows the day, because a text such as "from
        // 17:00 to 17:00" would be unclear.
        let length = window.until.timeIntervalSince(window.from)
        let style = Date.FormatStyle(locale: locale, timeZone: timeZone).hour().minute()
        if length < 86_400 { return style }
        // The weekday alone is used only for dates within a week, because a weekday is unique only within a week.
        return length < 6 * 86_400 ? style.weekday(.abbreviated) : style.weekday(.abbreviated).day().month(.abbreviated)
    }

    /// Removes the narrow no-break spaces that ICU puts before "PM", because notification servers and terminals lack the glyph.
    private func clock(_ date: Date, _ style: Date.FormatStyle) -> String {
        date.formatted(style).replacingOccurrences(of: "\u{202F}", with: " ")
    }

    private func zone(_ window: StormWindow) -> String {
        let isReaders = [window.from, window.until].allSatisfy {
            timeZone.secondsFromGMT(for: $0) == reader.secondsFromGMT(for: $0)
        }
        return isReaders ? "" : " (\(timeZone.identifier) time)"
    }
}
