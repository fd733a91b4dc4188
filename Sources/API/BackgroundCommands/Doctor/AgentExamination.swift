import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import UserUnits

/// Examines the agent: whether its program exists, whether it runs, and whether it can work.
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
                    check, .failed, "\(withoutMode) is not executable",
                    fix: .init("chmod +x \(ShellWord.quoted(withoutMode))", isSafe: true))
            }
            return DoctorFinding(
                check, .failed, "\(missing), so no background work runs. Install \(app.manifest.displayName) again")
        }
    }

    private func agent(_ app: ExaminedApp) -> DoctorFinding {
        let check = "agent"
        let bringBack = DoctorFinding.Fix("\(app.command) why", isSafe: true)
        guard AgentStarter(directories: app.directories).isRunning else {
            guard let books = app.books, books.hasWorkLeft else {
                return DoctorFinding(check, .ok, "No agent runs, because there is no work.")
            }
            guard let absence = books.absence else {
                return DoctorFinding(check, .failed, "no agent runs, although work is waiting", fix: bringBack)
            }
            return away(absence, app, bringBack)
        }
        let lock = app.directories.agentLock.path
        let holder = LockHolder.find(lock: lock)
        if let holder, holder.name != "background-agent", ThisProcess.executable(of: holder.pid)?.path.hasSuffix("-agent") != true
        {
            return DoctorFinding(
                check, .failed, "no agent can start, because \(holder) holds the lock \(lock) and is not an agent",
                fix: .init("kill \(holder.pid); sleep 1; \(app.command) why"))
        }
        guard let pid = holder?.pid else {
            return DoctorFinding(check, .warning, "an agent runs, but this command cannot see the process of the agent")
        }
        if RunningProcess(pid).isStopped {
            return DoctorFinding(
                check, .failed, "the agent (process \(pid)) is suspended, so no background work continues",
                fix: .init("kill -CONT \(pid)", isSafe: true))
        }
        if let trouble = AgentTrouble.read(app.directories) {
            return DoctorFinding(
                check, .failed,
                "the agent cannot work now: \(trouble.reason). The agent tries again at \(Output.moment(trouble.nextTry))")
        }
        if let program = ThisProcess.executable(of: pid), program.isDeleted {
            // `kill` ends the agent that runs the old program, and the command `why` starts a new agent.
            let fix = DoctorFinding.Fix("kill \(pid); sleep 1; \(app.command) why")
            return DoctorFinding(
                check, .warning, "the agent runs a program that was replaced or removed: \(program.path)", fix: fix)
        }
        if let trouble = app.books?.activationTrouble {
            return DoctorFinding(check, .warning, "the agent stays in memory when it is idle, because \(trouble)")
        }
        return DoctorFinding(check, .ok, "The agent runs (process \(pid)).")
    }

    /// Examines an agent that exited while work was waiting. Returns whether the user manager will start the agent again.
    private func away(_ absence: AgentAbsence, _ app: ExaminedApp, _ fix: DoctorFinding.Fix) -> DoctorFinding {
        let check = "agent"
        let units = UserUnits(directories: app.directories, environment: app.environment)
        let moment = absence.until.map { " at \(Output.moment($0))" } ?? ""
        func failed(_ why: String) -> DoctorFinding {
            DoctorFinding(check, .failed, "the agent exited and should be started again\(moment), but \(why)", fix: fix)
        }
        guard units.hasManager else { return failed("no systemd user manager runs") }
        guard let state = units.property("LoadState", of: .service) else { return failed("the user manager does not respond") }
        if state != "loaded" { return failed("\(units.name(.service)) is \(state)") }
        if units.property("SubState", of: .service) == "auto-restart" {
            return failed(
                "the program of \(units.name(.service)) exits immediately after each start. For details, run "
                    + "`systemctl --user status \(units.name(.service))`")
        }
        do throws(UserUnits.Failure) { try units.demandService() } catch {
            return failed("\(error), so the agent does not start")
        }
        if app.books?.isAgentAwaited == true { return failed("the user manager did not start the agent, although there is work") }
        if let until = absence.until, until.timeIntervalSinceNow < -60 {
            return failed("the user manager did not start the agent")
        }
        let needed: [UserUnits.Kind] = absence.until == nil ? [.socket] : [.socket, .timer]
        for kind in needed where units.property("ActiveState", of: kind) != "active" {
            return failed("\(units.name(kind)) is not active")
        }
        if let until = absence.until, units.nextElapse.map({ $0.timeIntervalSince(until) > 60 }) ?? true {
            return failed("\(units.name(.timer)) does not start the agent at the time of the next work")
        }
        let due = moment.isEmpty ? "" : moment + ", and"
        return DoctorFinding(
            check, .ok, "The agent is not needed now. The user manager starts the agent\(due) when there is work.")
    }

    /// Examines the program that the agent launches.
    private func launched(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let record = app.books?.app else { return [] }
        let check = "app-program"
        let introduce = DoctorFinding.Fix("\(app.command) why", isSafe: true)
        if access(record.executable, X_OK) != 0 {
            return [
                DoctorFinding(check, .failed, "the agent would launch \(record.executable), which does not exist", fix: introduce)
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

    /// Finds launches whose process a signal has stopped (SIGSTOP). The agent cannot end such a launch in time, because a stopped
    /// process does not react to the warning.
    private func stoppedLaunches(_ app: ExaminedApp) -> [DoctorFinding] {
        (app.books?.launches ?? []).compactMap { launch in
            // The fix sends a signal to this process number, so the number must still belong to the process of the launch.
            guard let process = launch.process, process.isAlive, RunningProcess(process.pid).isStopped else { return nil }
            let pid = process.pid
            return DoctorFinding(
                "launch", .failed,
                "the launch of \(launch.identifier) does not continue, because its process \(pid) is suspended",
                fix: .init("kill -CONT \(pid)", isSafe: true))
        }
    }
}
