import Foundation
import GRDB

/// Queries that decide whether an agent is needed.
extension LedgerTransaction {
    /// Returns whether the agent still has to send the number on the app's icon to the docks of the desktop.
    package func isBadgeUntold() throws -> Bool { try (fact(.badge) ?? 0) != (fact(.badgeTold) ?? 0) }

    package func hasUnfinishedWork() throws -> Bool {
        if try hasRequests() || !openQuestions().isEmpty || !liveLaunches().isEmpty { return true }
        if try fact(.significantTime) != nil { return true }
        if try hasActiveTransfers() || hasLeftovers() || isBadgeUntold() { return true }
        // The event of a transfer needs an agent even if a running process receives the event. If this process is killed, only an
        // agent can deliver the event.
        if try hasEventsForTheApp() || !undeliveredResponses().isEmpty { return true }
        // A notification on the screen also needs an agent. If the agent exits, the notification disappears on some desktops, and
        // its buttons stop working on all desktops.
        return try hasLiveNotifications()
    }

    /// Returns the kind of unfinished work that needs a running agent now. Returns `nil` if no work needs an agent, or if an
    /// agent can be started later at a known time.
    ///
    /// Work that waits for a condition also needs an agent, because only a running agent detects the change of the condition.
    ///
    /// - Parameter watchesFiles: `true` if a change of a watched file can end the pause after a failed launch.
    package func needOfAgent(now: Date, watchesFiles: Bool) throws -> AgentNeed? {
        if try !openQuestions().isEmpty { return .question }
        if try !liveLaunches().isEmpty { return .launch }
        // A transfer that waits for its next attempt is tried immediately when the network changes, so an agent must watch the
        // network.
        if try hasActiveTransfers() { return .transfer }
        if try hasEventsForTheApp() || !undeliveredResponses().isEmpty { return .delivery }
        if try isBadgeUntold() { return .badge }
        if try hasNotificationsThatNeedAnAgent(now: now) { return .notification }
        return try hasRequestsThatNeedAnAgent(now: now, watchesFiles: watchesFiles) ? .request : nil
    }

    /// Returns whether work was added after the agent exited. Work that is due at the agent's next start is ignored.
    package func isAgentAwaited(since absence: AgentAbsence, now: Date) throws -> Bool {
        try needOfAgent(now: min(now, absence.until ?? now), watchesFiles: false) != nil
    }

    /// Returns whether a request is due and waits for a condition or for another launch. A request of continued processing waits
    /// until another task ends.
    private func hasRequestsThatNeedAnAgent(now: Date, watchesFiles: Bool) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM request
                        WHERE kind = 'continuedProcessing' OR dueAt IS NULL OR dueAt <= ? OR ? AND failures > 0 AND backoffUntil > ?)
                    """), arguments: [now.timeIntervalSince1970, watchesFiles, now.timeIntervalSince1970]) ?? false
    }

    /// Returns whether a notification is on the screen, is being shown or removed, or is due.
    private func hasNotificationsThatNeedAnAgent(now: Date) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM notification
                        WHERE state IN ('presenting', 'delivered', 'withdrawing') OR leavingID IS NOT NULL
                            OR state = 'pending' AND (dueAt IS NULL OR dueAt <= ? OR deliveredAt IS NOT NULL))
                    """), arguments: [now.timeIntervalSince1970]) ?? false
    }
}

/// The kinds of work that need a running agent. If such work exists, an agent must run now. The output of `status --json`
/// contains the raw values.
package enum AgentNeed: String, Codable, Sendable, CaseIterable {
    /// A command waits for a response of the agent.
    case question
    /// A process of the app is running.
    case launch
    /// A transfer is running, or waits for its next attempt.
    case transfer
    /// The app has not yet received an event, for example the end of a transfer.
    case delivery
    /// The agent still has to send the number on the app's icon to the docks of the desktop.
    case badge
    /// A notification is on the screen, or is being shown.
    case notification
    /// A request is due, and waits until one of its conditions is met.
    case request
}

/// The record of an agent that exited although some work is unfinished. systemd will start an agent again.
package struct AgentAbsence: Codable, Sendable, Equatable {
    package var since: Date
    /// The latest time of the next start, or `nil` if no work becomes due at a known time.
    package var until: Date?

    package init(since: Date, until: Date?) { (self.since, self.until) = (since, until) }
}
