import Foundation

/// The timer of a ``LaunchLife``: a warning when the budget is used up, a kill after the grace time.
package struct LaunchSupervision: Sendable, Equatable {
    private enum State: Sendable, Equatable {
        case running
        case warned(killAt: Date)
        case killed
    }

    package enum Command: Sendable, Equatable {
        case warn(StopReason)
        case kill
    }

    private var state: State = .running
    private var startedAt: Date
    /// Since when a person is choosing; `nil`: nobody is.
    private var choosingSince: Date?
    /// Seconds that choosing took before.
    private var chosenFor: Double = 0
    private var wasLookedAt = false
    /// The end of the time in which the launch may continue after its handlers returned.
    private var continuesUntil: Date?
    private let budget: Double
    private let grace: Double

    /// `budget` and `grace` in seconds.
    package init(startedAt: Date, budget: Double, grace: Double) {
        self.startedAt = startedAt
        self.budget = budget
        self.grace = grace
    }

    /// It was told to stop, or killed.
    package var isStopping: Bool { state != .running }

    /// A person is choosing a file: their time is not the budget's, up to this ceiling in seconds.
    package static let choosingCeiling: Double = 600

    /// When to look again.
    package var deadline: Date? {
        switch state {
        case .running: max(budgetEnd, continuesUntil ?? budgetEnd)
        case .warned(let killAt): killAt
        case .killed: nil
        }
    }

    private var budgetEnd: Date {
        let end = startedAt.addingTimeInterval(budget)
        guard let choosingSince else { return end }
        return max(end, choosingSince.addingTimeInterval(Self.choosingCeiling - chosenFor))
    }

    /// Time has passed. What a person took to choose is added to the budget.
    package mutating func tick(now: Date, isPersonChoosing: Bool) -> Command? {
        switch (isPersonChoosing, choosingSince) {
        // Taken up from an earlier agent: since when is not known.
        case (true, nil): choosingSince = wasLookedAt ? now : startedAt
        case (false, let since?):
            let span = min(max(now.timeIntervalSince(since), 0), Self.choosingCeiling - chosenFor)
            startedAt.addTimeInterval(span)
            chosenFor += span
            choosingSince = nil
        case (true, _?), (false, nil): break
        }
        wasLookedAt = true
        guard let deadline, now >= deadline else { return nil }
        switch state {
        case .running:
            state = .warned(killAt: now.addingTimeInterval(grace))
            return .warn(.expired)
        case .warned:
            state = .killed
            return .kill
        case .killed:
            return nil
        }
    }

    /// Somebody else wants it stopped (quit, simulation, a condition lost).
    package mutating func stop(_ reason: StopReason, now: Date) -> Command? {
        switch state {
        case .running:
            state = .warned(killAt: now.addingTimeInterval(grace))
            return .warn(reason)
        case .warned, .killed:
            return nil
        }
    }

    /// It made progress: its time begins anew.
    package mutating func moved(at moment: Date) {
        if case .running = state { startedAt = max(startedAt, moment) }
    }

    /// Lets the launch continue for so many seconds after its handlers returned, also beyond its budget. Only the first call counts.
    package mutating func continues(for seconds: Double, from moment: Date) {
        if case .running = state { continuesUntil = continuesUntil ?? moment.addingTimeInterval(seconds) }
    }

    /// The clock was set by so many seconds: what is left of the time stays what it was.
    package mutating func shift(by seconds: Double) {
        startedAt.addTimeInterval(seconds)
        choosingSince?.addTimeInterval(seconds)
        continuesUntil?.addTimeInterval(seconds)
        switch state {
        case .running, .killed: return
        case .warned(let killAt): state = .warned(killAt: killAt.addingTimeInterval(seconds))
        }
    }

    /// Taken over from an agent that died after it had warned: the grace time starts again.
    package mutating func adoptWarned(now: Date) {
        state = .warned(killAt: now.addingTimeInterval(grace))
    }
}

/// The delay that not finishing earns, forgiven by finishing.
package enum RelaunchBackoff {
    /// Seconds.
    package static let longest: Double = 6 * 3600

    /// Seconds to wait before launch number `failures + 1`: doubles from `base`, capped at six hours.
    package static func delay(afterFailures failures: Int, base: Double) -> Double {
        guard failures > 0 else { return 0 }
        return min(base * pow(2, Double(min(failures, 30) - 1)), longest)
    }
}
