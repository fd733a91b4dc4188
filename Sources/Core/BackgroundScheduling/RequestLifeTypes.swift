import Foundation

extension RequestLife {
    /// The content of the request. A submit replaces it; nothing else changes it.
    package struct Terms: Equatable, Sendable {
        package let kind: LaunchKind
        package let needs: RequestNeeds
        package let recurrence: WallClockRule?
        /// Seconds after an occurrence of the rule at which this installation begins.
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

    /// How far a request is.
    package enum Phase: Equatable, Sendable {
        /// Waits for its date, the end of its delay and its conditions.
        case pending
        /// A launch serves the request, or served the request that this one replaced.
        case serving(generation: Int)
        /// The request is consumed.
        case removed
    }

    /// A date before which the request does not begin, besides the date that was asked for.
    package struct Delay: Equatable, Sendable {
        package enum Reason: Equatable, Sendable {
            /// Launches ended without a result.
            case failures
            /// A launch submitted the request without a date: see ``SystemDiscretion``.
            case discretion
        }

        package let until: Date
        package let reason: Reason

        package init(until: Date, reason: Reason) { (self.until, self.reason) = (until, reason) }
    }

    /// An event of a request.
    package enum Event: Equatable, Sendable {
        /// - `served`: the occurrence of the launch whose handler submitted the request.
        /// - `lastServed`: the latest occurrence that a launch with a result served.
        /// - `pause`: seconds of the system's discretion; 0 for none.
        case submitted(replacing: RequestLife? = nil, served: Date? = nil, lastServed: Date? = nil, pause: Double = 0)
        case launched(isSimulated: Bool)
        /// The launch that served the request ended.
        case ended(Ending)
        /// The clock or the time zone was set, or a new agent started.
        case clockChanged(History)
        /// No agent looked at the request before this date.
        case unwatched(until: Date)
        /// The app's files changed, so a launch that failed may succeed now.
        case appChanged
    }

    /// The facts about earlier launches of the identifier on which the next one depends.
    package struct History: Equatable, Sendable {
        /// The latest occurrence that a launch with a result served.
        package let lastServed: Date?
        /// Launches in a row that ended without a result because of the app.
        package let failedInARow: Int
        /// Seconds of the first delay; 0 for none.
        package let backoffBase: Double

        package init(lastServed: Date?, failedInARow: Int = 0, backoffBase: Double = 0) {
            (self.lastServed, self.failedInARow, self.backoffBase) = (lastServed, failedInARow, backoffBase)
        }
    }

    /// How a launch of a request ended.
    package struct Ending: Equatable, Sendable {
        /// ``RequestLife/token`` as the launch began.
        package let token: String
        package let outcome: LaunchOutcome
        package let stopReason: StopReason?
        package let end: ProcessEnd
        /// `true` if the app began background transfers in the launch.
        package let hasTransfers: Bool
        /// The occurrence that the launch served.
        package let served: Date?
        package let history: History
        /// A token that no other request has.
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
        /// A launch of the request begins, for the occurrence `served`.
        case begin(generation: Int, reason: String, served: Date?)
        /// An occurrence is left out, and the history reports that.
        case skip(Date)
        /// The occurrence was planned in the time zone of the event.
        case planned
        case remove
    }
}
