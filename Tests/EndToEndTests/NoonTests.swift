import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    @Suite struct Noon {
        let desktop: Desktop
        let server: FaultyServer

        init() async throws {
            desktop = try Desktop()
            server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
        }

        /// Returns the time in the form HH:MM:SS, in the time zone of the home.
        private func time(_ date: Date) -> String {
            var style = Date.VerbatimFormatStyle(
                format:
                    "\(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits)",
                timeZone: TimeZone(identifier: "Europe/Berlin")!, calendar: Calendar(identifier: .gregorian))
            style.locale = Locale(identifier: "en_US_POSIX")
            return date.formatted(style)
        }

        @Test func `an exact check notifies once and is planned again for the next day`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            // On a slow machine the command may run after the given time. The check is then planned for tomorrow. If the check is
            // planned for tomorrow, the test repeats the command with a later time.
            var (due, lead) = (Date.distantPast, 2.0)
            while due <= Date(), lead < 60 {
                due = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + lead).rounded(.up))
                #expect(try home.stormy("schedule", "--at", time(due), "--exact").status == 0)
                lead *= 2
            }
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
            let next = try home.wait("the next one") { try $0.request("StormyNoon")?.occurrence }
            // The next check is tomorrow at the same clock time, 23 to 25 hours later.
            #expect((82_800...90_000).contains(next.timeIntervalSince(due)))
            #expect(try home.rows("why").first?["identifier"] as? String == "StormyNoon")
        }

        /// The user makes an error in the configuration before the check. The check remains pending, and runs when the user has
        /// corrected the file.
        @Test func `a configuration error is notified, and the check runs when it is corrected`() throws {
            let home = try Home(server: server, desktop: desktop)
            let file = home.directories.configuration.appendingPathComponent("config.toml")
            let right = try Data(contentsOf: file)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try (right + Data("\n[storm]\ngusts_kmh = \"many\"\n".utf8)).write(to: file)
            try Self.missDays(1, home)
            // The third pause is so long that the test can distinguish the end of the pause from a change of the file.
            try home.wait("three tries") {
                try $0.history(limit: 9).filter { $0.outcome == .crashed }.count >= 3 ? true : nil
            }
            let failed = try home.wait("the last of them") { try $0.history(limit: 9).last }
            #expect(failed.detail?.contains("config.toml") == true || failed.outcome == nil, "\(failed)")
            let pause = try home.wait("its pause") { try $0.request("StormyNoon")?.backoffUntil }
            try right.write(to: file)
            let check = try home.wait("the check") { try $0.history(limit: 20).first { $0.outcome == .completed } }
            #expect(check.startedAt < pause, "the check begins when the file changes, and not at the end of the pause")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Stormy cannot work", "Storm expected in Here"])
        }

        /// The notification was not shown because of quiet hours. The command `quit` prints its title.
        @Test func `a storm that was not shown before quit is notified by the next check`() throws {
            let home = try Home(server: server, desktop: desktop, extra: "[notifications]\nquiet_hours = \"00:00-23:59\"\n")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            let quit = try home.stormy("quit")
            #expect(quit.output.contains("Never shown: Storm expected in Here"), "\(quit)")
            try home.configure("[weather]\nbase_url = \"\(server.url)\"\n")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
        }

        /// Other programs use all inotify instances. The agent and the app then check their files at intervals.
        @Test(.enabled(if: Namespaces.areAllowed), arguments: ["max_inotify_instances", "max_inotify_watches"])
        func `the check runs if inotify is used up`(_ limit: String) async throws {
            let home = try Home(server: server, desktop: desktop)
            let tool = Home.product("stormy")
            let script = """
                echo 1 > /proc/sys/user/\(limit) || exit 9
                '\(tool)' place add Here 1,1 --no-sync && '\(tool)' schedule >/dev/null && '\(tool)' simulate launch StormyNoon --wait
                '\(tool)' history
                """
            let result = try Child.run("unshare", Namespaces.asOwnUser(script), environment: home.environment)
            #expect(result.output.contains("completed") && !result.output.contains("crashed"), "\(result)")
            // The agent continues to run inside the namespace. The test does not use `quit`, because `quit` would remove the
            // pending notification.
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
        }

        /// The user corrects an error in the configuration, and then makes the same error again.
        @Test func `a configuration error that is made again is notified again`() throws {
            let home = try Home(server: server, desktop: desktop)
            let file = home.directories.configuration.appendingPathComponent("config.toml")
            let right = try Data(contentsOf: file)
            Weather.serve(.json(Weather.calm), on: server)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            for round in 1...2 {
                try (right + Data("\n[storm]\ngusts_kmh = \"many\"\n".utf8)).write(to: file)
                try Self.missDays(1, home)
                try home.wait("word of it") {
                    try $0.notification("trouble-configuration")?.state == .delivered ? true : nil
                }
                try right.write(to: file)
                try home.wait("the check") {
                    try $0.history(limit: 50).filter { $0.outcome == .completed }.count == round ? true : nil
                }
                try home.waitForQuiet()
            }
            #expect(try desktop.receivedTitles() == ["Stormy cannot work", "Stormy cannot work"])
        }

        /// Each of these commands plans the check again, and so does the next login.
        @Test(arguments: ["place list", "check --offline", "why", "status", "agent"])
        func `the daily check is planned again after the ledger is lost`(_ verb: String) throws {
            let home = try Home(server: server, desktop: desktop)
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1")
            try home.stormy("schedule")
            for file in try FileManager.default.contentsOfDirectory(atPath: home.directories.state.path)
            where file.hasPrefix("agent.sqlite") {
                try FileManager.default.removeItem(atPath: home.directories.state.path + "/" + file)
            }
            if verb == "agent" {
                let agent = try Child(Home.product("stormy"), ["agent"], environment: home.environment)
                try home.wait("the check") { try $0.request("StormyNoon")?.occurrence != nil ? true : nil }
                #expect(try home.wait("the agent") { try $0.fact(.agent)?.pid } == agent.pid)
                agent.end()
            } else {
                let said = try home.run("stormy", verb.split(separator: " ").map(String.init))
                #expect(said.status == 0 && !said.output.contains("not scheduled"), "\(said)")
                #expect(try Ledger(home.directories).read { try $0.request("StormyNoon") } != nil)
            }
        }

        /// If the ledger is damaged, all checks stop. A login must not hide the damage.
        @Test func `a damaged ledger is notified at login`() throws {
            let home = try Home(server: server, desktop: desktop)
            try FileManager.default.createDirectory(at: home.directories.state, withIntermediateDirectories: true)
            try Data(repeating: 7, count: 5_000).write(to: home.directories.ledger)
            let agent = try home.run("background-agent", ["--app", "stormy"])
            #expect(agent.status == 65, "\(agent)")
            #expect(try desktop.receivedTitles() == ["stormy cannot work"])
        }

        /// If the result of a check cannot be stored, the check counts as failed. The check runs again, and the user is notified.
        @Test func `a check whose result cannot be stored fails and runs again`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let holder = try home.stopAWriter(of: "data/stormy/stormy.sqlite")
            defer { holder.end(SIGKILL) }
            try Self.missDays(1, home)
            let failed = try home.wait("its end") { try $0.history(limit: 9).first { $0.outcome != nil } }
            #expect(failed.outcome == .crashed && failed.detail?.contains("python3") == true, "\(failed)")
            try home.wait("word of it") { try $0.notification("trouble-store")?.state == .delivered ? true : nil }
            holder.end(SIGKILL)
            try home.wait("the check") {
                try $0.history(limit: 20).contains { $0.outcome == .completed } ? true : nil
            }
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Stormy cannot work", "Storm expected in Here"])
        }

        /// Without places, nothing was checked. The check must not report that no storm is expected.
        @Test func `a lost data folder fails the check and is notified`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let aside = home.folder.appendingPathComponent("aside")
            try FileManager.default.moveItem(at: home.directories.data, to: aside)
            try Self.missDays(1, home)
            try home.waitForEnded("appRefresh")
            let ended = try home.wait("its end") { try $0.history(limit: 9).first }
            #expect(ended.outcome == .crashed && ended.detail?.hasPrefix("there are no places") == true, "\(ended)")
            // The check of this day runs after the folder was restored.
            try FileManager.default.removeItem(at: home.directories.data)
            try FileManager.default.moveItem(at: aside, to: home.directories.data)
            try home.wait("the check") { try $0.history(limit: 20).contains { $0.outcome == .completed } ? true : nil }
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Stormy's places are missing", "Storm expected in Here"])
        }

        /// Moves the planned check into the past, as if the machine had been off at its time.
        static func missDays(_ days: Double, _ home: Home) throws {
            try home.moveOccurrence(of: "StormyNoon", byDays: -days)
        }

        @Test func `a notification waits for a notification server`() throws {
            let bare = try Desktop(hasServer: false)
            let home = try Home(server: server)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            try home.wait("a reason") { try $0.notification("storm-1")?.trouble }
            let notifications = try #require(try home.status()["notifications"] as? [String: Any])
            #expect(notifications["pending"] as? Int == 1)
            #expect((notifications["trouble"] as? String)?.isEmpty == false)
            // At login, a notification server starts. A command passes the address of the session bus to the agent.
            home.environment.merge(bare.environment) { $1 }
            try home.stormy("status")
            try bare.startServer()
            #expect(bare.listen(for: 1) == ["Storm expected in Here"])
            try home.wait("delivered") { try $0.notification("storm-1")?.deliveredAt }
        }

        @Test func `a second app runs independently of the first`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let other = AppDirectories(appIdentifier: "tide-example", environment: home.environment)
            defer {
                if let pid = try? Ledger(other).read({ try $0.fact(.agent)?.pid }) { kill(pid, SIGKILL) }
            }
            #expect(try home.run("tide-example", []).status == 0)
            #expect(
                try home.run("tide-example", ["background", "simulate", "launch", "TideMorning"]).output.contains(
                    "launched TideMorning"))
            #expect(desktop.listen(for: 1) == ["High tide today"])
            #expect(FileLock.isHeld(other.agentLock) && FileLock.isHeld(home.directories.agentLock))
            // The two apps have separate agents. The history of the first app does not contain the launch of the second app.
            #expect(try home.history().isEmpty)
            // A scene handles the pressed button.
            try desktop.press("Open")
            #expect(try Self.outcome(of: .notificationResponse, in: other) == .completed)
            try desktop.waitForEmptyScreen()
            // Another scene handles a new day. The test changes the ledger so that yesterday is the last reported day.
            try Ledger(other).write { transaction in
                var told = try #require(try transaction.fact(.significantTime), "the scene handles time changes")
                told.day -= 1
                try transaction.setFact(.significantTime, told)
            }
            #expect(try Self.outcome(of: .significantTimeChange, in: other) == .completed)
        }

        private static func outcome(of kind: LaunchKind, in app: AppDirectories) throws -> LaunchOutcome? {
            try Home.wait("the end of \(kind)", in: app) { transaction in
                try transaction.history(limit: 100).last { $0.kind == kind && $0.endedAt != nil }?.outcome
            }
        }

        @Test func `quit ends all work and keeps the places`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1).count == 1)
            try home.waitForQuiet()
            #expect(try home.stormy("quit").status == 0)
            #expect(try desktop.dunstctl("count", "displayed") == "0")
            #expect(!FileLock.isHeld(home.directories.agentLock))
            #expect(try home.status("schedule", "enabled") as? Bool == false)
            #expect(try home.rows("place", "list").count == 1)
            #expect(
                !FileManager.default.fileExists(
                    atPath: home.folder.path + "/config/autostart/background-agent-stormy.desktop"))
        }

        @Test func `a stopped agent is named by status and quit`() throws {
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("schedule")
            // The agent must not be stopped while it writes. If the agent were stopped during a write, commands that write to
            // the ledger would print another message.
            try home.freezeAgent()
            let pid = try #require(home.agentPID)
            defer { kill(pid, SIGCONT) }
            let sentence = "process \(pid) (background-agen), which is stopped (kill -CONT \(pid) continues the process)"
            #expect(try home.stormy("status").output.contains(sentence))
            let said = try home.stormy("quit")
            #expect(said.status == 75 && said.errors.contains("the agent has not exited. The agent is \(sentence)"), "\(said)")
        }

        @Test func `a second agent from another runtime folder exits`() throws {
            let home = try Home(server: server)
            let first = try home.startAgent()
            defer { first.end() }
            try home.wait("the first") { try $0.fact(.agent) }
            let environment = home.environment.merging(["XDG_RUNTIME_DIR": home.folder.path + "/other"]) { $1 }
            let second = try Child.run(Home.product("background-agent"), ["--app", "stormy"], environment: environment)
            #expect(second.status == 0)
            #expect(second.errors.contains("runs already"))
            #expect(home.agentPID == first.pid)
        }
    }
}
