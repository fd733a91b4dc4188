import Foundation

/// The state of one storm at one place. The state consists of the newest data about the storm, and of the notifications that were
/// shown to the user.
///
/// All rules about this state are in this type. The page StormLife describes the rules. The type has no side effects: the input
/// is an event, and the output is a list of commands. The store keeps the state in one row. The commands depend only on the
/// difference between the newest data and the data that the user was shown. For this reason, if a process is killed before it
/// stores the state, the next process receives the same commands.
package struct StormLife: Sendable, Equatable {
    /// The outlook for the storm according to the newest data.
    package enum Outlook: String, Sendable, Codable {
        /// A value is at or above its limit, or an official warning is in force.
        case expected
        /// All values are below their limits, and a value is at 80 % of its limit or above.
        case weaker
        /// All values are below 80 % of their limits, and no official warning is in force.
        case notExpected
        /// The storm was merged into another storm of the same place.
        case joined
    }

    /// The notifications about one storm that were shown to the user.
    package struct Shown: Sendable, Equatable, Codable {
        /// The facts about the storm in the last notification with an alert. These facts can change until the notification is
        /// shown.
        package var alerted: Facts
        /// The last value of ``alerted`` that was on the screen. `nil` if no alert was on the screen.
        package var seen: Facts?
        /// The highest level that was ever on the screen.
        package var highest: StormSeverity?
        /// The times at which another alert for the storm was shown. Before each of these times, the storm was called off (marked
        /// as no longer expected) or had ended, and was then expected again.
        package var returns: [Date] = []

        /// `true` if the storm was ever on the screen.
        package var isSeen: Bool { highest != nil }
    }

    /// The state of the storm's notifications.
    package indirect enum Phase: Sendable, Equatable, Codable {
        /// No notification of the storm was shown.
        case unshown
        case shown(Shown)
        /// The storm is called off, which means that it is marked as no longer expected. The user was shown "No longer expected",
        /// or had dismissed the notification of the storm before.
        case calledOff(Shown)
        /// The notification was withdrawn and the storm was closed at this time. If the clock was ahead when the storm was
        /// closed, the storm may not have ended.
        case over(Phase, at: Date)
    }

    /// The part of the state that is also stored in the notification. If a process was killed before it stored the state, the
    /// part in the notification is newer than the part in the store. The part in the notification is also newer if the store was
    /// restored from a backup.
    package struct Memory: Sendable, Equatable, Codable {
        /// A counter that increases with each change on the screen.
        package var step = 0
        package var phase = Phase.unshown
    }

    /// An event of a storm.
    package enum Event: Sendable, Equatable {
        /// A forecast or warnings were assessed. The reasons belong to this storm.
        case judged([StormReason], StormCheckData)
        /// The storm was merged into another storm.
        case joined
        /// A check read the state of the notification. Only this event contains the current time.
        ///
        /// `mayAlert`: `false` if the forecast has not arrived yet, or if the command only withdraws notifications.
        case checked(StormNotificationState, mayAlert: Bool = true, now: Date)
    }

    /// A command to the caller, for example to show a notification. A repeated command has no additional effect.
    package enum Command: Sendable, Equatable {
        case alert
        /// Shows the storm again without an alert.
        case showSilently
        /// Changes the text of a visible or waiting notification, without an alert.
        case update
        /// Replaces the notification with "No longer expected", without an alert.
        case callOff
        /// Removes all notifications of the storm.
        case withdraw
        case openPhotoRequest
        case closePhotoRequest
    }

    /// If the storm is now expected to begin earlier by at least this number of seconds, another alert is shown.
    package static let earlierStart: Double = 3 * 3600
    /// The maximum number of alerts within ``returnSpan`` for a storm that was called off and is expected again. After this
    /// number of alerts, the storm is shown without an alert.
    package static let alertingReturns = 3
    /// The period before the current time, in seconds, in which the alerts for ``alertingReturns`` are counted.
    package static let returnSpan: Double = 86_400

    /// The hours in which the storm is expected.
    package private(set) var window: StormWindow
    /// The reasons in the newest data that contained the storm.
    package private(set) var reasons: [StormReason]
    package private(set) var outlook: Outlook
    package private(set) var memory: Memory

    /// Creates a state from its stored fields. The default values are for a new storm.
    package init(
        window: StormWindow, reasons: [StormReason], outlook: Outlook = .expected, memory: Memory = Memory()
    ) {
        (self.window, self.reasons, self.outlook, self.memory) = (window, reasons, outlook, memory)
    }

    /// The notifications of the storm that were shown to the user. `nil` if no notification was shown.
    package var shown: Shown? { memory.phase.shown }

    /// `true` if the storm was shown, and was not called off or closed after that.
    package var isShown: Bool { if case .shown = memory.phase { true } else { false } }

    /// Returns whether the newest data contains the storm, and the storm ends in the future.
    package func isOpen(now: Date) -> Bool {
        guard outlook == .expected || outlook == .weaker, window.until > now else { return false }
        // The storm may have been closed while the clock was ahead, or may have been extended since then.
        if case .over(_, let closed) = memory.phase { return closed > now || outlook == .expected }
        return true
    }

    /// `true` if the storm was withdrawn and closed.
    package var isClosed: Bool { if case .over = memory.phase { true } else { false } }

    package var level: StormSeverity { StormSeverity(reasons) }
    private var facts: Facts { Facts(of: reasons, begins: window.from) }

    /// Applies an event.
    ///
    /// - Returns: The commands to carry out now, in this order. The caller then stores the state.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .judged(let seen, let look): judge(seen, look)
        case .joined: outlook = .joined
        case .checked(let answer, let mayAlert, let now): return check(answer, mayAlert, now)
        }
        return []
    }

    // MARK: What is known

    private mutating func judge(_ seen: [StormReason], _ look: StormCheckData) {
        followKinds(seen)
        var (left, isDenied, isWeaker, isKept) = (seen, false, false, false)
        // If a storm is expected again after it was called off, the storm consists only of new reasons.
        let known = outlook == .notExpected ? [] : reasons
        for var reason in known where reason.until > look.now && !seen.contains(where: reason.isReplaced) {
            switch look.word(on: reason, in: window) {
            case .unknown: isKept = true
            case .weaker(let peak): (reason.peak, isWeaker) = (peak, true)
            case .denied:
                isDenied = true
                continue
            }
            left.append(reason)
        }
        if seen.isEmpty {
            // A storm that was called off is expected again only if the new data contains the storm.
            if outlook == .notExpected { return }
            if left.isEmpty {
                // If all reasons are in the past, the storm has ended and is not called off.
                let last = reasons.map(\.until).max() ?? window.until
                if isDenied { outlook = .notExpected } else { window = StormWindow(from: min(window.from, last), until: last) }
                return
            }
            if isWeaker, !isKept { outlook = .weaker }
        } else {
            outlook = .expected
        }
        reasons = StormReason.sorted(left)
        let first = left.map(\.from).min() ?? window.from
        // If the storm has already begun, its beginning does not become later.
        let from = window.from <= look.now ? min(window.from, first) : first
        window = StormWindow(from: from, until: left.map(\.until).max() ?? window.until)
    }

    /// Records the new name of an extreme warning that was shown, if an update renames the warning. The renamed warning is the
    /// same warning, so no new alert is shown.
    private mutating func followKinds(_ seen: [StormReason]) {
        guard var shown, let known = shown.alerted.extremes else { return }
        let updated = reasons.filter { $0.extremeKind.map(known.contains) ?? false }
        shown.alerted.add(
            extremes: seen.filter { update in updated.contains { $0.isReplaced(by: update) } }.compactMap(\.extremeKind))
        if shown.alerted.extremes != known { memory.phase.shown = shown }
    }

    /// Adds the hours, the reasons and the notifications of another storm.
    mutating func absorb(_ other: StormLife, now: Date) {
        reasons += other.reasons.filter { !reasons.contains($0) }
        if other.window.from <= now { window.from = min(window.from, other.window.from) }
        guard case .shown(let theirs) = other.memory.phase, var own = shown else { return }
        own.alerted = own.alerted.joined(with: theirs.alerted)
        own.seen = own.seen?.joined(with: theirs.seen) ?? theirs.seen
        own.highest = [own.highest, theirs.highest].compactMap { $0 }.max()
        memory.phase.shown = own
    }

    // MARK: What is shown

    private mutating func check(_ answer: StormNotificationState, _ mayAlert: Bool, _ now: Date) -> [Command] {
        let late = adopt(answer)
        if outlook == .joined || window.until <= now { return late + close(answer, now) }
        return late + (outlook == .notExpected ? callOff(answer) : show(answer, mayAlert, now))
    }

    /// Replaces ``memory`` with the copy in the notification, if this copy is newer.
    private mutating func adopt(_ answer: StormNotificationState) -> [Command] {
        var commands: [Command] = []
        if let newer = answer.memory, newer.step > memory.step {
            memory = newer
            switch newer.phase {
            case .unshown: break
            case .shown: commands = photoRequest(answer)
            case .calledOff, .over: commands = [.closePhotoRequest]
            }
        }
        if answer.state.isSeen, var shown = memory.phase.shown {
            shown.seen = shown.alerted
            shown.highest = max(shown.highest ?? .moderate, shown.alerted.level)
            memory.phase.shown = shown
        }
        return commands
    }

    private func photoRequest(_ answer: StormNotificationState) -> [Command] { answer.hasPhoto ? [] : [.openPhotoRequest] }

    private mutating func close(_ answer: StormNotificationState, _ now: Date) -> [Command] {
        if isClosed { return [] }
        let wasShown = memory.phase != .unshown
        memory = Memory(step: memory.step + 1, phase: .over(memory.phase, at: now))
        guard wasShown else { return [] }
        // If the user dismissed the notification, the notification is not withdrawn. A dismissed notification is not on the
        // screen, and still contains the user's response.
        return (answer.state == .dismissed ? [] : [.withdraw]) + [.closePhotoRequest]
    }

    private mutating func callOff(_ answer: StormNotificationState) -> [Command] {
        guard case .shown(let shown) = memory.phase else { return [] }
        memory.step += 1
        if !shown.isSeen {
            memory.phase = .unshown
            return [.withdraw, .closePhotoRequest]
        }
        memory.phase = .calledOff(shown)
        switch answer.state {
        case .visible, .waiting: return [.callOff, .closePhotoRequest]
        case .snoozed: return [.withdraw, .closePhotoRequest]
        case .dismissed, .ended, .unseen, .withdrawn, .none: return [.closePhotoRequest]
        }
    }

    private mutating func show(_ answer: StormNotificationState, _ mayAlert: Bool, _ now: Date) -> [Command] {
        switch memory.phase {
        case .unshown: return mayAlert ? alert(answer) : []
        case .shown(let shown): return show(shown, answer, mayAlert, now)
        case .calledOff(let shown): return comeBack(shown, answer, mayAlert, now)
        case .over(let before, let closed):
            guard closed > now else {
                guard let shown else { return mayAlert ? alert(answer) : [] }
                return comeBack(shown, answer, mayAlert, now)
            }
            // The clock was ahead when the storm was closed, so the storm had not ended.
            memory = Memory(step: memory.step + 1, phase: before)
            let commands = show(answer, mayAlert, now)
            guard case .shown = before, answer.state == .withdrawn, !commands.contains(.alert) else { return commands }
            return [.showSilently] + photoRequest(answer)
        }
    }

    private mutating func show(_ shown: Shown, _ answer: StormNotificationState, _ mayAlert: Bool, _ now: Date) -> [Command] {
        let isUnseen = answer.state == .unseen && (facts.isHigher(than: shown.seen) || facts.isAnotherHazard(than: shown.seen))
        // The text of a notification on the screen can change to another hazard without an alert. A notification that has left
        // the screen cannot change.
        let isOnScreen = answer.state == .visible || answer.state == .ended
        let isMore = facts.isHigher(than: shown.alerted) || !isOnScreen && facts.isAnotherHazard(than: shown.alerted)
        if mayAlert, outlook == .expected, isUnseen || isMore { return alert(answer, after: shown) }
        if outlook == .weaker, answer.state == .waiting {
            // The storm became weaker than the limits before the user saw the alert.
            memory = Memory(step: memory.step + 1, phase: shown.isSeen ? .calledOff(shown) : .unshown)
            return [.withdraw, .closePhotoRequest]
        }
        switch answer.state {
        case .visible, .snoozed:
            // The user sees the current warnings in the new text, so these warnings count as shown.
            var changed = shown
            changed.alerted.add(extremes: facts.extremes)
            if answer.state == .visible { changed.alerted.add(hazards: facts.hazards) }
            memory = Memory(step: memory.step + (changed == shown ? 0 : 1), phase: .shown(changed))
            return [.update]
        case .waiting:
            // An alert that was not shown yet gets the newest text.
            var changed = shown
            changed.alerted = facts.joined(with: shown.seen)
            let isSilent = shown.alerted.hasMore(than: shown.seen) && !changed.alerted.hasMore(than: shown.seen)
            memory = Memory(step: memory.step + (isSilent ? 1 : 0), phase: .shown(changed))
            // No alert is necessary if the user has already seen these facts.
            return [isSilent ? .showSilently : .update]
        // The notification left the screen at the storm's earlier end, and the storm now lasts longer.
        case .ended: return comeBack(shown, answer, mayAlert, now)
        case .dismissed, .unseen, .withdrawn, .none: return []
        }
    }

    /// - Parameter shown: The earlier alerts of the same notification.
    private mutating func alert(_ answer: StormNotificationState, after shown: Shown? = nil) -> [Command] {
        guard outlook == .expected else { return [] }
        var new = shown ?? Shown(alerted: facts)
        new.alerted = facts.joined(with: shown?.seen)
        memory = Memory(step: memory.step + 1, phase: .shown(new))
        return [.alert] + photoRequest(answer)
    }

    private mutating func comeBack(_ shown: Shown, _ answer: StormNotificationState, _ mayAlert: Bool, _ now: Date) -> [Command] {
        guard mayAlert, outlook == .expected else { return [] }
        // A time in the future is ignored, because the clock was ahead at that time.
        let recent = shown.returns.filter { $0 <= now && now.timeIntervalSince($0) < Self.returnSpan }
        var facts = facts
        let isNew =
            facts.level > shown.highest ?? .moderate || facts.isWarned && !shown.alerted.isWarned
            || facts.isAnotherExtreme(than: shown.alerted) || facts.isAnotherHazard(than: shown.alerted)
        // If an alert for a warning was shown before the storm was called off, this warning does not cause another alert.
        facts.add(warningsOf: shown.alerted)
        let isSilent = recent.count >= Self.alertingReturns && !isNew
        // If the storm is shown again without an alert, the next alert requires a level that is higher than all earlier levels.
        if isSilent {
            facts.level = max(facts.level, shown.highest ?? .moderate)
            facts.isWarned = facts.isWarned || shown.alerted.isWarned
        }
        let new = Shown(
            alerted: facts, seen: isSilent ? facts : nil, highest: shown.highest, returns: isSilent ? recent : recent + [now])
        memory = Memory(step: memory.step + 1, phase: .shown(new))
        return [isSilent ? .showSilently : .alert] + photoRequest(answer)
    }
}

extension StormLife.Phase {
    /// The notifications that the user was shown. `nil` if no notification was shown.
    package internal(set) var shown: StormLife.Shown? {
        get {
            switch self {
            case .unshown: nil
            case .shown(let shown), .calledOff(let shown): shown
            case .over(let before, _): before.shown
            }
        }
        set {
            guard let newValue else { return }
            switch self {
            case .unshown: break
            case .shown: self = .shown(newValue)
            case .calledOff: self = .calledOff(newValue)
            case .over(var before, let closed):
                before.shown = newValue
                self = .over(before, at: closed)
            }
        }
    }
}

extension StormSeverity: Codable {}

extension StormLife.Memory {
    /// Creates the part of the state from the flags that an earlier version stored. No second alert is shown for a storm that the
    /// earlier version had shown.
    package init(
        earlierVersionOf reasons: [StormReason], begins: Date, ends: Date, isShown: Bool, isClosed: Bool, isCancelled: Bool
    ) {
        self.init()
        let shown = StormLife.Shown(alerted: StormLife.Facts(of: reasons, begins: begins))
        if isShown { phase = .shown(shown) }
        // The earlier version of Stormy closed a cancelled storm before the end of the storm.
        if isClosed, !isCancelled { phase = .over(phase, at: ends) }
    }
}
