import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The command `quit`, which ends all background work.
public struct QuitCommand: BackgroundCommand {
    public static let configuration = describe(
        "quit", "Ends all background work. Queued transfers are paused, not deleted.", example: "quit")

    public init() {}

    public var effect: CommandEffect { .ends }

    public func perform() async throws {
        try await Self.endAll { requests, transfers in
            if requests > 0 {
                let noun = requests == 1 ? "request" : "requests"
                Output.line("Removed \(requests) \(noun). Nothing starts this app in the background.")
            }
            if transfers > 0 { Output.line("Paused \(transfers) transfer\(transfers == 1 ? "" : "s").") }
        }
    }

    /// Removes requests, pauses transfers, withdraws notifications, stops the agent and removes the agent's login entry.
    ///
    /// - Parameter report: a closure that prints the numbers of removed requests and paused transfers, with the app's own text.
    package static func endAll(report: (_ requests: Int, _ transfers: Int) -> Void) async throws {
        let runtime = AppRuntime.shared
        let ledger = try runtime.ledger()
        let starter = AgentStarter(directories: runtime.directories)
        let isRunning = starter.isRunning
        let (requests, transfers, notices, question) = try ledger.write { transaction in
            // The entry `significantTime` is removed, so that the agent does not launch the app for time changes until a user
            // starts the app again.
            try transaction.setFact(.significantTime, nil)
            try stopContinuedProcessing(transaction)
            try transaction.dropQuestions()
            // The ledger records the responses of the user as delivered. Without this record, a button that the user pressed
            // earlier could, for example, open a file chooser later.
            for response in try transaction.undeliveredResponses() {
                try transaction.responseWasDelivered(response.id!, now: AppRuntime.shared.now)
            }
            return (
                try transaction.deleteAllRequests(), try pauseTransfers(transaction), try withdrawNotifications(transaction),
                // If the agent was killed, a new agent is started, because launches of the old agent may still be running. The
                // new agent warns these launches and waits until they have ended.
                try isRunning || transaction.liveLaunches().contains { $0.kind != .continuedProcessing }
                    ? transaction.addControl(.quit, now: AppRuntime.shared.now) : nil
            )
        }
        AutostartEntry(directories: runtime.directories).remove()
        report(requests, transfers)
        let noun = notices.count == 1 ? "notification" : "notifications"
        if notices.count > 0 { Output.line("Withdrew \(notices.count) \(noun).") }
        // The withdrawn notifications that were never shown are listed, because the user cannot see them later.
        for words in notices.unseen { Output.line("  Never shown: \(words)") }
        guard let question else { return Output.line("No agent was running.") }
        if !isRunning { _ = try await runtime.waitForAgent { try $0.answer(to: question) } }
        try await waitForEnd()
        Output.line("Stopped the agent.")
        let unanswered = try ledger.read { try $0.notifications().filter { $0.life.mayStand || $0.leavingID != nil } }
        guard !unanswered.isEmpty else { return }
        let one = unanswered.count == 1
        let shown = one ? "1 notification" : "\(unanswered.count) notifications"
        let (pressed, removed) = one ? ("the notification", "the notification") : ("a notification", "the notifications")
        Output.line(
            "The notification server does not respond. When the server responds again, \(shown) may still be on the screen. "
                + "Pressing \(pressed) has no effect. "
                + "The agent removes \(removed) at its next start, if the server allows this.")
    }

    /// Records in the ledger that continued processing must stop. The processes that do this work read the ledger, so they stop
    /// even if no agent is running.
    private static func stopContinuedProcessing(_ transaction: LedgerTransaction) throws {
        for launch in try transaction.liveLaunches() where launch.kind == .continuedProcessing {
            if let id = launch.id { try transaction.handle(.stopRecorded(.quit), launch: id) }
        }
    }

    private static func pauseTransfers(_ transaction: LedgerTransaction) throws -> Int {
        var count = 0
        for var transfer in try transaction.unfinishedTransfers() where transfer.state != .paused {
            try transaction.handle(.shelved, &transfer, now: AppRuntime.shared.now)
            if transfer.state == .paused { count += 1 }
        }
        return count
    }

    private static func withdrawNotifications(_ transaction: LedgerTransaction) throws -> (count: Int, unseen: [String]) {
        let now = AppRuntime.shared.now
        let meant = try transaction.withdrawMatching(now: now) { $0.willBeShown || $0.life.isStillShown }
        let unseen = meant.filter { ($0.life.isUnreported || $0.life.isHidden) && $0.dueAt.map { $0 <= now } ?? true }.map {
            notice in
            [notice.content.title, notice.content.body].filter { !$0.isEmpty }.joined(separator: ": ")
        }
        return (meant.count, unseen)
    }

    /// Waits until the agent has released its lock, which means that the agent has exited.
    private static func waitForEnd() async throws {
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        let settings = try AppRuntime.shared.ledger().read { try $0.fact(.settings) } ?? AgentSettings()
        let deadline = Date().addingTimeInterval(settings.grace + 10)
        let patience = Date().addingTimeInterval(2)
        while starter.isRunning {
            if Date() > patience, let stopped = try AgentReport.current().stopped {
                throw CommandFailure(.tryAgain, "the agent has not exited. The agent is \(stopped)")
            }
            guard Date() < deadline else {
                throw CommandFailure(.tryAgain, "the agent still runs, because a launch or a transfer has not ended yet")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
