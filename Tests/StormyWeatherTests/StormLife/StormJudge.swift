import Foundation
import StormyWeather

/// Checks a sequence using only the input of each check and the screen. The judge shares no rule with ``StormLife``.
struct StormJudge {
    /// The notifications that were shown since the storm appeared in the data or returned.
    private struct Showing {
        var level: Int?
        var isWarned = false
        var hazards: [AlertHazard: Int] = [:]
        var begins: Date?

        mutating func add(_ text: StormScreen.Text, begins: Date?) {
            level = max(level ?? 0, text.level)
            isWarned = isWarned || text.isWarned
            add(text.hazards)
            if let begins { self.begins = min(self.begins ?? begins, begins) }
        }

        mutating func add(_ others: [AlertHazard: Int]) { hazards.merge(others, uniquingKeysWith: max) }

        func has(_ others: [AlertHazard: Int]) -> Bool { others.allSatisfy { hazards[$0.key] ?? -1 >= $0.value } }
    }

    /// A storm that a forecast contained.
    fileprivate struct Known {
        var peak: Double
        var hours: [Date]
        var begins: Date
    }

    private(set) var violations: [String] = []
    /// The notifications that were shown since the storm was last denied according to every interpretation of the rules.
    private var strict = Showing()
    /// The notifications that were shown since the storm was last denied according to at least one interpretation of the rules.
    private var loose = Showing()
    /// The notifications that were shown since the beginning. If a storm returns, its earlier warnings are included.
    private var ever = Showing()
    fileprivate var known: Known?
    /// The last known storm that no later data denied. For this property, incomplete data also count as a denial.
    fileprivate var undenied: Known?
    private var end = Date.distantPast
    private var (mayBeOver, isDenied, isSurelyDenied) = (false, false, false)
    private var returns: [Date] = []
    private var highest = -1
    private var wasWarnedBefore = false
    private var (wasSeen, isLostToClock) = (false, false)
    private var lastEnd = Date.distantPast
    /// The known storm. If incomplete data deny a part of the storm, the rules do not state whether they call the storm off. The
    /// judge therefore allows two interpretations. `begins` is the earlier beginning of the two interpretations, and `latest` is
    /// the later beginning.
    private typealias Support = (level: Int, isWarned: Bool, begins: Date, latest: Date)
    private var support: Support?
    /// The data of a notification that waits for a server. A process that died may have added this notification.
    private var waiting: Support?
    /// The earliest beginning of the storm that a check found before its process died without an alert. The next check may alert
    /// the user because of this beginning.
    private var owed: Date?
    private var possibleReturns: [Date] = []
    private var length = 0
    private var before = StormScreen()

    /// - Parameter input: The input of the check; `nil` if the step was not a check.
    mutating func see(_ input: StormInput?, _ screen: StormScreen, now: Date, isAhead: Bool) {
        let news = Array(screen.trace[length...])
        defer { (length, before) = (screen.trace.count, screen) }
        if before.photo == true, screen.photo != true { violations.append("photo: a given photo was forgotten") }
        if now >= lastEnd, !isAhead { (mayBeOver, isDenied) = (true, true) }
        if !isAhead, before.row?.state == .ended || screen.row?.state == .ended { mayBeOver = true }
        // The notification left the screen at the end time that its text contains.
        if !isAhead, let text = before.visible, text.until <= now { mayBeOver = true }
        guard let input else { return judge(news, nil, screen, isAhead, now) }
        if !isAhead { read(input) }
        judge(news, input, screen, isAhead, now)
        if input.isComplete { judgeEnd(input, screen, isAhead) }
        owed = input.isComplete ? nil : [owed, support?.begins].compactMap { $0 }.min()
    }

    // MARK: Inputs

    private static func level(_ kmh: Double) -> Int { kmh >= 140 ? 2 : kmh >= 105 ? 1 : 0 }
    private func warnings(_ input: StormInput) -> [StandingWarning] {
        input.warnings.filter { $0.severity == .severe || $0.severity == .extreme }
    }
    private func ahead(_ input: StormInput) -> [(start: Date, kmh: Double?)] {
        (input.gusts ?? []).filter { $0.start + 3600 > input.now && $0.start < input.now + 86_400 }
    }
    private func isFresh(_ input: StormInput) -> Bool { input.now.timeIntervalSince(input.fetchedAt) < 3600 }
    private func isFull(_ input: StormInput) -> Bool {
        let hours = ahead(input)
        return isFresh(input) && hours.count >= 24 && hours.allSatisfy { $0.kmh != nil }
    }
    private func peak(_ input: StormInput) -> Double { ahead(input).compactMap(\.kmh).max() ?? 0 }

    private mutating func read(_ input: StormInput) {
        let (warned, peak) = (warnings(input), peak(input))
        for path in [\StormJudge.known, \StormJudge.undenied] {
            self[keyPath: path]?.hours.removeAll { $0 + 3600 <= input.now }
            if self[keyPath: path]?.hours.isEmpty == true { self[keyPath: path] = nil }
        }
        let hasNoWarning = warned.isEmpty
        let there = (undenied?.hours ?? []).map { hour in (input.gusts ?? []).first { $0.start == hour }?.kmh }
        let deniesStorm = isFresh(input) && there.allSatisfy { $0.map { $0 < 60 } ?? false }
        if deniesStorm { undenied = nil }
        if hasNoWarning, undenied == nil { (mayBeOver, isDenied) = (true, true) }
        isSurelyDenied = hasNoWarning && isFull(input) && peak < 60
        if peak >= 75 {
            let hours = ahead(input).filter { ($0.kmh ?? 0) >= 75 }.map(\.start)
            known = Known(peak: peak, hours: hours, begins: hours[0])
            undenied = known
            lastEnd = max(lastEnd, (hours.last ?? .distantPast) + 3600)
        } else if isFull(input) {
            let highest = there.compactMap { $0 }.max() ?? 0
            if highest < 60 { known = nil } else { known?.peak = highest }
        }
        end = (warned.map(\.until) + (undenied.map { [$0.hours[$0.hours.count - 1] + 3600] } ?? [])).max() ?? end
        for warning in warned { lastEnd = max(lastEnd, warning.until) }
        let levels =
            (known.map { $0.peak >= 75 ? [Self.level($0.peak)] : [] } ?? []) + warned.map { $0.severity == .extreme ? 2 : 1 }
        let starts = (known.map { [$0.begins] } ?? []) + warned.map(\.from)
        let sure = (undenied.map { [$0.begins] } ?? []) + warned.map(\.from)
        support = levels.max().map { ($0, !warned.isEmpty, starts.min() ?? input.now, sure.min() ?? starts.min() ?? input.now) }
        waiting =
            if input.isComplete { support } else if let waiting, let support {
                (
                    max(waiting.level, support.level), waiting.isWarned || support.isWarned, min(waiting.begins, support.begins),
                    max(waiting.latest, support.latest)
                )
            } else { support ?? waiting }
        if peak >= 75 || !warned.isEmpty { isDenied = false }
    }

    // MARK: Changes of the screen

    private mutating func judge(
        _ news: [StormScreen.Change], _ input: StormInput?, _ screen: StormScreen, _ isAhead: Bool, _ now: Date
    ) {
        for change in news {
            switch change {
            case .alerted(let text) where text.kind == .calledOff: violations.append("called off: it alerts")
            case .alerted(let text): judgeAlert(text, input == nil ? waiting : support, now)
            case .appearedSilently(let text) where text.kind == .storm: judgeSilent(text, now, isLeft: input == nil)
            case .appearedSilently: judgeCalledOff(now)
            case .changed(let text):
                if text.kind == .calledOff { judgeCalledOff(now) }
                if text.kind == .storm, before.visible?.kind == .calledOff { judgeSilent(text, now, isLeft: input == nil) }
            case .removed: break
            }
        }
        let wasThere = before.row?.state == .visible || before.row?.state == .ended
        if isAhead, wasThere, before.row?.text.kind == .storm, screen.row?.state == .withdrawn { isLostToClock = true }
        // If the user can read the text, it contains the names of its warnings, even if it was changed silently.
        if let text = screen.visible, text.kind == .storm {
            wasSeen = true
            loose.add(text.hazards)
            ever.add(text.hazards)
        }
    }

    private mutating func judgeAlert(_ text: StormScreen.Text, _ support: Support?, _ now: Date) {
        guard let support else { return violations.append("phantom: alert for nothing") }
        if text.level > support.level { violations.append("phantom: alert at level \(text.level), \(support.level) is known") }
        if text.isWarned, !support.isWarned { violations.append("phantom: alert for a warning that does not stand") }
        let isFirst = loose.level == nil
        let isHigher = text.level > (loose.level ?? -1) || text.isWarned && !loose.isWarned
        let begins = min(support.begins, owed ?? support.begins)
        let isEarlier = loose.begins.map { $0.timeIntervalSince(begins) >= 3 * 3600 } ?? false
        // If the notification is on the screen, another hazard changes its text silently. There is one exception: the hazard is
        // extreme and all earlier extreme warnings are over.
        let extremes = [text.hazards, loose.hazards].map { Set($0.filter { $0.value == 2 }.keys) }
        let isOtherExtreme = extremes.allSatisfy { !$0.isEmpty } && extremes[0].isDisjoint(with: extremes[1])
        let isOther = before.visible == nil && !loose.has(text.hazards) || isOtherExtreme
        if mayBeOver, loose.level != nil {
            let isNew = text.level > highest || text.isWarned && !wasWarnedBefore || !ever.has(text.hazards)
            returns = recent(returns, now)
            possibleReturns.append(now)
            // A storm's return is accepted only if it is a return according to every interpretation of the rules.
            if strict.level == nil || !(isHigher || isEarlier || isOther) {
                if returns.count >= 3, !isNew { violations.append("return: the fourth alert within a day") }
                returns.append(now)
            }
            loose = Showing()
        } else if !isFirst, !isHigher, !isEarlier, !isOther {
            violations.append("doubled: alert at level \(text.level) without a cause")
        }
        appeared(text, support)
    }

    private func recent(_ dates: [Date], _ now: Date) -> [Date] {
        dates.filter { $0 <= now && now.timeIntervalSince($0) < 86_400 }
    }

    /// - Parameter isLeft: `true` if an earlier process added the notification while no notification server was running, and a
    ///   server has now shown it.
    private mutating func judgeSilent(_ text: StormScreen.Text, _ now: Date, isLeft: Bool) {
        let isCapped = mayBeOver && recent(possibleReturns, now).count >= 3
        let isKnown =
            (isLeft || !mayBeOver) && text.level <= loose.level ?? -1 && (loose.isWarned || !text.isWarned)
            && ever.has(text.hazards)
        if !isCapped, !isLostToClock, !isKnown { violations.append("unseen: shown silently") }
        if isCapped, strict.level == nil, !isLostToClock { loose = Showing() }
        appeared(text, support)
    }

    private mutating func appeared(_ text: StormScreen.Text, _ support: Support?) {
        strict.add(text, begins: support?.begins)
        loose.add(text, begins: support?.latest)
        ever.add(text.hazards)
        highest = max(highest, text.level)
        wasWarnedBefore = wasWarnedBefore || text.isWarned
        mayBeOver = false
    }

    private mutating func judgeCalledOff(_ now: Date) {
        if !wasSeen { violations.append("called off: it was not shown") }
        if !isDenied { violations.append("called off: nothing denies it") }
        let isShownAgain = before.snoozedUntil.map { $0 <= now } ?? false
        if before.row?.state == .dismissed, !isShownAgain { violations.append("called off: it was dismissed") }
    }

    // MARK: The screen after a check

    private mutating func judgeEnd(_ input: StormInput, _ screen: StormScreen, _ isAhead: Bool) {
        let isQuiet =
            screen.visible?.kind != .storm && screen.snoozedUntil == nil
            && !(screen.row?.state == .waiting && screen.row?.text.kind == .storm)
        if isAhead || input.now >= lastEnd {
            if screen.visible != nil || screen.snoozedUntil != nil || screen.row?.state == .waiting {
                violations.append("end: it is on the screen after its end")
            }
            if screen.photo == false { violations.append("end: its photo request is open after its end") }
        }
        if isAhead { return }
        if isSurelyDenied {
            if !isQuiet { violations.append("call off: it stays on the screen") }
            if screen.photo == false { violations.append("call off: its photo request stays open") }
            if let text = before.visible, text.kind == .storm, min(text.until, end) > input.now,
                screen.visible?.kind != .calledOff
            {
                violations.append("call off: the user is not shown")
            }
            strict = Showing()
        }
        let shows = peak(input) >= 75 || !warnings(input).isEmpty
        guard shows, let support, screen.hasServer else { return }
        if strict.level ?? -1 < support.level { violations.append("unseen: level \(support.level)") }
        if !warnings(input).isEmpty, !strict.isWarned { violations.append("unseen: a warning") }
        for warning in warnings(input) where !ever.has([warning.hazard: warning.severity == .extreme ? 2 : 1]) {
            violations.append("unseen: a warning of \(warning.hazard)")
        }
        let begins = (ahead(input).filter { ($0.kmh ?? 0) >= 75 }.map(\.start) + warnings(input).map(\.from)).min() ?? input.now
        if let earliest = strict.begins, earliest.timeIntervalSince(begins) >= 3 * 3600 {
            violations.append("unseen: an earlier start")
        }
        if isLostToClock {
            if screen.visible?.kind != .storm { violations.append("clock: it does not return to the screen") }
            isLostToClock = false
        }
        judgeText(input, screen)
    }

    private mutating func judgeText(_ input: StormInput, _ screen: StormScreen) {
        guard let text = screen.visible else { return }
        if screen.photo == nil { violations.append("photo: no request for a storm on the screen") }
        if text.kind != .storm { return violations.append("unseen: it says that it is called off") }
        guard isFull(input) else { return }
        let expected = peak(input)
        if expected >= 75, text.peak != expected { violations.append("text: \(text.peak), not \(expected)") }
    }
}
