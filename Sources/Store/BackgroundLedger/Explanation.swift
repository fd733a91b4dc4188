import BackgroundScheduling
import Foundation

/// What keeps each request from running at one moment, as the agent's own rule has it. What `why` says, and what is proved of it.
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
        // Nobody has looked yet: assumed to be fine, as an agent will find out when there is one.
        let fine = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
        world = PlanningWorld(
            conditions: observed?.conditions ?? fine, resumedAt: observed?.resumedAt,
            lastStart: try transaction.lastRequestStart(),
            spacing: try (transaction.fact(.settings) ?? AgentSettings()).launchSpacing)
    }

    /// Whether a launch of this name runs.
    package func isLive(_ identifier: String) -> Bool { live[identifier] != nil }

    /// Every condition of the request, met or not.
    package func verdicts(_ request: RequestRecord) -> [ConditionVerdict] {
        life(request).verdicts(in: world, now: now)
    }

    private func life(_ request: RequestRecord) -> RequestLife {
        request.life(live[request.identifier].map { .serving(generation: $0.generation) } ?? .pending)
    }

    /// Whether the machine is woken for it; `nil`: it does not ask for that. It runs either way, late perhaps.
    package func wake(_ request: RequestRecord) -> ConditionVerdict? {
        guard request.wakesSystem else { return nil }
        if let obstacle = alarm?.obstacle {
            return ConditionVerdict(
                name: .systemWake, met: false, detail: "it runs late where the machine sleeps: \(obstacle.words)", metAt: nil)
        }
        let isSet = alarm?.alarm != nil
        let detail = isSet ? "an alarm is set" : "no alarm is set: none is due, or no agent has looked yet"
        return ConditionVerdict(name: .systemWake, met: isSet, detail: detail, metAt: nil)
    }

    /// When time alone makes it due; `nil`: an event has to come first.
    package func nextAttempt(_ request: RequestRecord) -> Date? {
        life(request).nextAttempt(in: world, now: now)
    }

    /// Since when a condition has its value.
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
