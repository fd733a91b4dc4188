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

    /// Login, logout, power cut: the agent is back, and what was missed runs once.
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
            // The manager's own, not a stray child of the verb.
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            #expect(try manager.systemctl("is-enabled", unit).output == "enabled\n")
        }

        private func expectMissedCheckRanOnce() throws {
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try desktop.heardSoFar() == ["Storm expected in Here"])
            #expect(try manager.systemctl("is-active", unit).output == "active\n")
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            #expect(try home.wait("tomorrow") { try $0.request("StormyNoon")?.occurrence } > Date())
        }

        @Test func aMissedCheckRunsOnceAfterTheNextLogin() throws {
            try schedule()
            let before = home.agentPID
            try manager.logOut()
            #expect(!FileLock.isHeld(home.directories.agentLock), "the agent outlived the logout")
            try Noon.missDays(1, home)
            try manager.start()
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            try expectMissedCheckRanOnce()
        }

        @Test func aMissedCheckRunsOnceAfterAPowerCut() throws {
            try schedule()
            let before = home.agentPID
            manager.powerCut()
            #expect(!FileLock.isHeld(home.directories.agentLock))
            try Noon.missDays(1, home)
            try manager.start()
            try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
            try expectMissedCheckRanOnce()
        }

        @Test func aKilledAgentIsRestarted() throws {
            try schedule()
            let before = home.agentPID
            try home.killAgent()
            // Its unit says after five seconds.
            try home.wait("another agent", seconds: 20) { try $0.fact(.agent)?.pid != before ? true : nil }
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
        }

        /// Somebody else had started it, before there was a unit: that stands by from then on.
        @Test func theUnitTakesOverFromAnAgentThatIsNotItsOwn() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let stray = try home.startAgent()
            #expect(try home.wait("the agent") { try $0.fact(.agent)?.pid } == stray.pid)
            #expect(try home.stormy("schedule").status == 0)
            #expect(home.agentPID == stray.pid)
            stray.end(SIGKILL)
            try home.wait("the unit's agent") { try $0.fact(.agent)?.pid != stray.pid ? true : nil }
            #expect(try manager.systemctl("show", "-P", "MainPID", unit).output == "\(home.agentPID ?? 0)\n")
            // One that stands by goes with the rest.
            #expect(try home.stormy("quit").status == 0)
            #expect(!FileLock.isHeld(home.directories.agentLock))
            #expect(try manager.systemctl("is-active", unit).status != 0)
        }

        /// Its folder is put back from a copy: the lock that the unit's agent waits for is another file's by then.
        @Test func oneThatStandsByHoldsNoLockOfAFolderThatIsGone() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let stray = try home.startAgent()
            try home.wait("the agent") { try $0.fact(.agent) }
            #expect(try home.stormy("schedule").status == 0)
            let state = home.directories.state
            let copy = home.folder.appendingPathComponent("copy")
            try FileManager.default.copyItem(at: state, to: copy)
            // Not removed before: an agent that writes meanwhile makes files in what is being removed.
            for name in (0...).lazy.map({ "gone-\($0)" }) {
                try FileManager.default.moveItem(at: state, to: home.folder.appendingPathComponent(name))
                // An agent that looks just now makes the folder anew.
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
            // The one that ran begins afresh after five seconds, or the unit's takes its place. Never both.
            try home.wait("an agent", seconds: 30) { _ in FileLock.isHeld(home.directories.agentLock) ? true : nil }
            stray.end(SIGKILL)
            try home.wait("the unit's agent", seconds: 30) { _ in
                let pid = try manager.systemctl("show", "-P", "MainPID", unit).output.dropLast()
                return home.agentPID.map(String.init) == String(pid) ? true : nil
            }
            // What is held is the file that lies there now.
            #expect(FileLock.isHeld(home.directories.agentLock))
        }

        // MARK: Gone between two events

        private func ledger<Value>(_ question: (LedgerTransaction) throws -> Value) throws -> Value {
            try Ledger(home.directories).read(question)
        }

        private func isActive(_ kind: String) throws -> String {
            try String(manager.systemctl("is-active", "background-agent-stormy.\(kind)").output.dropLast())
        }

        /// Nothing needs it: its process is gone, and the user manager waits in its place.
        private func waitForAbsence() throws -> AgentAbsence {
            let absence = try home.wait("its leave") { try $0.fact(.absence) }
            try manager.wait(for: "its end") { try isActive("service") == "inactive" }
            return absence
        }

        @Test func itLeavesUntilNoonAndEachVerbThatHasWorkBringsItBack() throws {
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
            // A person who asks hears where it is, and that does not start it.
            let doctor = try home.stormy("doctor")
            #expect(doctor.output.contains("the user manager starts it at") && !doctor.output.contains("none runs"), "\(doctor)")
            #expect(try isActive("service") == "inactive")
            // Every other verb starts it where work is left: it looks, and leaves again.
            #expect(try home.stormy("status").output.contains("not needed now: it is started at "))
            try home.wait("the agent") { try $0.fact(.absence) == nil ? true : nil }
            _ = try waitForAbsence()
            let why = try home.stormy("why").output
            #expect(
                why.contains("✓ agent: it was not needed until") && why.contains("one was started to look just now"), "\(why)")
            _ = try waitForAbsence()
            // The bell.
            server.route("GET", "/disk.img", .file(Payload.pattern(10_000), etag: "\"v1\""))
            let target = home.folder.appendingPathComponent("disk.img").path
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target).status == 0)
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
            #expect(try ledger { try $0.fact(.agent)?.pid } != nil && ledger { try $0.fact(.absence) } == nil)
            // It says that it arrived, and stays as long as that is on the screen.
            #expect(desktop.listen(for: 1) == ["Downloaded"])
            #expect(try isActive("service") == "active")
            try desktop.dunstctl("close-all")
            _ = try waitForAbsence()
        }

        @Test func atTheMomentTheTimerStartsItForALaunch() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            // Near enough to be waited for, far enough to leave before.
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
            try home.waitForEnded("appRefresh", seconds: 90)
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try ledger { try $0.fact(.agent)?.pid } != before)
            let launch = try #require(try ledger { try $0.history(limit: 1).first })
            #expect(launch.startedAt.timeIntervalSince(due) < 5, "by its timer, not late")
        }

        @Test func aTimerThatIsMaskedKeepsItInMemoryAndIsSaid() throws {
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
                    "it stays in memory between two events: background-agent-stormy.timer is masked"))
            #expect(
                try home.stormy("why").output.contains(
                    "The agent stays in memory between two events: background-agent-stormy.timer is masked.\n"))
        }

        /// A person's own line takes the moment away, has a later one, or another unit; and the timer starts all the same.
        @Test(arguments: [
            "OnCalendar=\n", "OnCalendar=\nOnCalendar=*-01-01 00:00:00\nOnCalendar=*-07-01 00:00:00\n", "Unit=default.target\n",
        ])
        func aMomentThatTheManagerDoesNotTakeKeepsItInMemory(_ lines: String) throws {
            try add("[Timer]\n" + lines, to: "background-agent-stormy.timer")
            try schedule()
            let trouble = try home.wait("what keeps it") { try $0.fact(.activationTrouble) }
            #expect(trouble == "the user manager did not take the moment of background-agent-stormy.timer")
            #expect(try isActive("service") == "active")
        }

        /// A condition that holds now may not at noon, and systemd skips such a service in silence.
        @Test func aConditionOfAPersonsOwnKeepsItInMemory() throws {
            let place = try add("[Unit]\nConditionPathIsDirectory=/\n", to: unit)
            try schedule()
            let trouble = try home.wait("what keeps it") { try $0.fact(.activationTrouble) }
            #expect(trouble == "\(place) says ConditionPathIsDirectory=/")
            #expect(try isActive("service") == "active")
        }

        /// - Returns: where the text lies now.
        @discardableResult
        private func add(_ text: String, to unit: String) throws -> String {
            let folder = home.folder.path + "/config/systemd/user/\(unit).d"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try text.write(toFile: folder + "/own.conf", atomically: true, encoding: .utf8)
            return folder + "/own.conf"
        }

        /// Stopped by hand while it was away: said, and the next look brings it back, which arms it anew.
        @Test func aTimerThatWasStoppedIsSaidAndMended() throws {
            try schedule()
            _ = try waitForAbsence()
            _ = try manager.systemctl("stop", "background-agent-stormy.timer")
            #expect(try home.stormy("doctor").output.contains("background-agent-stormy.timer is not active"))
            _ = try home.stormy("doctor", "--fix")
            _ = try home.wait("the agent") { try $0.fact(.absence) == nil ? true : nil }
            _ = try waitForAbsence()
            #expect(try isActive("timer") == "active")
        }

        /// systemd starts no socket beside a service that runs.
        @Test func aSocketThatWasStoppedBesideItComesBack() throws {
            try schedule()
            #expect(try manager.systemctl("stop", "background-agent-stormy.socket").status == 0)
            // The service starts anew to bring its socket, and leaves.
            try manager.wait(for: "its leave") {
                try isActive("service") == "inactive" && isActive("socket") == "active" && isActive("timer") == "active"
            }
        }

        /// How a unit starts nothing.
        enum Fault: CaseIterable {
            case isMasked
            case endsAtOnce
            case isSkipped
        }

        /// Work that comes then is done without the unit.
        @Test(arguments: Fault.allCases) func workThatAUnitDoesNotStartIsDone(_ fault: Fault) throws {
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
                let why = fault == .isMasked ? "\(unit) is masked" : "says ConditionPathExists=/nowhere: it does not start"
                #expect(doctor.status == 2 && doctor.output.contains("✗ agent: it left, to be started again"), "\(doctor)")
                #expect(doctor.output.contains(why), "\(doctor)")
            }
            server.route("GET", "/disk.img", .file(Payload.pattern(10_000), etag: "\"v1\""))
            let target = home.folder.appendingPathComponent("disk.img").path
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target).status == 0)
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
        }

        /// The one that follows takes it over, with its time.
        @Test func aLaunchGoesOnWhenItsAgentIsKilled() throws {
            Weather.serve(.silence, on: server)
            try schedule()
            #expect(try home.stormy("simulate", "launch", "StormyNoon").status == 0)
            let launch = try home.wait("the launch") { try $0.liveLaunches().first { $0.pid != nil } }
            let before = home.agentPID
            try home.killAgent()
            try home.wait("another agent", seconds: 30) { try $0.fact(.agent)?.pid != before ? true : nil }
            let now = try #require(try ledger { try $0.liveLaunches().first })
            #expect(now.id == launch.id && now.pid == launch.pid && FileLock.isHeld(home.directories.launchLock(launch.id!)))
        }

        /// What is due on the person's clock has another moment from then on, which the timer does not know.
        @Test func aPersonWhoTravelsWhileItIsAwayBringsItBack() throws {
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

        @Test func quitWhileItIsAwayLeavesNothing() throws {
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

        /// Its processes end with it, and the next one makes up for them.
        @Test func aManagerThatEndsInTheMiddleOfALaunchLosesNothing() throws {
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

        @Test func unscheduleAndQuitTakeTheEntryAway() throws {
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
