import Foundation

/// The words of a storm's notification: plain text, English, times in the given locale and zone.
package enum StormText {
    /// "Storm expected in Sydney", "Severe storm expected in Sydney".
    package static func title(place: String, _ severity: StormSeverity = .moderate) -> String {
        let name = place.singleLine(limit: 80)
        return word(severity) + " expected" + (name.isEmpty ? "" : " in \(name)")
    }

    /// "No longer expected: storm in Sydney".
    package static func calledOff(place: String) -> String {
        let name = place.singleLine(limit: 80)
        return "No longer expected: storm" + (name.isEmpty ? "" : " in \(name)")
    }

    /// Why a storm is no longer expected. The warning may have ended, been lowered, or belong to a source that the user removed.
    package static func calledOffBody(_ reasons: [StormReason]) -> String {
        reasons.allSatisfy(\.hangsOnWarnings)
            ? "No official warning of the chosen severity is known here now." : "The newest forecast no longer shows it."
    }

    private static func word(_ severity: StormSeverity) -> String {
        switch severity {
        case .moderate: "Storm"
        case .severe: "Severe storm"
        case .extreme: "Extreme storm"
        }
    }

    /// What comes and when, worst kind and most severe warning first: "Strong thunderstorm 17:00–20:00, gusts up to 92 km/h." Some desktops show one line of it.
    /// A reason at another time than the one before it has its own times. Empty without reasons.
    ///
    /// - Parameters:
    ///   - timeZone: of the place. Where its clocks do not show what the reader's show, the times name it.
    ///   - reader: the zone of whoever reads it.
    ///   - now: what has begun by then is told by its end alone, "until 20:00"; `nil`: both are told.
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

    /// The headline of the most severe warning. `nil` if there is none, or if it says only the name of the warning.
    package static func headline(_ reasons: [StormReason]) -> String? {
        let warnings = reasons.filter { $0.kind == .alert }
        guard let worst = warnings.max(by: { $0.peak < $1.peak }), let headline = worst.texts?.headline,
            headline.lowercased() != worst.event?.lowercased()
        else { return nil }
        return headline
    }

    /// "from 17:00 to 20:00", "from 17:00, no end given".
    package static func span(
        _ window: StormWindow, hasOpenEnd: Bool = false, timeZone: TimeZone, reader: TimeZone = .current, locale: Locale
    ) -> String {
        let hours = Hours(timeZone: timeZone, reader: reader, locale: locale)
        return hasOpenEnd ? String(hours.open(window.from, nil).dropFirst()) : hours.span(window)
    }
}

/// Times of day at a place, for whoever reads them.
private struct Hours {
    let timeZone: TimeZone
    let reader: TimeZone
    let locale: Locale

    func span(_ window: StormWindow) -> String {
        let style = style(window)
        return "from \(clock(window.from, style)) to \(clock(window.until, style))" + zone(window)
    }

    /// " from 17:00, no end given", or ", no end given" if it has begun.
    func open(_ from: Date, _ now: Date?) -> String {
        if let now, from <= now { return ", no end given" }
        let beginning = StormWindow(from: from, until: from)
        return " from \(clock(from, style(beginning)))\(zone(beginning)), no end given"
    }

    /// "17:00–20:00", "until 20:00", "until midnight".
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
        // Within a day the hours say it all; "from 17:00 to 17:00" would not.
        let length = window.until.timeIntervalSince(window.from)
        let style = Date.FormatStyle(locale: locale, timeZone: timeZone).hour().minute()
        if length < 86_400 { return style }
        // A day of the week names one of seven.
        return length < 6 * 86_400 ? style.weekday(.abbreviated) : style.weekday(.abbreviated).day().month(.abbreviated)
    }

    /// ICU puts narrow no-break spaces before "PM"; notification servers and terminals lack the glyph.
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
