import Foundation

/// The trigger of a notification: a rule that determines the fire dates.
package enum NoticeTrigger: Codable, Equatable, Sendable {
    /// The notification is due when this number of seconds has passed since the app added the notification. If `repeats` is
    /// `true`, the notification is due again after each further interval.
    case interval(Double, repeats: Bool)
    /// The notification is due at the first date at which the wall clock matches these components. If `repeats` is `true`, the
    /// notification is due at every such date.
    case calendar(DateComponents, repeats: Bool)

    package var repeats: Bool {
        switch self {
        case .interval(_, let repeats), .calendar(_, let repeats): repeats
        }
    }

    /// Returns the first fire date after a date, or `nil` if no fire date follows.
    ///
    /// If the time zone skips this time of day when its clocks change, the fire date is the end of the skipped period. If the
    /// time of day occurs twice, the fire date is the first occurrence.
    ///
    /// - Parameters:
    ///   - date: The date after which to search. A fire date at exactly this date is not returned.
    ///   - zone: The time zone for components without a time zone.
    package func next(after date: Date, zone: TimeZone) -> Date? {
        switch self {
        // A stored interval may be shorter than a minute. If the notification repeats, an interval of one minute is then used, so
        // that the user is not alerted too often.
        case .interval(let seconds, let repeats):
            seconds.isFinite && seconds > 0 ? date.addingTimeInterval(max(seconds, repeats ? Self.shortestStep : 0)) : nil
        case .calendar(let components, _): Self.next(components, after: date, zone)
        }
    }

    /// The minimum length of a repeating interval in seconds.
    package static let shortestStep = 60.0

    private static func next(_ components: DateComponents, after date: Date, _ zone: TimeZone) -> Date? {
        var calendar = components.calendar ?? Calendar(identifier: .gregorian)
        calendar.timeZone = components.timeZone ?? zone
        var wanted = components
        (wanted.calendar, wanted.timeZone) = (nil, nil)
        guard hasValue(wanted), isPossible(wanted) else { return nil }
        // Some components do not define a single time of day, for example a minute of any hour. Foundation computes dates for
        // such components. For a time of day that a clock change skips, Foundation's results are not consistent.
        guard let time = timeOfDay(&wanted) else {
            return calendar.nextDate(after: date, matching: wanted, matchingPolicy: .strict)
        }
        var noon = wanted
        noon.hour = 12
        let zone = calendar.timeZone
        var last = date.addingTimeInterval(-2 * 86_400)
        // The loop tries several days, because the search begins two days before `date`. The fire dates on the first days may be
        // before `date`.
        for _ in 0..<5 {
            guard let day = calendar.nextDate(after: last, matching: noon, matchingPolicy: .strict) else { return nil }
            let found = instant(of: time, onTheDayOf: day, zone)
            if found > date { return found }
            last = day
        }
        return nil
    }

    /// Removes the time of day from the components and returns the time in seconds. Returns `nil` if the components do not define
    /// a single time of day.
    private static func timeOfDay(_ components: inout DateComponents) -> Double? {
        let isOfADay = components.hour == nil && components.minute == nil && components.second == nil
        guard components.hour != nil || isOfADay else { return nil }
        let seconds = (components.hour ?? 0) * 3_600 + (components.minute ?? 0) * 60 + (components.second ?? 0)
        (components.hour, components.minute, components.second, components.nanosecond) = (nil, nil, nil, nil)
        return Double(seconds)
    }

    /// Returns the first instant at which clocks show the time. If a clock change skips the time, returns the instant of the
    /// clock change.
    private static func instant(of time: Double, onTheDayOf day: Date, _ zone: TimeZone) -> Date {
        func offset(_ instant: Double) -> Double { Double(zone.secondsFromGMT(for: Date(timeIntervalSince1970: instant))) }
        let seconds = day.timeIntervalSince1970
        let midnight = ((seconds + offset(seconds)) / 86_400).rounded(.down) * 86_400
        let wall = midnight + time
        let offsets = [offset(wall - 2 * 86_400), offset(wall + 2 * 86_400)].sorted(by: >)
        if let shown = offsets.first(where: { offset(wall - $0) == $0 }) { return Date(timeIntervalSince1970: wall - shown) }
        // The search uses whole seconds. Between the two instants, the offset of the time zone changes once.
        var (before, after) = (wall - offsets[0], wall - offsets[1])
        let late = offset(after)
        while after - before > 1 {
            let middle = ((before + after) / 2).rounded(.down)
            if offset(middle) == late { after = middle } else { before = middle }
        }
        return Date(timeIntervalSince1970: after)
    }

    private static let fields: [KeyPath<DateComponents, Int?> & Sendable] = [
        \.era, \.year, \.month, \.day, \.hour, \.minute, \.second, \.nanosecond, \.weekday, \.weekdayOrdinal, \.quarter,
        \.weekOfMonth,
        \.weekOfYear, \.yearForWeekOfYear,
    ]

    private static func hasValue(_ components: DateComponents) -> Bool { fields.contains { components[keyPath: $0] != nil } }

    /// Returns `false` for dates that never occur. Foundation would search thousands of years for such dates.
    private static func isPossible(_ components: DateComponents) -> Bool {
        let ranges: [(KeyPath<DateComponents, Int?>, ClosedRange<Int>)] = [
            (\.month, 1...13), (\.day, 1...31), (\.hour, 0...23), (\.minute, 0...59), (\.second, 0...59), (\.weekday, 1...7),
            (\.weekdayOrdinal, -5...5), (\.quarter, 1...4), (\.weekOfMonth, 0...6), (\.weekOfYear, 1...54), (\.year, 1...9999),
        ]
        guard ranges.allSatisfy({ field, range in components[keyPath: field].map(range.contains) ?? true }) else { return false }
        let longest = [1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31]
        guard let day = components.day, let month = components.month, components.calendar == nil else { return true }
        return day <= longest[month] ?? 31
    }
}

/// The fire dates of a waiting notification.
///
/// The type is pure. The ledger stores the schedule with the notification. A calendar trigger follows the wall clock, so it is
/// evaluated again after the clock is set.
package struct NoticeSchedule: Codable, Equatable, Sendable {
    package let trigger: NoticeTrigger
    /// The date after which fire dates are computed. This date is the date at which the notification was added, or the last
    /// consumed fire date.
    package private(set) var anchor: Date
    /// The time zone in which `next` was computed.
    package private(set) var zone: String
    /// The next fire date of the notification. `nil` if no fire date follows.
    package private(set) var next: Date?
    /// The last fire date that was consumed. `nil` if no fire date was consumed.
    package private(set) var served: Date?

    /// The maximum number of seconds by which the clock can be set back without a second notification for a consumed fire date.
    private static let longestStepBack: Double = 86_400

    /// Creates a schedule. Returns `nil` if the notification would never be shown.
    package init?(_ trigger: NoticeTrigger, now: Date, zone: TimeZone) {
        guard let next = trigger.next(after: now, zone: zone) else { return nil }
        (self.trigger, anchor, self.zone, self.next) = (trigger, now, zone.identifier, next)
    }

    /// Returns the schedule, computed again for this date and this time zone.
    ///
    /// An anchor in the future was recorded while the clock was ahead. Such an anchor is corrected, because otherwise every fire
    /// date would be late by the error of the clock.
    package func read(now: Date, zone: TimeZone) -> NoticeSchedule {
        // If the clock is set back a little, the clock reaches a consumed fire date a second time.
        let isServed = isOfACalendar && served != nil && anchor.timeIntervalSince(now) <= Self.longestStepBack
        guard next != nil, anchor > now && !isServed || zone.identifier != self.zone else { return self }
        var schedule = self
        if !isServed { schedule.anchor = min(anchor, now) }
        schedule.zone = zone.identifier
        if anchor > now || isOfTheWall { schedule.next = trigger.next(after: schedule.anchor, zone: zone) }
        return schedule
    }

    /// Consumes the due fire date. The next fire date is after the consumed fire date and after now. Several missed fire dates
    /// are consumed together.
    package mutating func consume(now: Date, zone: TimeZone) {
        guard let due = next else { return }
        guard trigger.repeats else { return next = nil }
        anchor = max(due, now)
        served = due
        if case .interval(let seconds, _) = trigger, seconds >= NoticeTrigger.shortestStep {
            // The fire dates of a repeated interval do not depend on the time at which the notification was shown.
            anchor = due.addingTimeInterval((max(0, now.timeIntervalSince(due)) / seconds).rounded(.down) * seconds)
        }
        (self.zone, next) = (zone.identifier, trigger.next(after: anchor, zone: zone))
    }

    /// Removes the next fire date.
    package mutating func cancel() { next = nil }

    private var isOfACalendar: Bool {
        if case .calendar = trigger { true } else { false }
    }

    private var isOfTheWall: Bool {
        switch trigger {
        case .interval: false
        case .calendar(let components, _): components.timeZone == nil
        }
    }
}
