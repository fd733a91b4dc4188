import Foundation

/// What is known of one storm at one place, and what the user was shown of it.
///
/// Every rule about this is here, and on the page StormLife. Pure: an event changes the life, and what has to be done comes out. The store
/// keeps the life in a row. Commands are the difference between what is known and what was shown, so a process that died before it stored
/// the life gets the same commands again.
package struct StormLife: Sendable, Equatable {
    /// What the newest data that know of the storm say.
    package enum Outlook: String, Sendable, Codable {
        /// It is at or above a limit, or a warning stands.
        case expected
        /// It is between 80 % and 100 % of its limit.
        case weaker
        /// It is below 80 % of its limit, and no warning stands.
        case notExpected
        /// Another storm of the same place has taken it in.
        case joined
    }

    /// What a notification showed.
    package struct Facts: Sendable, Equatable, Codable {
        /// The highest level.
        package var level: StormSeverity
        /// An official warning was part of it.
        package var isWarned: Bool
        /// The earliest beginning that alerted.
        package var begins: Date

        fileprivate func joined(with other: Facts?) -> Facts {
            guard let other else { return self }
            return Facts(
                level: max(level, other.level), isWarned: isWarned || other.isWarned, begins: min(begins, other.begins))
        }
    }

    /// What the user was shown of a storm.
    package struct Shown: Sendable, Equatable, Codable {
        /// What alerted since the storm came or returned. A notification that waits may still change.
        package var alerted: Facts
        /// The part of ``alerted`` that the user saw.
        package var seen: Facts?
        /// The highest level that the user ever saw.
        package var highest: StormSeverity?
        /// When the storm returned after it was called off or over, and alerted.
        package var returns: [Date] = []

        /// Whether the storm was ever on the screen.
        package var isSeen: Bool { highest != nil }
    }

    /// How far the showing is.
    package indirect enum Phase: Sendable, Equatable, Codable {
        /// Nothing was shown.
        case unshown
        case shown(Shown)
        /// The user was shown that it is no longer expected, or had dismissed it.
        case calledOff(Shown)
        /// Withdrawn and closed at this time. A clock that was ahead makes this untrue.
        case over(Phase, at: Date)
    }

    /// What the notification carries of the life. It is newer than the store if a process died before it stored the life, or if the store
    /// comes from a backup.
    package struct Memory: Sendable, Equatable, Codable {
        /// Grows with each change that the screen shows.
        package var step = 0
        package var phase = Phase.unshown
    }

    /// Something happened.
    package enum Event: Sendable, Equatable {
        /// A forecast or warnings were judged; these reasons are the storm's.
        case judged([StormReason], StormLook)
        /// Another storm has taken it in.
        case joined
        /// A check read the notification. Time passes only by this event.
        ///
        /// `mayAlert`: `false` if the forecast is awaited, or if the command only withdraws.
        case checked(StormAnswer, mayAlert: Bool = true, now: Date)
    }

    /// Something to do. Each command may be repeated.
    package enum Command: Sendable, Equatable {
        case alert
        /// Shows the storm again without an alert.
        case showSilently
        /// Changes the text on the screen, or of a notification that waits, without an alert.
        case update
        /// Replaces the notification by "No longer expected", without an alert.
        case callOff
        /// Removes all notifications of the storm.
        case withdraw
        case openPhotoRequest
        case closePhotoRequest
    }

    /// A beginning that moves earlier by so many seconds alerts again.
    package static let earlierStart: Double = 3 * 3600
    /// So many returns alert in ``returnSpan``; further returns are silent.
    package static let alertingReturns = 3
    /// Seconds.
    package static let returnSpan: Double = 86_400

    /// When it is expected.
    package private(set) var window: StormWindow
    /// Why it is expected, or was last.
    package private(set) var reasons: [StormReason]
    package private(set) var outlook: Outlook
    package private(set) var memory: Memory

    /// A life as it was stored; by default of a storm that was just found.
    package init(
        window: StormWindow, reasons: [StormReason], outlook: Outlook = .expected, memory: Memory = Memory()
    ) {
        (self.window, self.reasons, self.outlook, self.memory) = (window, reasons, outlook, memory)
    }

    /// What the user was shown last; `nil` if nothing.
    package var shown: Shown? { memory.phase.shown }

    /// Whether the user was shown the storm, and not that it is no longer expected.
    package var isShown: Bool { if case .shown = memory.phase { true } else { false } }

    /// Whether it is still to come, as far as is known.
    package func isOpen(now: Date) -> Bool {
        guard outlook == .expected || outlook == .weaker, window.until > now else { return false }
        // Closed under a clock that was ahead, or extended since.
        if case .over(_, let closed) = memory.phase { return closed > now || outlook == .expected }
        return true
    }

    /// Whether a later check has something to withdraw or to close.
    package var isClosed: Bool { if case .over = memory.phase { true } else { false } }

    package var level: StormSeverity { StormSeverity(reasons) }
    private var facts: Facts {
        Facts(
            level: level, isWarned: reasons.contains { $0.kind == .alert }, begins: reasons.map(\.from).min() ?? window.from)
    }

    /// Changes the life by what happened.
    ///
    /// - Returns: What is to be done now, in this order. The life is stored afterwards.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .judged(let seen, let look): judge(seen, look)
        case .joined: outlook = .joined
        case .checked(let answer, let mayAlert, let now): return check(answer, mayAlert, now)
        }
        return []
    }

    // MARK: What is known

    private mutating func judge(_ seen: [StormReason], _ look: StormLook) {
        var (left, isDenied, isWeaker, isKept) = (seen, false, false, false)
        // What was denied is no part of a storm that returns.
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
            // Called off, it returns only with data that show it.
            if outlook == .notExpected { return }
            if left.isEmpty {
                // What is past was not called off.
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
        // A beginning that is past stays.
        let from = window.from <= look.now ? min(window.from, first) : first
        window = StormWindow(from: from, until: left.map(\.until).max() ?? window.until)
    }

    /// Takes in another storm: its hours, its reasons, and what the user was shown of it.
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

    private mutating func check(_ answer: StormAnswer, _ mayAlert: Bool, _ now: Date) -> [Command] {
        let late = adopt(answer)
        if outlook == .joined || window.until <= now { return late + close(answer, now) }
        return late + (outlook == .notExpected ? callOff(answer) : show(answer, mayAlert, now))
    }

    /// Takes over what the notification carries, if that is newer.
    private mutating func adopt(_ answer: StormAnswer) -> [Command] {
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

    private func photoRequest(_ answer: StormAnswer) -> [Command] { answer.hasPhoto ? [] : [.openPhotoRequest] }

    private mutating func close(_ answer: StormAnswer, _ now: Date) -> [Command] {
        if isClosed { return [] }
        let wasShown = memory.phase != .unshown
        memory = Memory(step: memory.step + 1, phase: .over(memory.phase, at: now))
        guard wasShown else { return [] }
        // Nothing of one that was dismissed is on the screen. Its notification keeps that answer.
        return (answer.state == .dismissed ? [] : [.withdraw]) + [.closePhotoRequest]
    }

    private mutating func callOff(_ answer: StormAnswer) -> [Command] {
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

    private mutating func show(_ answer: StormAnswer, _ mayAlert: Bool, _ now: Date) -> [Command] {
        switch memory.phase {
        case .unshown: return mayAlert ? alert(answer) : []
        case .shown(let shown): return show(shown, answer, mayAlert, now)
        case .calledOff(let shown): return comeBack(shown, answer, mayAlert, now)
        case .over(let before, let closed):
            guard closed > now else {
                guard let shown else { return mayAlert ? alert(answer) : [] }
                return comeBack(shown, answer, mayAlert, now)
            }
            // The clock was ahead: it never was over.
            memory = Memory(step: memory.step + 1, phase: before)
            let commands = show(answer, mayAlert, now)
            guard case .shown = before, answer.state == .withdrawn, !commands.contains(.alert) else { return commands }
            return [.showSilently] + photoRequest(answer)
        }
    }

    private mutating func show(_ shown: Shown, _ answer: StormAnswer, _ mayAlert: Bool, _ now: Date) -> [Command] {
        if mayAlert, outlook == .expected, answer.state == .unseen || isHigher(than: shown) { return alert(answer, after: shown) }
        if outlook == .weaker, answer.state == .waiting {
            // It is below its limit before the user saw the alert.
            memory = Memory(step: memory.step + 1, phase: shown.isSeen ? .calledOff(shown) : .unshown)
            return [.withdraw, .closePhotoRequest]
        }
        switch answer.state {
        case .visible, .snoozed: return [.update]
        case .waiting:
            // The alert that waits says what is known now.
            var changed = shown
            changed.alerted = facts.joined(with: shown.seen)
            memory.phase = .shown(changed)
            return [.update]
        // It left the screen at an end that was too early.
        case .ended: return comeBack(shown, answer, mayAlert, now)
        case .dismissed, .unseen, .withdrawn, .none: return []
        }
    }

    private func isHigher(than shown: Shown) -> Bool {
        let (new, old) = (facts, shown.alerted)
        return new.level > old.level || new.isWarned && !old.isWarned
            || old.begins.timeIntervalSince(new.begins) >= Self.earlierStart
    }

    /// - Parameter shown: What was shown before, if this is the same showing.
    private mutating func alert(_ answer: StormAnswer, after shown: Shown? = nil) -> [Command] {
        guard outlook == .expected else { return [] }
        var new = shown ?? Shown(alerted: facts)
        new.alerted = facts.joined(with: shown?.seen)
        memory = Memory(step: memory.step + 1, phase: .shown(new))
        return [.alert] + photoRequest(answer)
    }

    private mutating func comeBack(_ shown: Shown, _ answer: StormAnswer, _ mayAlert: Bool, _ now: Date) -> [Command] {
        guard mayAlert, outlook == .expected else { return [] }
        // A return under a clock that was ahead does not count.
        let recent = shown.returns.filter { $0 <= now && now.timeIntervalSince($0) < Self.returnSpan }
        var facts = facts
        let isNew = facts.level > shown.highest ?? .moderate || facts.isWarned && !shown.alerted.isWarned
        let isSilent = recent.count >= Self.alertingReturns && !isNew
        // After silent returns only a higher level than ever alerts.
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
    /// What the user was shown; `nil` if nothing.
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
    /// What an earlier version stored as flags. A storm that it had shown does not alert again.
    package init(
        earlierVersionOf reasons: [StormReason], begins: Date, ends: Date, isShown: Bool, isClosed: Bool, isCancelled: Bool
    ) {
        self.init()
        let level = StormSeverity(reasons)
        let shown = StormLife.Shown(
            alerted: StormLife.Facts(
                level: level, isWarned: reasons.contains { $0.kind == .alert }, begins: reasons.map(\.from).min() ?? begins))
        if isShown { phase = .shown(shown) }
        // Cancelled ones were closed before their end.
        if isClosed, !isCancelled { phase = .over(phase, at: ends) }
    }
}
