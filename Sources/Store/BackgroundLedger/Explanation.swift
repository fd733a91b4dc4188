import BackgroundScheduling
import Foundation

/// The conditions that prevent requests from running now. The command `why` shows these conditions. The agent decides with the
/// same code.
package struct Explanation {
    private let observed: ObservedConditions?
    private let live: [String: LaunchRecord]
    private let alarm: AlarmReport?
    package let world: PlanningWorld
    package let now: Date

    package init(_ transaction: LedgerTransaction, now: Date) throws {
        self.now = now
        observed = try transaction.fact(.conditions)
        alarm = try transaction.fact(.alarm)
        live = try Dictionary(transaction.liveLaunches().map { ($0.identifier, $0) }) { $1 }
        // Until an agent has checked the conditions, they are assumed to be met.
        let fine = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
        world = PlanningWorld(
            conditions: observed?.conditions ?? fine, resumedAt: observed?.resumedAt,
            lastStart: try transaction.lastRequestStart(),
            spacing: try (transaction.fact(.settings) ?? AgentSettings()).launchSpacing)
    }

    /// Returns whether a launch with this identifier is running.
    package func isLive(_ identifier: String) -> Bool { live[identifier] != nil }

    /// Returns every condition of the request with its state.
    package func verdicts(_ request: RequestRecord) -> [ConditionVerdict] {
        life(request).verdicts(in: world, now: now)
    }

    private func life(_ request: RequestRecord) -> RequestLife {
        request.life(live[request.identifier].map { .serving(generation: $0.generation) } ?? .pending)
    }

    /// Returns whether the machine will be woken for the request, or `nil` if the request does not need to wake the machine. If
    /// the machine is not woken, the request may run late.
    package func wake(_ request: RequestRecord) -> ConditionVerdict? {
        guard request.wakesSystem else { return nil }
        if let obstacle = alarm?.obstacle {
            return ConditionVerdict(
                name: .systemWake, met: false, detail: "the request runs late if the machine sleeps: \(obstacle.words)",
                metAt: nil)
        }
        let isSet = alarm?.alarm != nil
        let detail =
            isSet ? "an alarm is set" : "no alarm is set, because no alarm is due or no agent has checked the request yet"
        return ConditionVerdict(name: .systemWake, met: isSet, detail: detail, metAt: nil)
    }

    /// Returns the time at which the request becomes due, or `nil` if the request waits for an event and not for a time.
    package func nextAttempt(_ request: RequestRecord) -> Date? {
        life(request).nextAttempt(in: world, now: now)
    }

    /// Returns the time of the last change of a condition.
    package func since(_ verdict: ConditionVerdict, _ request: RequestRecord) -> Date? {
        switch verdict.name {
        case .earliestBeginDate: verdict.met ? request.earliestBegin : request.submittedAt
        case .backoff: verdict.met ? request.backoffUntil : request.lastFailureAt
        case .networkConnectivity: observed?.networkSince
        case .externalPower: observed?.powerSince
        case .lowPowerMode: observed?.savingSince
        case .networkAfterSleep: observed?.resumedAt
        case .notRunning: live[request.identifier]?.startedAt
        case .turn: world.lastStart
        case .room: request.submittedAt
        case .systemWake: alarm?.since
        }
    }
}
