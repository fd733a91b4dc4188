import ProcessSupport
import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    static func stormyServer() async throws -> FaultyServer {
        let server = try await FaultyServer.start()
        Weather.serve(.json(Weather.forecast()), on: server)
        return server
    }

    /// Tests with a user manager. After a login, a logout or a power cut, an agent runs again. A missed check runs once.
    @Suite(.enabled(if: UserManager.obstacle == nil, "\(UserManager.obstacle ?? "")")) struct Login {
        let desktop: Desktop
        let server: FaultyServer
        let home: Home
        let manager: UserManager

        init() async throws {
            desktop = try Desktop()
            server = try await EndToEnd.stormyServer()
            home = try Home(server: server, desktop: desktop)
            manager = try UserManager(home)
            try manager.start()
        }

        private var unit: String { "background-agent-stormy.service" }

        private func schedule() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let result = try home.stormy("schedule")
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            let folder = home.folder.path + "/config/systemd/user"
            #expect(FileManager.default.fileExists(atPath: "\(folder)/\(unit)"))
            #expect(
                try FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/default.target.wants/\(unit)")
                    == "\(folder)/\(unit)")
            #expect(!FileManager.default.fileExists(atPath: home.folder.path + "/config/autostart"))
            try home.wait("the agent") { try $0.fact(.agent) }
            // The agent is the main process of the unit, and not a child process of the command.
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            #expect(try manager.systemctl("is-enabled", unit).output == "enabled\n")
        }

        private func expectMissedCheckRanOnce() throws {
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
            #expect(try manager.systemctl("is-active", unit).output == "active\n")
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            #expect(try home.wait("tomorrow") { try $0.request("StormyNoon")?.occurrence } > Date())
        }

        @Test func `a missed check runs once after the next login`() throws {
            try schedule()
            let before = home.agentPID
            try manager.logOut()
            #expect(!FileLock.isHeld(home.directories.agentLock), "the agent outlived the logout")
            try Noon.missDays(1, home)
            try manager.start()
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            try expectMissedCheckRanOnce()
        }

        @Test func `a missed check runs once after a power cut`() throws {
            try schedule()
            let before = home.agentPID
            manager.powerCut()
            #expect(!FileLock.isHeld(home.directories.agentLock))
            try Noon.missDays(1, home)
            try manager.start()
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            try expectMissedCheckRanOnce()
        }

        @Test func `a killed agent is restarted`() throws {
            try schedule()
            let before = home.agentPID
            try home.killAgent()
            // The unit restarts the agent after five seconds.
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
        }

        /// Another process started the agent before the unit existed. From then on, the agent of the unit is on standby.
        @Test func `the unit takes over from an agent that it did not start`() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let stray = try home.startAgent()
            #expect(try home.wait("the agent") { try $0.fact(.agent)?.pid } == stray.pid)
            #expect(try home.stormy("schedule").status == 0)
            #expect(home.agentPID == stray.pid)
            stray.end(SIGKILL)
            try home.wait("the unit's agent") { try $0.fact(.agent)?.pid != stray.pid ? true : nil }
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            // `quit` also ends agents on standby.
            #expect(try home.stormy("quit").status == 0)
            #expect(!FileLock.isHeld(home.directories.agentLock))
            #expect(try manager.systemctl("is-active", unit).status != 0)
        }

        /// The state folder is restored from a copy. The agent of the unit still waits for a lock in the removed folder.
        @Test func `the agent of the unit takes the lock of a replaced state folder`() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let stray = try home.startAgent()
            try home.wait("the agent") { try $0.fact(.agent) }
            #expect(try home.stormy("schedule").status == 0)
            let state = home.directories.state
            let copy = home.folder.appendingPathComponent("copy")
            try FileManager.default.copyItem(at: state, to: copy)
            // The folder is moved before it is removed. Without the move, a running agent could add files during the removal.
            for name in (0...).lazy.map({ "gone-\($0)" }) {
                try FileManager.default.moveItem(at: state, to: home.folder.appendingPathComponent(name))
                // Between the move and this rename, an agent can create the folder again. The rename then fails, and the test
                // repeats both steps.
                if rename(copy.path, state.path) == 0 { break }
                try #require(errno == ENOTEMPTY || errno == EEXIST)
            }
            for name in try FileManager.default.contentsOfDirectory(atPath: home.folder.path) where name.hasPrefix("gone-") {
                let gone = home.folder.appendingPathComponent(name)
                try home.wait("the old folder is gone") { _ in
                    try? FileManager.default.removeItem(at: gone)
                    return FileManager.default.fileExists(atPath: gone.path) ? nil : true
                }
            }
            // After five seconds, the first agent starts again, or the agent of the unit takes its place. The two agents never
            // run at the same time.
            try home.wait("an agent") { _ in FileLock.isHeld(home.directories.agentLock) ? true : nil }
            stray.end(SIGKILL)
            try home.wait("the unit's agent") { _ in
                let pid = try manager.systemctl("show", "-P", "MainPID", unit).output.dropLast()
                return home.agentPID.map(String.init) == String(pid) ? true : nil
            }
            // The agent holds the lock of the file that exists at the path now.
            #expect(FileLock.isHeld(home.directories.agentLock))
        }

        // MARK: Exit between two events

        private func ledger<Value>(_ question: (LedgerTransaction) throws -> Value) throws -> Value {
            try Ledger(home.directories).read(question)
        }

        private func isActive(_ kind: String) throws -> String {
            try String(manager.systemctl("is-active", "background-agent-stormy.\(kind)").output.dropLast())
        }

        /// Waits until an agent without work has exited, and until the user manager waits for the next event.
        private func waitForAbsence() throws -> AgentAbsence {
            let absence = try home.wait("its leave") { try $0.fact(.absence) }
            try manager.wait(for: "its end") { try isActive("service") == "inactive" }
            return absence
        }

        @Test func `the agent exits until noon, and a command with work starts it`() throws {
            try schedule()
            let absence = try waitForAbsence()
            let next = try #require(try ledger { try $0.request("StormyNoon")?.earliestBegin })
            #expect(absence.until == next)
            #expect(try isActive("timer") == "active" && isActive("socket") == "active")
            let timer = try String(
                contentsOfFile: home.folder.path + "/config/systemd/user/background-agent-stormy.timer", encoding: .utf8)
            #expect(timer.contains("OnCalendar=*-*-* ") && timer.contains("Persistent=true"), "\(timer)")
            #expect(
                try manager.systemctl("show", "-P", "NextElapseUSecRealtime", "background-agent-stormy.timer").output.count > 1)
            // `doctor` shows that no agent is running, and when the next agent starts. `doctor` does not start the agent.
            let doctor = try home.stormy("doctor", "--all")
            #expect(
                doctor.output.contains("The user manager starts the agent at") && !doctor.output.contains("no agent runs"),
                "\(doctor)")
            #expect(try isActive("service") == "inactive")
            // All commands except `doctor` start the agent if work is pending. The agent checks the work and exits again.
            #expect(try home.stormy("status").output.contains("not needed now. The agent starts at "))
            try home.wait("the agent") { try $0.fact(.absence) == nil ? true : nil }
            _ = try waitForAbsence()
            let why = try home.stormy("why").output
            #expect(
                why.contains("✓ agent: this command started the agent, although no work was due until"), "\(why)")
            _ = try waitForAbsence()
            // The new download causes a change notification, which starts the agent.
            server.route("GET", "/disk.img", .file(Payload.pattern(10_000), etag: "\"v1\""))
            let target = home.folder.appendingPathComponent("disk.img").path
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target).status == 0)
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
            #expect(try ledger { try $0.fact(.agent)?.pid } != nil && ledger { try $0.fact(.absence) } == nil)
            // The agent keeps running while its notification is on the screen.
            #expect(desktop.listen(for: 1) == ["Downloaded"])
            #expect(try isActive("service") == "active")
            try desktop.dunstctl("close-all")
            _ = try waitForAbsence()
        }

        @Test func `the timer starts the agent at the time of a launch`() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            // The due time is so near that the test can wait for it, and so far away that the agent exits before it.
            let due = Date(timeIntervalSinceNow: 32)
            let zone = try #require(home.environment["TZ"].flatMap(TimeZone.init(identifier:)))
            let time = due.formatted(
                Date.VerbatimFormatStyle(
                    format:
                        "\(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits)",
                    timeZone: zone, calendar: .current))
            let scheduled = try home.stormy("schedule", "--at", time, "--exact")
            #expect(scheduled.status == 0 && scheduled.output.contains("(in "), "\(scheduled)")
            let before = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            _ = try waitForAbsence()
            try home.waitForEnded("appRefresh")
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try ledger { try $0.fact(.agent)?.pid } != before)
            let launch = try #require(try ledger { try $0.history(limit: 1).first })
            #expect(launch.startedAt.timeIntervalSince(due) < 5, "the timer started the agent in time")
        }

        @Test func `a masked timer keeps the agent in memory and is reported`() throws {
            let timer = home.folder.path + "/config/systemd/user/background-agent-stormy.timer"
            try FileManager.default.createDirectory(
                atPath: (timer as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: timer, withDestinationPath: "/dev/null")
            try schedule()
            let trouble = try home.wait("what keeps it") { try $0.fact(.activationTrouble) }
            #expect(trouble.contains("is masked"))
            #expect(try isActive("service") == "active")
            #expect(
                try home.stormy("doctor").output.contains(
                    "the agent stays in memory when it is idle, because background-agent-stormy.timer is masked"))
            #expect(
                try home.stormy("why").output.contains(
                    "The agent stays in memory when it is idle, because background-agent-stormy.timer is masked.\n"))
        }

        /// A line that the user added to the timer removes the time, adds a later time, or names another unit. systemd still
        /// starts this timer, so the agent must detect the change and keep running.
        @Test(arguments: [
            "OnCalendar=\n", "OnCalendar=\nOnCalendar=*-01-01 00:00:00\nOnCalendar=*-07-01 00:00:00\n", "Unit=default.target\n",
        ])
        func `a timer that the user changed keeps the agent in memory`(_ lines: String) throws {
            try add("[Timer]\n" + lines, to: "background-agent-stormy.timer")
            try schedule()
            let trouble = try home.wait("what keeps it") { try $0.fact(.activationTrouble) }
            #expect(trouble == "the user manager did not accept the start time in background-agent-stormy.timer")
            #expect(try isActive("service") == "active")
        }

        /// The condition is true now, but may be false at the time of the check. If the condition is false, systemd skips the
        /// start of the service without an error.
        @Test func `a condition that the user added to the unit keeps the agent in memory`() throws {
            let place = try add("[Unit]\nConditionPathIsDirectory=/\n", to: unit)
            try schedule()
            let trouble = try home.wait("what keeps it") { try $0.fact(.activationTrouble) }
            #expect(trouble == "\(place) contains the line ConditionPathIsDirectory=/")
            #expect(try isActive("service") == "active")
        }

        /// - Returns: The path of the file.
        @discardableResult
        private func add(_ text: String, to unit: String) throws -> String {
            let folder = home.folder.path + "/config/systemd/user/\(unit).d"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try text.write(toFile: folder + "/own.conf", atomically: true, encoding: .utf8)
            return folder + "/own.conf"
        }

        /// The timer was stopped while no agent was running. `doctor --fix` starts the agent, and the agent starts the timer
        /// again.
        @Test func `a stopped timer is reported, and doctor --fix starts it`() throws {
            try schedule()
            _ = try waitForAbsence()
            _ = try manager.systemctl("stop", "background-agent-stormy.timer")
            #expect(try home.stormy("doctor").output.contains("background-agent-stormy.timer is not active"))
            _ = try home.stormy("doctor", "--fix")
            _ = try home.wait("the agent") { try $0.fact(.absence) == nil ? true : nil }
            _ = try waitForAbsence()
            #expect(try isActive("timer") == "active")
        }

        /// systemd does not start a socket while the service of the socket is running.
        @Test func `a stopped socket is started again`() throws {
            try schedule()
            #expect(try manager.systemctl("stop", "background-agent-stormy.socket").status == 0)
            // The service restarts, so that systemd can start its socket. After the restart, the service exits.
            try manager.wait(for: "its leave") {
                try isActive("service") == "inactive" && isActive("socket") == "active" && isActive("timer") == "active"
            }
        }

        /// The reasons why a unit does not start the agent.
        enum Fault: CaseIterable {
            case isMasked
            case endsAtOnce
            case isSkipped
        }

        /// After a download is requested, it completes without the unit.
        @Test(arguments: Fault.allCases) func `work is done if the unit does not start the agent`(_ fault: Fault) throws {
            try schedule()
            _ = try waitForAbsence()
            let place = home.folder.path + "/config/systemd/user/\(unit)"
            switch fault {
            case .isMasked:
                try FileManager.default.removeItem(atPath: place)
                try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: "/dev/null")
            case .endsAtOnce:
                let lines = try String(contentsOfFile: place, encoding: .utf8).split(
                    separator: "\n", omittingEmptySubsequences: false)
                let changed = lines.map { $0.hasPrefix("ExecStart=") ? "ExecStart=/bin/false" : $0 }
                try changed.joined(separator: "\n").write(toFile: place, atomically: true, encoding: .utf8)
            case .isSkipped: try add("[Unit]\nConditionPathExists=/nowhere\n", to: unit)
            }
            _ = try manager.systemctl("daemon-reload")
            if fault != .endsAtOnce {
                let doctor = try home.stormy("doctor")
                let why =
                    fault == .isMasked
                    ? "\(unit) is masked" : "contains the line ConditionPathExists=/nowhere, so the agent does not start"
                #expect(
                    doctor.status == 2 && doctor.output.contains("✗ agent: the agent exited and should be started again"),
                    "\(doctor)")
                #expect(doctor.output.contains(why), "\(doctor)")
            }
            server.route("GET", "/disk.img", .file(Payload.pattern(10_000), etag: "\"v1\""))
            let target = home.folder.appendingPathComponent("disk.img").path
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target).status == 0)
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
        }

        /// The next agent takes over the launch with its remaining time.
        @Test func `a launch continues when its agent is killed`() throws {
            Weather.serve(.silence, on: server)
            try schedule()
            #expect(try home.stormy("simulate", "launch", "StormyNoon").status == 0)
            let launch = try home.wait("the launch") { try $0.liveLaunches().first { $0.pid != nil } }
            let before = home.agentPID
            try home.killAgent()
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            let now = try #require(try ledger { try $0.liveLaunches().first })
            #expect(now.id == launch.id && now.pid == launch.pid && FileLock.isHeld(home.directories.launchLock(launch.id!)))
        }

        /// The time of the daily check depends on the time zone. The timer was written before the change, so it still contains
        /// the time in the old zone.
        @Test func `a new time zone starts an agent that had exited`() throws {
            try schedule()
            try manager.logOut()
            let travelling = try UserManager(home, ownsEtc: true)
            try travelling.start()
            func isAway() throws -> Bool {
                try travelling.systemctl("is-active", unit).status != 0 && ledger { try $0.fact(.absence) } != nil
            }
            try travelling.wait(for: "its leave", isAway)
            let before = try ledger { try $0.fact(.agent)?.startedAt }
            let link = home.folder.path + "/etc/localtime"
            try FileManager.default.createSymbolicLink(
                atPath: link + ".new", withDestinationPath: "/usr/share/zoneinfo/Pacific/Apia")
            try #require(rename(link + ".new", link) == 0)
            try home.wait("the agent") { try $0.fact(.agent)?.startedAt != before ? true : nil }
            try travelling.wait(for: "its leave", isAway)
        }

        @Test func `quit removes the units of an agent that had exited`() throws {
            try schedule()
            _ = try waitForAbsence()
            #expect(try home.stormy("quit").status == 0)
            try manager.wait(for: "the units are gone") {
                try manager.systemctl("list-units", "--all", "background-agent-stormy.*").output.contains("0 loaded units")
            }
            let left = try FileManager.default.subpathsOfDirectory(atPath: home.folder.path + "/config/systemd")
            #expect(!left.contains { $0.contains("background-agent") }, "\(left)")
            #expect(!FileManager.default.fileExists(atPath: home.folder.path + "/run/stormy/bell"))
        }

        /// When the manager ends, its processes also end. The check runs again after the next login.
        @Test func `a check runs again after a logout during its launch`() throws {
            Weather.serve(.silence, on: server)
            try schedule()
            #expect(try home.stormy("simulate", "launch", "StormyNoon").status == 0)
            try home.wait("the launch") { try $0.liveLaunches().first?.pid }
            try manager.logOut()
            #expect(!FileLock.isHeld(home.directories.agentLock))
            Weather.serve(.json(Weather.forecast()), on: server)
            try Noon.missDays(1, home)
            try manager.start()
            try home.wait("a check") { try $0.history(limit: 5).first { $0.outcome == .completed } }
        }

        @Test func `unschedule and quit remove the login entry`() throws {
            try schedule()
            #expect(try home.stormy("unschedule").status == 0)
            let folder = home.folder.path + "/config/systemd/user"
            func isInstalled() -> Bool {
                FileManager.default.fileExists(atPath: "\(folder)/\(unit)")
                    || (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/default.target.wants/\(unit)"))
                        != nil
            }
            #expect(!isInstalled())
            try home.stormy("schedule")
            #expect(isInstalled())
            #expect(try home.stormy("quit").status == 0)
            #expect(!isInstalled())
            #expect(!FileLock.isHeld(home.directories.agentLock))
            #expect(try manager.systemctl("is-active", unit).status != 0)
        }
    }
}
