import BackgroundRuntime
import Foundation
import UserUnits

/// Examines the entry or unit that starts the agent after a login.
struct LoginExamination: Examination {
    private let check = "login"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let entry = AutostartEntry(directories: app.directories, environment: app.environment)
        let agent = (try? AgentStarter.findAgent(environment: app.environment).get()) ?? ""
        let fix = DoctorFinding.Fix("\(app.command) install", isSafe: true)
        switch entry.standing(agent: agent) {
        case nil where app.books?.hasWorkLeft != true:
            return [DoctorFinding(check, .ok, "No work is left, so the next login does not need to start the agent.")]
        case nil: return [DoctorFinding(check, .failed, "nothing starts the agent at the next login", fix: fix)]
        case .startsNothing(let program):
            let what = program.isEmpty ? "no program" : "\(program), which does not exist"
            return [DoctorFinding(check, .failed, "the next login would start \(what)", fix: fix)]
        case .starts(let program):
            return [DoctorFinding(check, .warning, "the next login starts \(program) instead of this program", fix: fix)]
        case .isNotEnabled:
            return [
                DoctorFinding(
                    check, .failed, "\(entry.units.name(.service)) is not enabled, so the next login does not start the agent",
                    fix: fix)
            ]
        case .isMasked:
            let path = entry.units.url(.service).path
            return [
                DoctorFinding(
                    check, .failed, "\(path) is masked, so no login starts the agent",
                    fix: .init("rm \(ShellWord.quoted(path)); \(app.command) install"))
            ]
        case .lacksSocket:
            return [
                DoctorFinding(
                    check, .warning, "\(entry.units.name(.service)) has no socket, so the agent stays in memory when it is idle",
                    fix: fix)
            ]
        case .asItShouldBe:
            let kind =
                entry.units.hasManager
                ? "" : " No systemd user manager runs here, so a killed agent starts again at the next login."
            return [DoctorFinding(check, .ok, "The agent starts at the next login.\(kind)")]
        }
    }
}
