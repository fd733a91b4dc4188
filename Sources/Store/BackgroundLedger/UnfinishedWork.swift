/// Whether an agent is needed.
extension LedgerTransaction {
    package func hasUnfinishedWork() throws -> Bool {
        if try hasRequests() || !openQuestions().isEmpty || !liveLaunches().isEmpty { return true }
        if try fact(.significantTime) != nil { return true }
        if try hasActiveTransfers() { return true }
        // An end that a running process takes, too: should that process die, nobody else would tell it.
        if try hasEventsForTheApp() || !undeliveredResponses().isEmpty { return true }
        // A notification on the screen dies with its sender on some desktops, and its buttons on all.
        return try notifications().contains { notice in
            switch notice.state {
            case .pending, .presenting, .delivered, .withdrawing: true
            case .closed, .withdrawn: notice.isComing
            }
        }
    }
}
