import Foundation

/// The condition that was met last before a request began. The history shows this cause next to the request.
package enum WakeCause: String, Sendable, Codable, CaseIterable {
    case time = "its time came"
    case folder = "a watched folder changed"
    case network = "a network came up"
    case power = "external power was connected"
    case saving = "power saving was turned off"
    case resumed = "the machine woke from sleep"
    case agentStarted = "the agent started"
    case simulated = "simulated by hand"

    /// For each condition, the date at which the condition last changed from unmet to met. A date is `nil` if it is unknown.
    package struct ConditionDates: Sendable, Equatable {
        package var network: Date?
        package var power: Date?
        package var saving: Date?
        package var resumed: Date?
        package var agentStarted: Date?

        package init(network: Date?, power: Date?, saving: Date?, resumed: Date?, agentStarted: Date?) {
            self.network = network
            self.power = power
            self.saving = saving
            self.resumed = resumed
            self.agentStarted = agentStarted
        }
    }

    /// Returns whether a refresh waited for the network after a sleep.
    private static func isAwaitedAfterSleep(_ request: RequestLife, _ moments: ConditionDates) -> Bool {
        guard request.terms.needs.contains(.settledNetwork), let resumed = moments.resumed, let network = moments.network else {
            return false
        }
        return network > resumed && network <= resumed.addingTimeInterval(NetworkWakeDelay.patience)
    }

    /// Returns the condition that was met last. If all conditions were met before the submit, the cause is ``time``.
    package static func of(_ request: RequestLife, _ moments: ConditionDates, now: Date) -> WakeCause {
        let ready = max(request.dueAt, request.submittedAt)
        var candidates: [(Date?, WakeCause)] = [(moments.resumed, .resumed)]
        // If the submit started the agent, the start of the agent did not delay the request.
        if let started = moments.agentStarted, started > ready.addingTimeInterval(5) {
            candidates.insert((started, .agentStarted), at: 0)
        }
        let needs = request.terms.needs
        if needs.contains(.network) || isAwaitedAfterSleep(request, moments) { candidates.append((moments.network, .network)) }
        if needs.contains(.externalPower) { candidates.append((moments.power, .power)) }
        if needs.contains(.normalPower) { candidates.append((moments.saving, .saving)) }
        var latest = (ready, request.isBeforeOccurrence ? WakeCause.folder : .time)
        for case (let moment?, let cause) in candidates where moment > latest.0 && moment <= now { latest = (moment, cause) }
        return latest.1
    }
}
