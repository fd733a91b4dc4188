import Foundation

/// The kind of work for which a process is launched. The command `history` prints the raw values.
public enum LaunchKind: String, Sendable, Codable, CaseIterable {
    case appRefresh
    case processing
    case continuedProcessing
    case urlSession
    case notificationResponse
    case significantTimeChange
}

/// The outcome of a launch. The command `history` prints the raw values.
public enum LaunchOutcome: String, Sendable, Codable {
    /// The handler returned in time, or completed its task with success in time.
    case completed
    /// The handler completed its task without success, or no handler was registered.
    case failed
    /// The launch reached its time limit, and the handler returned after the warning.
    case expired
    /// The launch reached its time limit. The process was killed because the handler did not return within the grace time.
    case killed
    /// The process ended without a result.
    case crashed
    /// The agent ended before the process was started. This failure does not count against the app.
    case neverBegan
    /// An occurrence was missed and is not run late, because the request has the policy ``MissedPolicy/skip``.
    case skipped

    /// `true` if the app ended its work, with or without success. The agent then does not repeat the launch, unless a condition
    /// of the request was lost.
    public var isResult: Bool {
        switch self {
        case .completed, .failed, .expired: true
        case .killed, .crashed, .neverBegan, .skipped: false
        }
    }

    /// `true` if the app was launched and recorded no result. The next launch is then delayed.
    public var isBlamedOnApp: Bool {
        switch self {
        case .killed, .crashed: true
        case .completed, .failed, .expired, .neverBegan, .skipped: false
        }
    }
}

/// The reason why a running launch has to stop. The reason is committed to the ledger before SIGTERM is sent.
public enum StopReason: String, Sendable, Codable {
    case expired
    case quit
    case conditionLost
    case simulated
    /// The user pressed Cancel in the progress notification.
    case cancelled
    /// A continued-processing task made no progress for too many seconds.
    case noProgress
}

extension LaunchLife {
    /// The phases of a launch.
    package enum Phase: Equatable, Sendable {
        /// The launch has no process yet, or its process has not recorded an identity.
        case starting
        case running
        /// The reason to stop is in the ledger. The process is killed at ``LaunchLife/killAt``.
        case stopping(StopReason, hasProcess: Bool)
        case ended(LaunchOutcome, at: Date, after: StopReason?)
    }

    /// An event of a launch.
    package enum Event: Equatable, Sendable {
        /// The process could not be started.
        case notStarted(because: String)
        /// The app process recorded the result of its work.
        case resultRecorded(LaunchOutcome, detail: String?)
        /// The app process is about to end without a result, and recorded the reason.
        case abandoned(because: String)
        /// The agent checked the running launch. `hasMoved` is `true` if the launch recorded progress since the last check.
        /// `lostCondition` is the text about a lost condition for the history.
        case supervised(Limits, isPersonChoosing: Bool = false, hasMoved: Bool = false, lostCondition: String? = nil, now: Date)
        /// The launch has to stop. If the launch already has a reason to stop, a later reason is ignored.
        case stopWanted(StopReason, Limits, now: Date)
        /// A command has recorded in the ledger that the launch has to stop. If no agent is running, the process of the launch
        /// reads this record.
        case stopRecorded(StopReason)
        /// The process of the launch ended. `wasInterrupted` is `true` if the process ended while it delivered an event of a
        /// transfer. `note` is a text for the history.
        case processEnded(ProcessEnd, wasInterrupted: Bool = false, note: String? = nil, now: Date)
    }

    /// The time limits of a launch, in seconds.
    package struct Limits: Equatable, Sendable {
        package let budget: Double
        package let grace: Double
        /// The number of seconds for which the launch is allowed to continue after its handlers returned.
        package let continuation: Double

        package init(budget: Double, grace: Double, continuation: Double) {
            (self.budget, self.grace, self.continuation) = (budget, grace, continuation)
        }
    }

    /// An action that an event requires.
    package enum Command: Equatable, Sendable {
        /// Log the reason why the launch has to stop, if this reason is new.
        case logStop(StopReason)
        /// Send SIGTERM to the process of the launch.
        case warn
        case kill
        /// End the launch, because a continued-processing task did not stop. The process receives no signal and continues.
        case end
    }
}
