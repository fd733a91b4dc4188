import ArgumentParser
import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import ProcessSupport

/// `notify --test`.
public struct NotifyCommand: BackgroundCommand {
    public static let configuration = describe(
        "notify", "Proves that notifications reach you, and your buttons the app: asks you to press one.",
        example: "notify --test")

    @Flag(help: "Send one with a button, and say how far it came.") var test = false
    @Option(help: "Seconds that you have for the button.") var timeout = 120

    public init() {}

    /// - Throws: what is wrong with the words.
    public func validate() throws {
        guard test else { throw ValidationError("--test is what there is to do") }
        guard (1...3_600).contains(timeout) else { throw ValidationError("--timeout is a number of seconds from 1 to 3600") }
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
        steps.say("It is written down, and an agent has it.")
        do {
            try await show(steps)
            steps.say("It is on the screen. Press its button, \"It works\"; \(Self.way(server.name)) You have \(timeout) s.")
            let outcome = try await outcome(after: lastResponse)
            try remember(outcome, server, steps)
            try judge(outcome, steps)
            try await answer(after: last, steps)
        } catch {
            takeBack()
            throw error
        }
        Output.line("Every step of the chain works.")
    }

    // MARK: The steps

    private func server(_ steps: Steps) throws -> NotificationServerReport {
        let agent = try AgentStarter.findAgent(environment: ThisProcess.environment).get()
        let app = ExaminedApp.look(verb: Self.configuration.commandName ?? "")
        let report = try NotificationsExamination.ask(agent, app)
        if report.trouble != nil {
            let finding = NotificationsExamination().row(report, app)
            let help = finding.fix.map { "; this may help: \($0.command)" } ?? ""
            throw CommandFailure(.unavailable, finding.message + help)
        }
        guard report.capabilities.contains("actions") else {
            throw CommandFailure(
                .unavailable, "\(report.name) \(report.version) shows notifications without buttons: there is nothing to press")
        }
        steps.say("\(report.name) \(report.version) shows notifications here.")
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
            throw CommandFailure(.tryAgain, "these are quiet hours: until \(Output.moment(until)) nothing is shown")
        }
    }

    private func add() throws {
        let content = NotificationContent(
            title: "Does this work?", subtitle: "", body: "Press the button: the command that asked sees it.",
            categoryIdentifier: Self.category, threadIdentifier: "", userInfo: "{}", sound: nil, interruptionLevel: 2, badge: nil)
        let now = AppRuntime.shared.now
        try AppRuntime.shared.commit { transaction in
            try transaction.setCategory(Self.category, actions: [NoticeAction(key: Self.button, label: "It works")])
            try transaction.addNotification(Self.identifier, content, dueAt: nil, now: now)
        }
    }

    private func show(_ steps: Steps) async throws {
        let trouble = try await wait(20) { transaction -> String? in
            guard let record = try transaction.notification(Self.identifier) else { return "it was taken back" }
            return record.life.isTold && !record.life.isHidden ? "" : record.trouble
        }
        guard let trouble else { throw CommandFailure(.unavailable, "nobody showed it within 20 s; `doctor` looks further") }
        guard trouble.isEmpty else { throw CommandFailure(.unavailable, "it cannot be shown: \(trouble)") }
    }

    enum Outcome {
        case button, notification, dismissed, expired, nothing

        /// `nil` if the notification left the screen before the user could answer.
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

    /// Some servers advertise buttons and draw none.
    private func remember(_ outcome: Outcome, _ server: NotificationServerReport, _ steps: Steps) throws {
        guard let areDrawn = outcome.provesButtons else { return }
        try AppRuntime.shared.commit { try $0.recordButtons(areDrawn: areDrawn, byServer: server.label) }
        guard !areDrawn else { return }
        steps.say(
            "Its button was not pressed: \(server.label) counts as a server without buttons. Notifications say what to type instead. "
                + "Press the button in this test to change that.")
    }

    private func judge(_ outcome: Outcome, _ steps: Steps) throws {
        switch outcome {
        case .button: steps.say("You pressed it, and the agent heard that.")
        case .notification: steps.say("You pressed the notification itself, and the agent heard that.")
        case .dismissed:
            throw CommandFailure(.tryAgain, "it left the screen without a press: you dismissed it, or the server did")
        case .expired:
            throw CommandFailure(.tryAgain, "it left the screen without a press: the server takes them off after a time")
        case .nothing:
            throw CommandFailure(
                .tryAgain,
                "no press was heard within \(timeout) s. If you did press the button, this server does not tell who showed it")
        }
    }

    private func answer(after last: Int64, _ steps: Steps) async throws {
        let outcome = try await wait(60) { try Self.launch(after: last, $0)?.outcome }
        guard outcome == .completed else {
            throw CommandFailure(
                .unavailable,
                "the app was launched for it and ended as \(outcome.map(\.rawValue) ?? "not yet ended"): `history` says more")
        }
        steps.say("The app was launched for it, and has ended well.")
    }

    private static func launch(after last: Int64, _ transaction: LedgerTransaction) throws -> LaunchRecord? {
        try transaction.history(limit: 50).last {
            $0.kind == .notificationResponse && $0.identifier == identifier && ($0.id ?? 0) > last
        }
    }

    /// What is not pressed shall not stay.
    private func takeBack() {
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("the removal of the test") { transaction in
            try transaction.takeBack([transaction.notification(Self.identifier)].compactMap { $0 }, now: now)
        }
    }

    /// `nil`: not within so many seconds.
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

    /// Where servers hide their buttons. Source: measured.
    private static func way(_ server: String) -> String {
        switch server {
        case "dunst": "dunst shows none: a click with the middle button presses it, or the key of its menu."
        case "mako": "mako shows none: click it, or type: makoctl invoke works."
        case "gnome-shell": "GNOME shows it when the pointer is on the notification, or in the tray."
        case "lxqt-notificationd": "LXQt has it in a list: choose it, then OK."
        default: "it is on the notification."
        }
    }
}

/// Says each step with its time.
private final class Steps {
    private let start = ContinuousClock.now

    func say(_ text: String) {
        let time = (ContinuousClock.now - start) / .seconds(1)
        Output.line("\(String(format: "%7.2f", time)) s  \(text)")
    }
}
