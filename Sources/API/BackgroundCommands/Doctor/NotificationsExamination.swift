import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import ProcessSupport

/// Examines whether this desktop shows notifications. The agent's program makes this examination, because the app's program does
/// not contain the necessary libraries.
struct NotificationsExamination: Examination {
    private let check = "notifications"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        if app.books?.settings.notificationsEnabled == false {
            return [DoctorFinding(check, .warning, "notifications are turned off in the app's settings")]
        }
        guard case .success(let agent) = AgentStarter.findAgent(environment: app.environment) else { return [] }
        do throws(CommandFailure) {
            return [row(try app.desktop.server(agent, app).get(), app)] + waiting(app)
        } catch {
            return [DoctorFinding(check, .failed, error.message)]
        }
    }

    /// Runs the agent's program, which queries the notification server.
    static func query(_ agent: String, _ app: ExaminedApp) throws(CommandFailure) -> NotificationServerReport {
        let session = app.books?.session?.variables ?? [:]
        let arguments = ["--examine-notifications"] + [session["DBUS_SESSION_BUS_ADDRESS"]].compactMap { $0 }
        // The program gets the environment that an agent would have. Variables of this terminal are preferred. For other
        // variables, the ledger contains the values that earlier commands recorded.
        let answer: Result<NotificationServerReport, AgentProbe.Trouble> =
            AgentProbe(agent: agent, environment: session.merging(app.environment) { $1 }).query(arguments)
        switch answer {
        case .success(let report): return report
        case .failure(let trouble): throw CommandFailure(.unavailable, "\(agent) does not work: \(trouble.words)")
        }
    }

    func row(_ report: NotificationServerReport, _ app: ExaminedApp) -> DoctorFinding {
        switch report.trouble {
        case nil:
            let server = report.label
            guard report.capabilities.contains("actions") else {
                return DoctorFinding(
                    check, .warning, "\(server) shows notifications without buttons. Upload photos from the terminal")
            }
            if app.hidesButtons(report) {
                return DoctorFinding(
                    check, .warning,
                    "\(server) shows notifications, but the button of the last test notification was not pressed. "
                        + "Upload photos from the terminal",
                    fix: .init("\(app.command) notify --test"))
            }
            let measured = MeasuredServers.all?.words(of: report).map { " " + $0 } ?? ""
            return DoctorFinding(check, .ok, "\(server) shows notifications with buttons.\(measured)")
        case .noBus:
            return DoctorFinding(
                check, .failed,
                "no session bus was found (\(report.detail)). Run this command in a terminal on the desktop:",
                fix: .init("\(app.command) why"))
        case .noServer: return DoctorFinding(check, .failed, "no notification server runs on this desktop", fix: start(app))
        case .refused: return DoctorFinding(check, .failed, "the notification server refuses requests: \(report.detail)")
        case .silent:
            let stopped = report.pid.map(RunningProcess.init).flatMap { $0.isStopped ? $0 : nil }
            return DoctorFinding(
                check, .failed, "the notification server does not respond" + (stopped.map { ": \($0)" } ?? ""),
                fix: stopped.map { .init("kill -CONT \($0.pid)") })
        }
    }

    /// Returns a fix that starts or installs a notification server. The chosen server works on any desktop.
    private func start(_ app: ExaminedApp) -> DoctorFinding.Fix? {
        let servers = app.environment["WAYLAND_DISPLAY"] == nil ? ["dunst"] : ["mako", "dunst", "swaync"]
        if let server = servers.first(where: { CompanionProgram.findInPath($0) != nil }) {
            return .init("setsid -f \(server) >/dev/null 2>&1")
        }
        return CompanionProgram.findInPath("apt").map { _ in .init("sudo apt install \(servers[0])") }
    }

    private func waiting(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let books = app.books else { return [] }
        let due = books.notices.filter { $0.state == .pending && ($0.dueAt ?? .distantPast) <= app.now && $0.trouble != nil }
        guard let first = due.first else { return [] }
        let what = due.count == 1 ? "1 notification waits" : "\(due.count) notifications wait"
        let trouble = first.trouble ?? ""
        return [DoctorFinding("waiting-notifications", .warning, "\(what) to be shown: \(trouble)")]
    }
}
