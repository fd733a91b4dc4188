import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import UserUnits

/// The agent: whether its program is there, whether it runs, and whether it can do its work.
struct AgentExamination: Examination {
    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        [program(app), agent(app)] + launched(app) + stoppedLaunches(app)
    }

    private func program(_ app: ExaminedApp) -> DoctorFinding {
        let check = "agent-program"
        switch AgentStarter.findAgent(environment: app.environment) {
        case .success(let path): return DoctorFinding(check, .ok, path)
        case .failure(let missing):
            let withoutMode = missing.places.first { path in
                var information = stat()
                return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFREG
            }
            if let withoutMode {
                return DoctorFinding(
                    check, .failed, "\(withoutMode) may not be executed",
                    fix: .init("chmod +x \(ShellWord.quoted(withoutMode))", isSafe: true))
            }
            return DoctorFinding(check, .failed, "\(missing): nothing is woken; install \(app.manifest.displayName) again")
        }
    }

    private func agent(_ app: ExaminedApp) -> DoctorFinding {
        let check = "agent"
        let bringBack = DoctorFinding.Fix("\(app.command) why", isSafe: true)
        guard AgentStarter(directories: app.directories).isRunning else {
            guard let books = app.books, books.hasWorkLeft else {
                return DoctorFinding(check, .ok, "None runs: there is nothing to do for one.")
            }
            guard let absence = books.absence else {
                return DoctorFinding(check, .failed, "none runs, and work waits for one", fix: bringBack)
            }
            return away(absence, app, bringBack)
        }
        let lock = app.directories.agentLock.path
        let holder = LockHolder.find(lock: lock)
        if let holder, holder.name != "background-agent", ThisProcess.executable(of: holder.pid)?.path.hasSuffix("-agent") != true
        {
            return DoctorFinding(
                check, .failed, "\(holder) holds \(lock), and is no agent: none can start",
                fix: .init("kill \(holder.pid); sleep 1; \(app.command) why"))
        }
        guard let pid = holder?.pid else { return DoctorFinding(check, .warning, "one runs, but its process cannot be seen") }
        if RunningProcess(pid).isStopped {
            return DoctorFinding(
                check, .failed, "it was stopped (process \(pid)): nothing goes on", fix: .init("kill -CONT \(pid)", isSafe: true))
        }
        if let trouble = AgentTrouble.read(app.directories) {
            return DoctorFinding(check, .failed, "it waits: \(trouble.reason); tries again at \(Output.moment(trouble.nextTry))")
        }
        if let program = ThisProcess.executable(of: pid), program.isDeleted {
            // The one that follows is started by the verb behind it.
            let fix = DoctorFinding.Fix("kill \(pid); sleep 1; \(app.command) why")
            return DoctorFinding(check, .warning, "it is of a program that was replaced or removed: \(program.path)", fix: fix)
        }
        if let trouble = app.books?.activationTrouble {
            return DoctorFinding(check, .warning, "it stays in memory between two events: \(trouble)")
        }
        return DoctorFinding(check, .ok, "It runs, process \(pid).")
    }

    /// It left with work left: whether it is really started again.
    private func away(_ absence: AgentAbsence, _ app: ExaminedApp, _ fix: DoctorFinding.Fix) -> DoctorFinding {
        let check = "agent"
        let units = UserUnits(directories: app.directories, environment: app.environment)
        let moment = absence.until.map { " at \(Output.moment($0))" } ?? ""
        func failed(_ why: String) -> DoctorFinding {
            DoctorFinding(check, .failed, "it left, to be started again\(moment), and \(why)", fix: fix)
        }
        guard units.hasManager else { return failed("no user manager runs") }
        guard let state = units.property("LoadState", of: .service) else { return failed("the user manager does not answer") }
        if state != "loaded" { return failed("\(units.name(.service)) is \(state)") }
        if units.property("SubState", of: .service) == "auto-restart" {
            return failed("what \(units.name(.service)) starts ends at once: `systemctl --user status \(units.name(.service))`")
        }
        do throws(UserUnits.Failure) { try units.demandService() } catch { return failed("\(error): it does not start") }
        if app.books?.isAgentAwaited == true { return failed("was not, although work has come") }
        if let until = absence.until, until.timeIntervalSinceNow < -60 { return failed("was not") }
        let needed: [UserUnits.Kind] = absence.until == nil ? [.socket] : [.socket, .timer]
        for kind in needed where units.property("ActiveState", of: kind) != "active" {
            return failed("\(units.name(kind)) is not active")
        }
        if let until = absence.until, units.nextMoment.map({ $0.timeIntervalSince(until) > 60 }) ?? true {
            return failed("\(units.name(.timer)) waits for another moment")
        }
        return DoctorFinding(
            check, .ok,
            "Nothing needs it now: the user manager starts it\(moment.isEmpty ? "" : moment + ", and") when there is work.")
    }

    /// What the agent launches.
    private func launched(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let record = app.books?.app else { return [] }
        let check = "app-program"
        let introduce = DoctorFinding.Fix("\(app.command) why", isSafe: true)
        if access(record.executable, X_OK) != 0 {
            return [
                DoctorFinding(check, .failed, "the agent would launch \(record.executable), which is not there", fix: introduce)
            ]
        }
        if record.executable != app.manifest.launchedExecutable.path {
            return [
                DoctorFinding(
                    check, .warning, "the agent would launch another copy of this program: \(record.executable)", fix: introduce)
            ]
        }
        return [DoctorFinding(check, .ok, record.executable)]
    }

    /// One that was stopped is told to end, and does not hear it.
    private func stoppedLaunches(_ app: ExaminedApp) -> [DoctorFinding] {
        (app.books?.launches ?? []).compactMap { launch in
            // The fix signals the number, which must be the launch's own process.
            guard let process = launch.process, process.isAlive, RunningProcess(process.pid).isStopped else { return nil }
            let pid = process.pid
            return DoctorFinding(
                "launch", .failed, "\(launch.identifier) stands still: its process \(pid) was stopped",
                fix: .init("kill -CONT \(pid)", isSafe: true))
        }
    }
}
