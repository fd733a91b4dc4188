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
}
