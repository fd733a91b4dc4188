import Foundation

/// What kind of work a process is launched for. The raw values are what `history` prints.
public enum LaunchKind: String, Sendable, Codable, CaseIterable {
    case appRefresh
    case processing
    case continuedProcessing
    case urlSession
    case notificationResponse
    case significantTimeChange
}

/// A pending request, as far as planning needs to know it.
package struct PlannableRequest: Sendable, Equatable {
    package var identifier: String
    package var kind: LaunchKind
    /// A lower bound; `nil`: no delay asked for.
    package var earliestBegin: Date?
    package var requiresNetwork: Bool
    package var requiresExternalPower: Bool
    /// Launched also while the person saves power.
    package var runsInLowPowerMode: Bool
    /// Earned by launches that crashed or had to be killed; without any, the system's discretion.
    package var backoffUntil: Date?
    /// Launches in a row without a result.
    package var failures: Int
    package var hasLiveLaunch: Bool
    package var submittedAt: Date

    package init(
        identifier: String, kind: LaunchKind, earliestBegin: Date?, requiresNetwork: Bool, requiresExternalPower: Bool,
        runsInLowPowerMode: Bool = false, backoffUntil: Date?, failures: Int = 1,
        hasLiveLaunch: Bool, submittedAt: Date
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.requiresNetwork = requiresNetwork
        self.requiresExternalPower = requiresExternalPower
        self.runsInLowPowerMode = runsInLowPowerMode
        self.backoffUntil = backoffUntil
        self.failures = failures
        self.hasLiveLaunch = hasLiveLaunch
        self.submittedAt = submittedAt
    }

    /// When time alone lets it begin; long ago without a date.
    package var dueAt: Date {
        let never = Date(timeIntervalSince1970: 0)
        return max(earliestBegin ?? never, backoffUntil ?? never)
    }
}

/// One condition of a request, met or not. `name` is what `why` prints.
package struct ConditionVerdict: Sendable, Equatable, Codable {
    package enum Name: String, Sendable, Codable {
        case earliestBeginDate
        case networkConnectivity
        case externalPower
        case lowPowerMode
        case networkAfterSleep
        case backoff
        case notRunning
        case turn
        case room
        /// The machine is woken for it. Says nothing of whether it may run.
        case systemWake
    }

    package var name: Name
    package var met: Bool
    package var detail: String
    /// When time alone will meet it.
    package var metAt: Date?

    package init(name: Name, met: Bool, detail: String, metAt: Date?) {
        (self.name, self.met, self.detail, self.metAt) = (name, met, detail, metAt)
    }
}

/// What planning knows of the world besides the requests.
package struct PlanningWorld: Sendable, Equatable {
    package var conditions: DesktopConditions
    /// When the machine last woke from sleep.
    package var resumedAt: Date?
    /// When the last launch of a request began; those that are due take turns.
    package var lastStart: Date?
    /// Seconds between two launches.
    package var spacing: Double

    package init(conditions: DesktopConditions, resumedAt: Date? = nil, lastStart: Date? = nil, spacing: Double = 0) {
        self.conditions = conditions
        self.resumedAt = resumedAt
        self.lastStart = lastStart
        self.spacing = spacing
    }

    /// The classes of requests that may be launched.
    package func openClasses(now: Date) -> [RequestNeeds] {
        let settling = NetworkSettling.until(resumedAt: resumedAt, conditions: conditions, now: now)
        return RequestNeeds(metBy: conditions, isSettling: settling != nil).openClasses
    }

    package func nextStart(now: Date) -> Date { LaunchStagger.nextStart(lastStart: lastStart, spacing: spacing, now: now) }
}

/// Decides who is launched now, and when to look again.
///
/// The agent asks the ledger for the first of the open classes (an index, whatever the number of requests); this is the
/// same rule over a list, for `why` and for the tests that hold the two together.
package enum RequestPlanner {
    package struct Plan: Sendable, Equatable {
        /// Identifiers to launch now, the longest waiting first.
        package var due: [String]
        /// When time alone makes another request due; `nil`: only an event can.
        package var nextWake: Date?
    }

    /// Pure: the same snapshot gives the same plan. Cost: one look at each request.
    package static func plan(_ requests: [PlannableRequest], in world: PlanningWorld, now: Date) -> Plan {
        var due: [PlannableRequest] = []
        var nextWake: Date?
        for request in requests {
            let unmet = verdicts(for: request, in: world, now: now).filter { !$0.met }
            if unmet.isEmpty {
                due.append(request)
            } else if unmet.allSatisfy({ $0.metAt != nil }), let wake = unmet.compactMap(\.metAt).max() {
                // The latest of its own times: waking for an earlier one would only find the other unmet. One that needs
                // an event too is looked at when that comes.
                nextWake = min(nextWake ?? wake, wake)
            }
        }
        due.sort { ($0.dueAt, $0.submittedAt, $0.identifier) < ($1.dueAt, $1.submittedAt, $1.identifier) }
        return Plan(due: due.map(\.identifier), nextWake: nextWake)
    }

    /// Every condition of a request, in the order a person would ask.
    package static func verdicts(
        for request: PlannableRequest, in world: PlanningWorld, now: Date
    ) -> [ConditionVerdict] {
        let conditions = world.conditions
        if request.kind == .continuedProcessing {
            let detail = "\(ContinuedProcessing.room) run already, or one of its name"
            return [ConditionVerdict(name: .room, met: false, detail: detail, metAt: nil)]
        }
        var verdicts: [ConditionVerdict] = []
        if let earliest = request.earliestBegin {
            verdicts.append(
                timeVerdict(.earliestBeginDate, until: earliest, now: now, met: "the time has come", unmet: "not yet due"))
        }
        if request.requiresNetwork {
            let met = conditions.isNetworkAvailable
            verdicts.append(
                .init(
                    name: .networkConnectivity, met: met, detail: met ? "a network is up" : "no network is up", metAt: nil))
        }
        if request.requiresExternalPower {
            let met = conditions.isOnExternalPower
            verdicts.append(
                .init(
                    name: .externalPower, met: met, detail: met ? "on external power" : "running on battery", metAt: nil))
        }
        // On external power nothing is saved: who needs that waits for nothing else.
        if !request.runsInLowPowerMode, !request.requiresExternalPower {
            let met = !conditions.isSavingPower
            verdicts.append(
                .init(
                    name: .lowPowerMode, met: met, detail: met ? "not saving power" : "the power-saver profile is on", metAt: nil)
            )
        }
        // Who needs a network waits for that alone.
        if request.kind == .appRefresh, !request.requiresNetwork,
            let until = NetworkSettling.until(resumedAt: world.resumedAt, conditions: conditions, now: now)
        {
            verdicts.append(
                .init(
                    name: .networkAfterSleep, met: false, detail: "the machine woke and its network is not back yet", metAt: until
                ))
        }
        if let backoff = request.backoffUntil {
            verdicts.append(
                timeVerdict(
                    .backoff, until: backoff, now: now, met: "the delay after the last attempt has passed",
                    unmet: request.failures > 0
                        ? "delayed because the last launch did not finish"
                        : "a launch asked for it without a date: the next one begins after a pause, which grows"))
        }
        if request.hasLiveLaunch {
            verdicts.append(.init(name: .notRunning, met: false, detail: "running now", metAt: nil))
        }
        let turn = world.nextStart(now: now)
        if turn > now, verdicts.allSatisfy(\.met) {
            verdicts.append(.init(name: .turn, met: false, detail: "another launch began a moment ago", metAt: turn))
        }
        return verdicts
    }

    private static func timeVerdict(
        _ name: ConditionVerdict.Name, until: Date, now: Date, met: String, unmet: String
    ) -> ConditionVerdict {
        let isMet = until <= now
        return ConditionVerdict(name: name, met: isMet, detail: isMet ? met : unmet, metAt: isMet ? nil : until)
    }
}
