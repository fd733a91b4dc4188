import Foundation

/// The hours of the day in which no notification is shown, for example 22:00–07:00. If the end is earlier than the start, the
/// quiet hours end on the next day.
package struct QuietHours: Sendable, Equatable {
    /// The start of the quiet hours, in seconds since midnight.
    package let start: Int
    package let end: Int

    /// Reads a text such as "22:00-07:00". Returns `nil` for any other text, and if the start and the end are equal.
    package init?(parsing text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = Self.seconds(parts[0]), let end = Self.seconds(parts[1]), start != end
        else { return nil }
        self.start = start
        self.end = end
    }

    private static func seconds(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, text.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ":") }), let hour = Int(parts[0]),
            let minute = Int(parts[1]), (0..<24).contains(hour),
            (0..<60).contains(minute)
        else { return nil }
        return hour * 3600 + minute * 60
    }

    /// Returns the end of the quiet hours that contain `instant`, or `nil` if `instant` is not in quiet hours.
    package func end(covering instant: Date, in zone: TimeZone) -> Date? {
        let local = instant.timeIntervalSince1970 + Double(zone.secondsFromGMT(for: instant))
        let second = local - (local / 86_400).rounded(.down) * 86_400
        let isInside =
            start < end
            ? second >= Double(start) && second < Double(end) : second >= Double(start) || second < Double(end)
        guard isInside else { return nil }
        let rest = Double(end) - second
        let plain = instant.addingTimeInterval(rest > 0 ? rest : rest + 86_400)
        // A night in which the clocks change is longer or shorter than usual. If the clock change skips the end of the quiet
        // hours, the quiet hours end a little later.
        let shift = zone.secondsFromGMT(for: plain) - zone.secondsFromGMT(for: instant)
        let exact = plain.addingTimeInterval(-Double(shift))
        return zone.secondsFromGMT(for: exact) == zone.secondsFromGMT(for: plain) ? exact : plain
    }
}

/// The user's settings for notifications.
package struct NoticeRules: Sendable, Equatable {
    /// `false` if no notification is shown.
    package var isEnabled = true
    package var quietHours: QuietHours?
    /// The lowest interruption level that is shown even in quiet hours. `nil` if quiet hours apply to all levels.
    package var loudLevel: Int?
    /// The categories of notifications that the user switched off.
    package var silencedCategories: Set<String> = []

    package init() {}
}

/// Decides when an added notification is shown.
package enum NoticeTiming {
    package enum Verdict: Sendable, Equatable {
        case show
        case wait(until: Date)
        /// The user switched off notifications of this kind, so the notification is not shown.
        case silenced
    }

    /// The number of seconds for which a notification is kept although the user switched its category off. If the user switches
    /// notifications on again within this time, the notification is shown.
    package static let longestSilence: Double = 86_400

    /// Returns whether and when a notification is shown.
    ///
    /// - Parameters:
    ///   - dueAt: The due date, or `nil` if the notification is due immediately.
    ///   - level: 0 passive, 1 active, 2 time sensitive, 3 critical.
    package static func verdict(
        dueAt: Date?, level: Int, category: String, _ rules: NoticeRules, now: Date, zone: TimeZone
    ) -> Verdict {
        if let dueAt, dueAt > now { return .wait(until: dueAt) }
        guard rules.isEnabled, category.isEmpty || !rules.silencedCategories.contains(category) else { return .silenced }
        if let loud = rules.loudLevel, level >= loud { return .show }
        if let end = rules.quietHours?.end(covering: now, in: zone) { return .wait(until: end) }
        return .show
    }
}
