import Foundation
import GRDB

/// Whether an agent is needed.
extension LedgerTransaction {
    /// Docks show another number than the app wants.
    package func isBadgeUntold() throws -> Bool { try (fact(.badge) ?? 0) != (fact(.badgeTold) ?? 0) }

    package func hasUnfinishedWork() throws -> Bool {
        if try hasRequests() || !openQuestions().isEmpty || !liveLaunches().isEmpty { return true }
        if try fact(.significantTime) != nil { return true }
        if try hasActiveTransfers() || isBadgeUntold() { return true }
        // An end that a running process takes, too: should that process die, nobody else would tell it.
        if try hasEventsForTheApp() || !undeliveredResponses().isEmpty { return true }
        // A notification on the screen dies with its sender on some desktops, and its buttons on all.
        return try hasLiveNotifications()
    }

    /// What of the unfinished work needs a living agent, whatever the time; `nil`: nothing does before a moment that is known comes.
    ///
    /// What waits for a condition is one: only who listens hears of it.
    ///
    /// - Parameter watchesFiles: the change of a file ends the pause after a failed launch.
    package func needOfAgent(now: Date, watchesFiles: Bool) throws -> AgentNeed? {
        if try !openQuestions().isEmpty { return .question }
        if try !liveLaunches().isEmpty { return .launch }
        // One that waits for its next attempt is tried at once when the network changes.
        if try hasActiveTransfers() { return .transfer }
        if try hasEventsForTheApp() || !undeliveredResponses().isEmpty { return .delivery }
        if try isBadgeUntold() { return .badge }
        if try hasNotificationsThatNeedAnAgent(now: now) { return .notification }
        return try hasRequestsThatNeedAnAgent(now: now, watchesFiles: watchesFiles) ? .request : nil
    }

    /// Work has come since the agent left, whatever is due at the moment for which it is started anyway.
    package func isAgentAwaited(since absence: AgentAbsence, now: Date) throws -> Bool {
        try needOfAgent(now: min(now, absence.until ?? now), watchesFiles: false) != nil
    }

    /// Due, it waits for a condition or its turn; of continued processing, for room.
    private func hasRequestsThatNeedAnAgent(now: Date, watchesFiles: Bool) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM request
                        WHERE kind = 'continuedProcessing' OR dueAt IS NULL OR dueAt <= ? OR ? AND failures > 0 AND backoffUntil > ?)
                    """), arguments: [now.timeIntervalSince1970, watchesFiles, now.timeIntervalSince1970]) ?? false
    }

    /// On the screen, on its way to or from it, or due and not shown yet.
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

/// What needs a living agent, and not just one that comes back in time. The raw values stand in `status --json`.
package enum AgentNeed: String, Codable, Sendable, CaseIterable {
    /// A verb waits for an answer.
    case question
    /// A process of the app runs.
    case launch
    /// A transfer moves, or waits for its next attempt.
    case transfer
    /// The app is still to be told of something.
    case delivery
    /// The number on the app's icon has not been told.
    case badge
    /// A notification is on the screen, or on its way there.
    case notification
    /// A request is due, and waits for what it needs.
    case request
}

/// That an agent left although work is left, as somebody starts it again.
package struct AgentAbsence: Codable, Sendable, Equatable {
    package var since: Date
    /// When it is started again at the latest; `nil`: time alone makes nothing due.
    package var until: Date?

    package init(since: Date, until: Date?) { (self.since, self.until) = (since, until) }
}
