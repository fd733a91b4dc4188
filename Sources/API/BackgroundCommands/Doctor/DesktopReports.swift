import BackgroundNotices
import BackgroundRuntime
import BackgroundScheduling
import BackgroundTasks
import Foundation

/// Stores the reports of the agent's program about this desktop, so that one run of `doctor` requests each report only once.
final class DesktopReports {
    private(set) var conditions: Result<ConditionsReport, AgentProbe.Trouble>?
    private(set) var server: Result<NotificationServerReport, CommandFailure>?

    func conditions(_ agent: String, _ app: ExaminedApp) -> Result<ConditionsReport, AgentProbe.Trouble> {
        if let conditions { return conditions }
        let answer: Result<ConditionsReport, AgentProbe.Trouble> =
            AgentProbe(agent: agent, environment: app.environment).query(["--examine-conditions"])
        conditions = answer
        return answer
    }

    func server(_ agent: String, _ app: ExaminedApp) -> Result<NotificationServerReport, CommandFailure> {
        if let server { return server }
        let answer = Result { () throws(CommandFailure) in try NotificationsExamination.query(agent, app) }
        server = answer
        return answer
    }
}

extension ExaminedApp {
    /// The facts about the desktop. Values of the current reports replace the values that an agent recorded earlier.
    var desktopFacts: DesktopFacts {
        var facts = DesktopFacts(directories, environment: environment, recorded: books?.recorded ?? DesktopFacts.Recorded())
        facts.installCommand = command + " install"
        if case .success(let report)? = desktop.conditions, let knowledge = report.conditions.knowledge {
            facts.knowledge = knowledge
        }
        if facts.buttons != .switchedOff, let server = desktop.server { facts.buttons = buttons(server) }
        return facts
    }

    /// Returns `true` if the notification server advertises buttons, but the user did not see the button in the notification of
    /// `notify --test`.
    func hidesButtons(_ report: NotificationServerReport) -> Bool {
        report.capabilities.contains("actions") && books?.recorded.serversWithoutButtons.contains(report.label) == true
    }

    private func buttons(_ server: Result<NotificationServerReport, CommandFailure>) -> DesktopFacts.Buttons {
        switch server {
        case .failure(let failure): return .unreachable(failure.message)
        case .success(let report):
            switch report.trouble {
            case nil: return report.capabilities.contains("actions") && !hidesButtons(report) ? .shown : .notShown
            case .noBus: return .noSession
            case .noServer: return .unreachable("no notification server runs on this desktop")
            case .refused: return .unreachable("the notification server refuses requests")
            case .silent: return .unreachable("the notification server does not respond")
            }
        }
    }
}
