import Foundation

extension RequestLife {
    /// The content of the request. The content changes only if the app submits the request again.
    package struct Terms: Equatable, Sendable {
        package let kind: LaunchKind
        package let needs: RequestNeeds
        package let recurrence: WallClockRule?
        /// The number of seconds between an occurrence of the rule and the beginning of the request. Each installation has
        /// its own value.
        package let spread: Double
        package let missed: MissedPolicy

        package init(
            kind: LaunchKind, needs: RequestNeeds, recurrence: WallClockRule? = nil, spread: Double = 0,
            missed: MissedPolicy = .once
        ) {
            (self.kind, self.needs, self.recurrence) = (kind, needs, recurrence)
            (self.spread, self.missed) = (spread, missed)
        }
    }

    /// The phases of a request.
    package enum Phase: Equatable, Sendable {
        /// The request waits for its date, for the end of its delay and for its conditions.
        case pending
        /// A launch for this request is running, or a launch for an earlier request that this request replaced.
        case serving(generation: Int)
        /// The request was launched or cancelled, and is removed.
        case removed
    }

    /// A date before which the request does not begin, in addition to the date of the request.
    package struct Delay: Equatable, Sendable {
        package enum Reason: Equatable, Sendable {
            /// Earlier launches ended without a result.
            case failures
            /// The request was submitted in a launch and has no date. See ``SystemDiscretion``.
            case discretion
        }

        package let until: Date
        package let reason: Reason

        package init(until: Date, reason: Reason) { (self.until, self.reason) = (until, reason) }
    }

    /// An event of a request.
    package enum Event: Equatable, Sendable {
        /// - `served`: the occurrence of the launch in which the handler submitted the request.
        /// - `lastServed`: the latest occurrence whose launch ended with a result.
        /// - `pause`: the pause of ``SystemDiscretion`` in seconds, or 0 for no pause.
        case submitted(replacing: RequestLife? = nil, served: Date? = nil, lastServed: Date? = nil, pause: Double = 0)
        case launched(isSimulated: Bool)
        /// The launch that the agent started for the request has ended.
        case ended(Ending)
        /// The clock or the time zone was set, or a new agent started.
        case clockChanged(History)
        /// No agent was running until this date, so no agent could start the request.
        case unwatched(until: Date)
        /// A folder that the request waits for changed.
        case folderChanged
        /// The app's files changed, so the next launch may succeed after earlier launches failed.
        case appChanged
    }

    /// The facts about earlier launches of the identifier. The next launch depends on these facts.
    package struct History: Equatable, Sendable {
        /// The latest occurrence whose launch ended with a result.
        package let lastServed: Date?
        /// The number of consecutive launches that ended without a result because of the app.
        package let failedInARow: Int
        /// The first delay after a failure in seconds. If the value is 0, failures cause no delay.
        package let backoffBase: Double

        package init(lastServed: Date?, failedInARow: Int = 0, backoffBase: Double = 0) {
            (self.lastServed, self.failedInARow, self.backoffBase) = (lastServed, failedInARow, backoffBase)
        }
    }

    /// The end of a launch for a request.
    package struct Ending: Equatable, Sendable {
        /// The ``RequestLife/token`` of the request at the beginning of the launch.
        package let token: String
        package let outcome: LaunchOutcome
        package let stopReason: StopReason?
        package let end: ProcessEnd
        /// `true` if the app began background transfers in the launch.
        package let hasTransfers: Bool
        /// The occurrence for which the launch began.
        package let served: Date?
        package let history: History
        /// A new token, which no other request has.
        package let newToken: String

        package init(
            token: String, outcome: LaunchOutcome, stopReason: StopReason?, end: ProcessEnd = .unknown,
            hasTransfers: Bool = false, served: Date?, history: History, newToken: String
        ) {
            (self.token, self.outcome, self.stopReason) = (token, outcome, stopReason)
            (self.end, self.hasTransfers) = (end, hasTransfers)
            (self.served, self.history, self.newToken) = (served, history, newToken)
        }
    }

    /// An action that an event requires.
    package enum Command: Equatable, Sendable {
        /// Begin a launch for the request, for the occurrence `served`.
        case begin(generation: Int, reason: String, served: Date?)
        /// Record in the history that an occurrence was skipped.
        case skip(Date)
        /// Record that the occurrence was planned in the time zone that was passed with the event.
        case planned
        case remove
    }
}
