import Foundation

/// What a notification waits for.
package enum NoticeTrigger: Codable, Equatable, Sendable {
    /// Seconds from when it was added; again and again where it repeats.
    case interval(Double, repeats: Bool)
    /// Instants whose components are these, on the clock on the wall; of the first of them, or of each.
    case calendar(DateComponents, repeats: Bool)

    package var repeats: Bool {
        switch self {
        case .interval(_, let repeats), .calendar(_, let repeats): repeats
        }
    }

    /// The first instant after another; `nil`: there is none.
    ///
    /// An instant that a change of clocks skips comes at its end; of one that comes twice the first counts.
    ///
    /// - Parameters:
    ///   - date: what comes at this instant itself does not count.
    ///   - zone: of components that name none.
    package func next(after date: Date, zone: TimeZone) -> Date? {
        switch self {
        // Less than a minute is no step to repeat in: whatever wrote that, nobody is to be asked for ever.
        case .interval(let seconds, let repeats):
            seconds.isFinite && seconds > 0 ? date.addingTimeInterval(max(seconds, repeats ? Self.shortestStep : 0)) : nil
        case .calendar(let components, _): Self.next(components, after: date, zone)
        }
    }

    /// Seconds.
    package static let shortestStep = 60.0

    private static func next(_ components: DateComponents, after date: Date, _ zone: TimeZone) -> Date? {
        var calendar = components.calendar ?? Calendar(identifier: .gregorian)
        calendar.timeZone = components.timeZone ?? zone
        var wanted = components
        (wanted.calendar, wanted.timeZone) = (nil, nil)
        guard hasValue(wanted), isPossible(wanted) else { return nil }
        // Foundation looks for days, and for minutes of any hour. What time of a day a change of clocks skips it answers in several ways.
        guard let time = timeOfDay(&wanted) else {
            return calendar.nextDate(after: date, matching: wanted, matchingPolicy: .strict)
        }
        var noon = wanted
        noon.hour = 12
        let zone = calendar.timeZone
        var last = date.addingTimeInterval(-2 * 86_400)
        // The first of these days may be over, and the time on the second past.
        for _ in 0..<5 {
            guard let day = calendar.nextDate(after: last, matching: noon, matchingPolicy: .strict) else { return nil }
            let found = instant(of: time, onTheDayOf: day, zone)
            if found > date { return found }
            last = day
        }
        return nil
    }

    /// Seconds into the day, taken out of the components; `nil`: they name no one time.
    private static func timeOfDay(_ components: inout DateComponents) -> Double? {
        let isOfADay = components.hour == nil && components.minute == nil && components.second == nil
        guard components.hour != nil || isOfADay else { return nil }
        let seconds = (components.hour ?? 0) * 3_600 + (components.minute ?? 0) * 60 + (components.second ?? 0)
        (components.hour, components.minute, components.second, components.nanosecond) = (nil, nil, nil, nil)
        return Double(seconds)
    }

    /// The first instant at which clocks show it; of a time that they skip, that at which they do.
    private static func instant(of time: Double, onTheDayOf day: Date, _ zone: TimeZone) -> Date {
        func offset(_ instant: Double) -> Double { Double(zone.secondsFromGMT(for: Date(timeIntervalSince1970: instant))) }
        let seconds = day.timeIntervalSince1970
        let midnight = ((seconds + offset(seconds)) / 86_400).rounded(.down) * 86_400
        let wall = midnight + time
        let offsets = [offset(wall - 2 * 86_400), offset(wall + 2 * 86_400)].sorted(by: >)
        if let shown = offsets.first(where: { offset(wall - $0) == $0 }) { return Date(timeIntervalSince1970: wall - shown) }
        // Whole seconds: between them the offset changes once.
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

    /// Foundation looks through thousands of years for what never comes.
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

/// When a notification that waits for something is shown, and when again.
///
/// Pure: what it holds is written down beside the notification. A calendar's rule is of the clock on the wall, and is read again where that
/// changed.
package struct NoticeSchedule: Codable, Equatable, Sendable {
    package let trigger: NoticeTrigger
    /// From here on instants count: the adding, or the last that was taken.
    package private(set) var anchor: Date
    /// The zone in which `next` was read.
    package private(set) var zone: String
    /// `nil`: nothing more comes.
    package private(set) var next: Date?
    /// The instant that was taken last.
    package private(set) var served: Date?

    /// Seconds by which a clock may be set back after an instant was taken without that instant coming again.
    private static let longestStepBack: Double = 86_400

    /// `nil`: it would never be shown.
    package init?(_ trigger: NoticeTrigger, now: Date, zone: TimeZone) {
        guard let next = trigger.next(after: now, zone: zone) else { return nil }
        (self.trigger, anchor, self.zone, self.next) = (trigger, now, zone.identifier, next)
    }

    /// The same as this clock in this zone reads it.
    ///
    /// An anchor that lies ahead is of a clock that was: it would keep everything waiting by as much.
    package func read(now: Date, zone: TimeZone) -> NoticeSchedule {
        // Set back by a little, the clock shows an instant again that was taken.
        let isServed = isOfACalendar && served != nil && anchor.timeIntervalSince(now) <= Self.longestStepBack
        guard next != nil, anchor > now && !isServed || zone.identifier != self.zone else { return self }
        var schedule = self
        if !isServed { schedule.anchor = min(anchor, now) }
        schedule.zone = zone.identifier
        if anchor > now || isOfTheWall { schedule.next = trigger.next(after: schedule.anchor, zone: zone) }
        return schedule
    }

    /// The instant that was due is taken: what follows lies after it, and after now. Those that were missed are one.
    package mutating func take(now: Date, zone: TimeZone) {
        guard let due = next else { return }
        guard trigger.repeats else { return next = nil }
        anchor = max(due, now)
        served = due
        if case .interval(let seconds, _) = trigger, seconds >= NoticeTrigger.shortestStep {
            // In its own step, whenever it was shown.
            anchor = due.addingTimeInterval((max(0, now.timeIntervalSince(due)) / seconds).rounded(.down) * seconds)
        }
        (self.zone, next) = (zone.identifier, trigger.next(after: anchor, zone: zone))
    }

    /// Nothing more comes.
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
