import Foundation

/// The timer of a ``LaunchLife``. The timer warns the launch when the budget is used up, and kills the launch after the grace
/// time.
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
    /// The date at which the user began to choose a file. `nil` if the user is not choosing a file.
    private var choosingSince: Date?
    /// The number of seconds for which the user chose files earlier in this launch.
    private var chosenFor: Double = 0
    private var wasChecked = false
    /// The date until which the launch is allowed to continue after its handlers returned.
    private var continuesUntil: Date?
    private let budget: Double
    private let grace: Double

    /// Creates a timer. `budget` and `grace` are in seconds.
    package init(startedAt: Date, budget: Double, grace: Double) {
        self.startedAt = startedAt
        self.budget = budget
        self.grace = grace
    }

    /// `true` if the launch was warned or killed.
    package var isStopping: Bool { state != .running }

    /// The maximum number of seconds by which the user's choice of files extends the budget.
    package static let choosingCeiling: Double = 600

    /// The next date at which the timer has to be checked.
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

    /// Updates the timer to the current time. The time that the user needs to choose a file is added to the budget.
    package mutating func tick(now: Date, isPersonChoosing: Bool) -> Command? {
        switch (isPersonChoosing, choosingSince) {
        // If an earlier agent started the launch, the date at which the user began to choose a file is unknown. The start of the
        // launch is used instead.
        case (true, nil): choosingSince = wasChecked ? now : startedAt
        case (false, let since?):
            let span = min(max(now.timeIntervalSince(since), 0), Self.choosingCeiling - chosenFor)
            startedAt.addTimeInterval(span)
            chosenFor += span
            choosingSince = nil
        case (true, _?), (false, nil): break
        }
        wasChecked = true
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

    /// Stops the launch for a reason other than its time limit, for example because a condition was lost.
    package mutating func stop(_ reason: StopReason, now: Date) -> Command? {
        switch state {
        case .running:
            state = .warned(killAt: now.addingTimeInterval(grace))
            return .warn(reason)
        case .warned, .killed:
            return nil
        }
    }

    /// Restarts the budget after the launch made progress.
    package mutating func moved(at moment: Date) {
        if case .running = state { startedAt = max(startedAt, moment) }
    }

    /// Allows the launch to continue for this number of seconds after its handlers returned, even beyond its budget. Later calls
    /// have no effect.
    package mutating func continues(for seconds: Double, from moment: Date) {
        if case .running = state { continuesUntil = continuesUntil ?? moment.addingTimeInterval(seconds) }
    }

    /// Moves all dates by the number of seconds by which the clock was set, so that the remaining time does not change.
    package mutating func shift(by seconds: Double) {
        startedAt.addTimeInterval(seconds)
        choosingSince?.addTimeInterval(seconds)
        continuesUntil?.addTimeInterval(seconds)
        switch state {
        case .running, .killed: return
        case .warned(let killAt): state = .warned(killAt: killAt.addingTimeInterval(seconds))
        }
    }

    /// Restarts the grace time after an earlier agent warned the launch and was then killed.
    package mutating func adoptWarned(now: Date) {
        state = .warned(killAt: now.addingTimeInterval(grace))
    }
}

/// The delay after consecutive launches without a result. A launch with a result resets the delay.
package enum RelaunchBackoff {
    /// Returns a text such as "1 launch" or "2 launches".
    package static func launches(_ count: Int) -> String { count == 1 ? "1 launch" : "\(count) launches" }

    /// The longest delay before the next launch, in seconds.
    package static let longest: Double = 6 * 3600

    /// Returns the delay in seconds after a number of failures. The delay is `base` after the first failure and doubles with each
    /// failure, up to six hours.
    package static func delay(afterFailures failures: Int, base: Double) -> Double {
        guard failures > 0 else { return 0 }
        return min(base * pow(2, Double(min(failures, 30) - 1)), longest)
    }
}
