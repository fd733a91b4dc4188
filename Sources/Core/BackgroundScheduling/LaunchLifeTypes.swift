import Foundation

/// The kind of work for which a process is launched. The raw values are what `history` prints.
public enum LaunchKind: String, Sendable, Codable, CaseIterable {
    case appRefresh
    case processing
    case continuedProcessing
    case urlSession
    case notificationResponse
    case significantTimeChange
}

/// How a launch ended. The raw values are what `history` prints.
public enum LaunchOutcome: String, Sendable, Codable {
    /// The handler returned (or completed its task with success) in time.
    case completed
    /// The handler completed its task without success, or no handler was registered.
    case failed
    /// The time ran out, and the handler returned after the warning.
    case expired
    /// The time ran out, and the process was killed because the handler did not return within the grace time.
    case killed
    /// The process ended without a result.
    case crashed
    /// The agent ended before it had started the process. The app is not the cause.
    case neverBegan
    /// An occurrence passed without a launch and was left out, because the request has ``MissedPolicy/skip``.
    case skipped

    /// `true` if the app finished its work in some way, so that the request is consumed.
    public var isResult: Bool {
        switch self {
        case .completed, .failed, .expired: true
        case .killed, .crashed, .neverBegan, .skipped: false
        }
    }

    /// `true` if the app was launched and gave no result, which delays the next launch.
    public var isBlamedOnApp: Bool {
        switch self {
        case .killed, .crashed: true
        case .completed, .failed, .expired, .neverBegan, .skipped: false
        }
    }
}

/// Why a running launch is asked to stop. The reason is committed to the ledger before the signal is sent.
public enum StopReason: String, Sendable, Codable {
    case expired
    case quit
    case conditionLost
    case simulated
    /// The user pressed Cancel in the progress notification.
    case cancelled
    /// A continued-processing task made no progress for too long.
    case noProgress
}

extension LaunchLife {
    /// How far a launch is.
    package enum Phase: Equatable, Sendable {
        /// No process has recorded its identity.
        case starting
        case running
        /// The reason is in the ledger. ``LaunchLife/killAt`` is when the process is killed.
        case stopping(StopReason, hasProcess: Bool)
        case ended(LaunchOutcome, at: Date, after: StopReason?)
    }

    /// An event of a launch.
    package enum Event: Equatable, Sendable {
        /// The process could not be started.
        case notStarted(because: String)
        /// The app process recorded how its work ended.
        case resultRecorded(LaunchOutcome, detail: String?)
        /// The app process ends without a result, and records why.
        case abandoned(because: String)
        /// The agent looked at the launch. `hasMoved` if progress was recorded since the last look. The history shows the lost condition.
        case supervised(Limits, isPersonChoosing: Bool = false, hasMoved: Bool = false, lostCondition: String? = nil, now: Date)
        /// The launch has to stop. The first reason counts.
        case stopWanted(StopReason, Limits, now: Date)
        /// A command recorded in the ledger that the launch has to stop. Without an agent its process reads that.
        case stopRecorded(StopReason)
        /// A process that ended while it delivered an event of a transfer was interrupted. The note is for the history.
        case processEnded(ProcessEnd, wasInterrupted: Bool = false, note: String? = nil, now: Date)
    }

    /// Seconds that a launch may take.
    package struct Limits: Equatable, Sendable {
        package let budget: Double
        package let grace: Double
        /// How long the launch may continue after its handlers returned.
        package let continuation: Double

        package init(budget: Double, grace: Double, continuation: Double) {
            (self.budget, self.grace, self.continuation) = (budget, grace, continuation)
        }
    }

    /// An action that an event requires.
    package enum Command: Equatable, Sendable {
        /// The reason to stop is new and has to be logged.
        case logStop(StopReason)
        /// SIGTERM.
        case warn
        case kill
        /// Continued processing did not stop: the launch ends, and its process is left alone.
        case end
    }
}
