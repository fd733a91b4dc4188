import Foundation

/// What kind of work a process is launched for. The raw values are what `history` prints.
public enum LaunchKind: String, Sendable, Codable, CaseIterable {
    case appRefresh
    case processing
    case continuedProcessing
    case urlSession
    case notificationResponse
}

/// A pending request, as far as planning needs to know it.
public struct PlannableRequest: Sendable, Equatable {
    public var identifier: String
    public var kind: LaunchKind
    /// A lower bound; `nil`: no delay asked for.
    public var earliestBegin: Date?
    public var requiresNetwork: Bool
    public var requiresExternalPower: Bool
    /// Earned by launches that crashed or had to be killed.
    public var backoffUntil: Date?
    public var hasLiveLaunch: Bool
    public var submittedAt: Date

    public init(
        identifier: String, kind: LaunchKind, earliestBegin: Date?, requiresNetwork: Bool, requiresExternalPower: Bool,
        backoffUntil: Date?, hasLiveLaunch: Bool, submittedAt: Date
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.requiresNetwork = requiresNetwork
        self.requiresExternalPower = requiresExternalPower
        self.backoffUntil = backoffUntil
        self.hasLiveLaunch = hasLiveLaunch
        self.submittedAt = submittedAt
    }
}

/// One condition of a request, met or not. `name` is what `why` prints.
public struct ConditionVerdict: Sendable, Equatable, Codable {
    public enum Name: String, Sendable, Codable {
        case earliestBeginDate
        case networkConnectivity
        case externalPower
        case backoff
        case notRunning
    }

    public var name: Name
    public var met: Bool
    public var detail: String
    /// When time alone will meet it.
    public var metAt: Date?
}

/// Decides who is launched now, and when to look again.
public enum RequestPlanner {
    public struct Plan: Sendable, Equatable {
        /// Identifiers to launch now, the longest waiting first.
        public var due: [String]
        /// When time alone makes another request due; `nil`: only an event can.
        public var nextWake: Date?
    }

    /// Pure: the same snapshot gives the same plan. Cost: one look at each request.
    public static func plan(_ requests: [PlannableRequest], conditions: DesktopConditions, now: Date) -> Plan {
        var due: [PlannableRequest] = []
        var nextWake: Date?
        for request in requests {
            let unmet = verdicts(for: request, conditions: conditions, now: now).filter { !$0.met }
            if unmet.isEmpty {
                due.append(request)
            } else if let wake = unmet.compactMap(\.metAt).max() {
                // The latest of its own times: waking for an earlier one would only find the other unmet.
                nextWake = min(nextWake ?? wake, wake)
            }
        }
        due.sort { ($0.earliestBegin ?? $0.submittedAt, $0.identifier) < ($1.earliestBegin ?? $1.submittedAt, $1.identifier) }
        return Plan(due: due.map(\.identifier), nextWake: nextWake)
    }

    /// Every condition of a request, in the order a person would ask.
    public static func verdicts(
        for request: PlannableRequest, conditions: DesktopConditions, now: Date
    ) -> [ConditionVerdict] {
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
        if let backoff = request.backoffUntil {
            verdicts.append(
                timeVerdict(
                    .backoff, until: backoff, now: now, met: "the delay after the last attempt has passed",
                    unmet: "delayed because the last launch did not finish"))
        }
        if request.hasLiveLaunch {
            verdicts.append(.init(name: .notRunning, met: false, detail: "running now", metAt: nil))
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
