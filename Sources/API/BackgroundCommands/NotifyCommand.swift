import ArgumentParser
import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import ProcessSupport

/// The command `notify --test`, which shows a test notification with a button.
public struct NotifyCommand: BackgroundCommand {
    public static let configuration = describe(
        "notify", "Shows a test notification with a button, and waits until you press the button.",
        example: "notify --test")

    @Flag(help: "Send a test notification with a button, and print each step.") var test = false
    @Option(help: "The number of seconds in which you can press the button.") var timeout = 120

    public init() {}

    /// - Throws: an error that describes invalid arguments.
    public func validate() throws {
        guard test else { throw ValidationError("--test is required") }
        guard (1...3_600).contains(timeout) else { throw ValidationError("--timeout expects a number of seconds from 1 to 3600") }
    }

    private static let identifier = NotificationRecord.testIdentifier
    private static let category = NotificationRecord.testIdentifier
    private static let button = "works"

    public func perform() async throws {
        let steps = Steps()
        let server = try server(steps)
        try refuseWhereHeldBack()
        let (last, lastResponse) = try AppRuntime.shared.ledger().read { transaction in
            (try transaction.history(limit: 1).last?.id ?? 0, try transaction.lastResponse(to: Self.identifier)?.id ?? 0)
        }
        try add()
        steps.show("The agent has received the notification.")
        do {
            try await waitUntilShown(steps)
            steps.show(
                "The notification is on the screen. Press its button \"It works\": \(Self.way(server.name)) You have \(timeout) s."
            )
            let outcome = try await outcome(after: lastResponse)
            try remember(outcome, server, steps)
            try judge(outcome, steps)
            try await answer(after: last, steps)
        } catch {
            retract()
            throw error
        }
        Output.line("All steps succeeded.")
    }

    // MARK: The steps

    private func server(_ steps: Steps) throws -> NotificationServerReport {
        let agent = try AgentStarter.findAgent(environment: ThisProcess.environment).get()
        let app = ExaminedApp.current(verb: Self.configuration.commandName ?? "")
        let report = try NotificationsExamination.query(agent, app)
        if report.trouble != nil {
            let finding = NotificationsExamination().row(report, app)
            let help = finding.fix.map { "; this may help: \($0.command)" } ?? ""
            throw CommandFailure(.unavailable, finding.message + help)
        }
        guard report.capabilities.contains("actions") else {
            throw CommandFailure(
                .unavailable, "\(report.name) \(report.version) shows notifications without buttons")
        }
        steps.show("\(report.name) \(report.version) shows notifications here.")
        return report
    }

    private func refuseWhereHeldBack() throws {
        let settings = try AppRuntime.shared.ledger().read { try $0.fact(.settings) } ?? AgentSettings()
        let verdict = NoticeTiming.verdict(
            dueAt: nil, level: 1, category: Self.category, settings.noticeRules, now: AppRuntime.shared.now, zone: .current)
        switch verdict {
        case .show: break
        case .silenced: throw CommandFailure(.tryAgain, "notifications are turned off in the app's settings")
        case .wait(let until):
            throw CommandFailure(.tryAgain, "quiet hours: no notification is shown until \(Output.moment(until))")
        }
    }

    private func add() throws {
        let content = NotificationContent(
            title: "Does this work?", subtitle: "", body: "Press the button to complete the test.",
            categoryIdentifier: Self.category, threadIdentifier: "", userInfo: "{}", sound: nil, interruptionLevel: 2, badge: nil)
        let now = AppRuntime.shared.now
        try AppRuntime.shared.commit { transaction in
            try transaction.setCategory(Self.category, actions: [NoticeAction(key: Self.button, label: "It works")])
            try transaction.addNotification(Self.identifier, content, dueAt: nil, now: now)
        }
    }

    private func waitUntilShown(_ steps: Steps) async throws {
        let trouble = try await wait(20) { transaction -> String? in
            guard let record = try transaction.notification(Self.identifier) else { return "the notification was withdrawn" }
            return record.life.wasReported && !record.life.isHidden ? "" : record.trouble
        }
        guard let trouble else {
            throw CommandFailure(
                .unavailable, "no notification server showed the notification within 20 s; run `doctor` for details")
        }
        guard trouble.isEmpty else { throw CommandFailure(.unavailable, "the notification cannot be shown: \(trouble)") }
    }

    enum Outcome {
        case button, notification, dismissed, expired, nothing

        /// `true` if the user pressed the button, so the server shows buttons. `false` if the user did not press the button.
        /// `nil` if the server removed the notification from the screen before the user could respond.
        var provesButtons: Bool? {
            switch self {
            case .button: true
            case .notification, .dismissed, .nothing: false
            case .expired: nil
            }
        }
    }

    private func outcome(after last: Int64) async throws -> Outcome {
        let outcome = try await wait(Double(timeout)) { transaction -> Outcome? in
            if let response = try transaction.lastResponse(to: Self.identifier), response.id ?? 0 > last {
                return response.action == Self.button ? .button : .notification
            }
            switch try transaction.notification(Self.identifier)?.state {
            case .closed: return .dismissed
            case .expired: return .expired
            default: return nil
            }
        }
        return outcome ?? .nothing
    }

    /// Records in the ledger whether the server shows buttons. The record is necessary, because some servers advertise buttons
    /// but do not draw them.
    private func remember(_ outcome: Outcome, _ server: NotificationServerReport, _ steps: Steps) throws {
        guard let areDrawn = outcome.provesButtons else { return }
        try AppRuntime.shared.commit { try $0.recordButtons(areDrawn: areDrawn, byServer: server.label) }
        guard !areDrawn else { return }
        steps.show(
            "The button was not pressed, so \(server.label) now counts as a server without buttons. "
                + "Notifications now show a command instead of a button. "
                + "If this notification server shows buttons, test again and press the button.")
    }

    private func judge(_ outcome: Outcome, _ steps: Steps) throws {
        switch outcome {
        case .button: steps.show("You pressed the button, and the notification server reported this to the agent.")
        case .notification:
            steps.show("You pressed the notification itself, and the notification server reported this to the agent.")
        case .dismissed:
            throw CommandFailure(
                .tryAgain, "the notification was closed before the button was pressed, by you or by the notification server")
        case .expired:
            throw CommandFailure(.tryAgain, "the notification expired before the button was pressed")
        case .nothing:
            throw CommandFailure(
                .tryAgain,
                "the notification server did not report within \(timeout) s that the button was pressed. "
                    + "If you pressed the button, this server does not report pressed buttons")
        }
    }

    private func answer(after last: Int64, _ steps: Steps) async throws {
        let outcome = try await wait(60) { try Self.launch(after: last, $0)?.outcome }
        guard outcome == .completed else {
            let end = outcome.map { "the launch for the pressed button did not complete (\($0.rawValue))" }
            throw CommandFailure(
                .unavailable, "\(end ?? "the launch for the pressed button has not ended within 60 s"): see `history`")
        }
        steps.show("The app was launched for the pressed button, and the launch completed.")
    }

    private static func launch(after last: Int64, _ transaction: LedgerTransaction) throws -> LaunchRecord? {
        try transaction.history(limit: 50).last {
            $0.kind == .notificationResponse && $0.identifier == identifier && ($0.id ?? 0) > last
        }
    }

    /// Withdraws a test notification that the user did not press.
    private func retract() {
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("the removal of the test notification") { transaction in
            try transaction.retract([transaction.notification(Self.identifier)].compactMap { $0 }, now: now)
        }
    }

    /// Waits until `condition` returns a value. Returns `nil` if this takes longer than the given number of seconds.
    private func wait<Value: Sendable>(
        _ seconds: Double, until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await AppRuntime.shared.waitForAgent(until: condition) }
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Returns a text that explains how the user can press a button of this notification server. The texts are based on tests
    /// with these servers.
    private static func way(_ server: String) -> String {
        switch server {
        case "dunst": "dunst shows no buttons. Click the notification with the middle mouse button, or use the dunst menu."
        case "mako": "mako shows no buttons. Click the notification, or run: makoctl invoke works."
        case "gnome-shell": "GNOME shows the button when the pointer is on the notification, or in the message list."
        case "lxqt-notificationd": "LXQt shows the button in a list: choose the button, then OK."
        default: "the button is on the notification."
        }
    }
}

/// Prints each step of the test with the time since the start.
private final class Steps {
    private let start = ContinuousClock.now

    func show(_ text: String) {
        let time = (ContinuousClock.now - start) / .seconds(1)
        Output.line("\(String(format: "%7.2f", time)) s  \(text)")
    }
}
