import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

extension EndToEnd {
    /// Tests with real processes. Background work must follow the rules that it has on iOS.
    @Suite struct Scheduling {
        @Test func `status names the time zone of the daily check and not the one of the terminal`() throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.stormy("schedule").status == 0)
            home.environment["TZ"] = "America/New_York"
            #expect(try home.status("schedule", "timeZone") as? String == "Europe/Berlin")
            let printed = try home.stormy("status").output
            #expect(printed.contains("daily at 12:00 Europe/Berlin"), "\(printed)")
        }

        @Test func `a launch without a handler fails`() throws {
            let app = try ProvingHome()
            try app.run("submit", "unhandled")
            let launch = try app.waitForLaunch("its end") { $0.outcome != nil }
            #expect(launch.outcome == .failed)
            #expect(launch.detail == "no handler for appRefresh unhandled is registered")
            #expect(try app.rows("why").isEmpty, "consumed")
        }

        /// The handler completes its task and then submits the next request.
        @Test(arguments: ["handler", "task", "main"])
        func `a request that is submitted after the completion is kept`(_ order: String) throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_CHAIN"] = order
            try app.run("cycle", "0")
            try app.run("refresh")
            try app.home.wait("eight launches") { try $0.latestLaunch() ?? 0 >= 8 ? true : nil }
            try app.run("background", "quit")
            let launches = try Ledger(app.home.directories).read { try $0.history(limit: 100) }
            // The last launch was running at `quit`, so it may have another outcome.
            #expect(launches.dropLast().allSatisfy { $0.outcome == .completed }, "\(launches.map(\.outcome))")
        }

        /// A helper program of the app submits a request. The agent launches the program that the manifest names.
        @Test func `a request of an extension launches the app`() throws {
            let app = try ProvingHome()
            let folder = app.home.folder.appendingPathComponent("bundle")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let manifest: [String: Any] = [
                "CFBundleIdentifier": "proving-ground", "CFBundleExecutable": "proving-ground",
                "BGTaskSchedulerPermittedIdentifiers": ["refresh", "work.*", "cycle.*", "export.*"],
            ]
            let plist = try PropertyListSerialization.data(fromPropertyList: manifest, format: .xml, options: 0)
            for name in ["helper", "proving-ground"] {
                try Home.copyProgram(Home.product("proving-ground"), to: folder.appendingPathComponent(name).path)
                try plist.write(to: folder.appendingPathComponent("\(name)-Info.plist"))
            }
            app.home.environment["BACKGROUND_AGENT"] = Home.product("background-agent")
            let helper = folder.appendingPathComponent("helper").path
            #expect(try Child.run(helper, ["refresh"], environment: app.home.environment).status == 0)
            #expect(try app.waitForLaunch("its end") { $0.outcome != nil }.outcome == .completed)
            let launched = try app.home.wait("the app") { try $0.fact(.app)?.executable }
            #expect(launched == folder.appendingPathComponent("proving-ground").path)
        }

        /// The program of the app was moved away. The agent shows one notification, and runs the work when the program is
        /// restored.
        @Test func `a missing app is notified, and its work runs when the app is back`() throws {
            let desktop = try Desktop()
            let app = try ProvingHome(desktop: desktop)
            let place = app.home.folder.appendingPathComponent("bin/proving-ground")
            try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Home.copyProgram(Home.product("proving-ground"), to: place.path)
            let manifest: [String: Any] = [
                "CFBundleIdentifier": "proving-ground", "CFBundleDisplayName": "Proving ground",
                "BGTaskSchedulerPermittedIdentifiers": ["refresh", "work.*", "cycle.*", "export.*"],
            ]
            try PropertyListSerialization.data(fromPropertyList: manifest, format: .xml, options: 0)
                .write(to: URL(fileURLWithPath: place.path + "-Info.plist"))
            app.home.environment["BACKGROUND_AGENT"] = Home.product("background-agent")
            #expect(try Child.run(place.path, ["refresh", "1"], environment: app.home.environment).status == 0)
            let aside = place.path + ".aside"
            try FileManager.default.moveItem(atPath: place.path, toPath: aside)
            try app.home.wait("two tries") {
                try $0.history(limit: 9).filter { $0.endedAt != nil }.count >= 2 ? true : nil
            }
            #expect(
                try Ledger(app.home.directories).read { try $0.history(limit: 1) }.first?.detail?.contains(place.path) == true)
            try FileManager.default.moveItem(atPath: aside, toPath: place.path)
            try app.home.wait("the launch") {
                try $0.history(limit: 9).contains { $0.outcome == .completed } ? true : nil
            }
            try app.home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Proving ground cannot be started"])
            #expect(
                try Ledger(app.home.directories).read { try $0.notifications() }.map(\.state) == [.withdrawn], "it was started")
        }

        /// Accepted work continues after a reboot. The app needs no code for login entries.
        @Test func `a pending request keeps a login entry until quit`() throws {
            let app = try ProvingHome()
            try app.run("refresh", "3600")
            let entry = app.home.folder.path + "/config/autostart/background-agent-proving-ground.desktop"
            #expect(try String(contentsOfFile: entry, encoding: .utf8).contains("--app proving-ground"))
            try app.run("background", "quit")
            #expect(!FileManager.default.fileExists(atPath: entry))
        }

        /// The app submits the same rule again while an occurrence of this rule is overdue.
        @Test func `starting the app keeps an overdue occurrence`() throws {
            let home = try Home(app: "tide-example")
            home.environment["TIDE_EXAMPLE_NO_AGENT"] = "1"
            #expect(try home.run("tide-example", []).status == 0)
            try home.moveOccurrence(of: "TideMorning", byDays: -1)
            let due = try home.wait("it") { try $0.request("TideMorning")?.occurrence }
            #expect(try home.run("tide-example", []).status == 0)
            #expect(try home.wait("it") { try $0.request("TideMorning")?.occurrence } == due)
            home.environment["TIDE_EXAMPLE_NO_AGENT"] = nil
            #expect(try home.run("tide-example", []).status == 0)
            let launch = try home.wait("its end") { try $0.history(limit: 10).first { $0.outcome != nil } }
            #expect(launch.outcome == .completed)
            #expect(launch.servedOccurrence == due)
            #expect(try home.wait("tomorrow") { try $0.request("TideMorning")?.occurrence } > due)
        }

        @Test func `handlers run on the requested queue`() throws {
            let app = try ProvingHome()
            try app.run("work", "work.queue")
            try app.waitForLine("work.queue on its queue: true")
            try app.run("work", "work.none")
            try app.waitForLine("work.none on the main thread: false")
        }

        @Test func `an app refresh handler receives a BGAppRefreshTask`() throws {
            let app = try ProvingHome()
            try app.run("refresh")
            #expect(try app.waitForLaunch("its end") { $0.outcome != nil }.outcome == .completed)
            #expect(app.lines == ["begin refresh BGAppRefreshTask"])
        }

        @Test func `one refresh request and ten processing requests can be pending`() throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_GROUND_NO_AGENT"] = "1"
            #expect(try app.run("refresh").status == 0)
            #expect(try app.run("refresh").status == 0, "a request with the same identifier replaces the pending request")
            let second = try app.run("submit", "unhandled")
            #expect(second.status == 2)
            #expect(second.output == "tooManyPendingTaskRequests: 1 appRefresh requests are pending; the limit is 1\n")
            for number in 0..<10 { #expect(try app.run("work", "cycle.\(number)").status == 0) }
            #expect(try app.run("work", "cycle.10").status == 2)
            #expect(try app.run("work", "cycle.9").status == 0)
            #expect(try app.rows("why").count == 11)
        }

        @Test(arguments: [
            "work.a\nb", "", "nobody", "cycle.*", "cycle.", String(repeating: "x", count: 10_000), "a\u{0}b", "../../etc",
        ])
        func `an unknown identifier is not permitted`(_ identifier: String) throws {
            let app = try ProvingHome()
            let result = try app.run("submit", identifier.replacingOccurrences(of: "\u{0}", with: "\u{1}"))
            #expect(result.status == 3)
            #expect(result.output.hasPrefix("notPermitted: "))
            #expect(result.output.count < 300, "a long identifier is shortened")
        }

        /// The invalid bytes are replaced by other characters. The resulting identifier is not permitted.
        @Test func `an identifier that is not valid UTF-8 is not permitted`() throws {
            let app = try ProvingHome()
            let result = try Child.run(
                "/bin/sh", ["-c", "exec \"$0\" submit \"$(printf 'refresh\\377')\"", Home.product("proving-ground")],
                environment: app.home.environment)
            #expect(result.status == 3)
        }

        @Test(arguments: [("nan", 1), ("inf", 0), ("-inf", 0), ("1e300", 0), ("3.2e9", 0), ("-3.2e9", 0)] as [(String, Int32)])
        func `infinite and distant begin dates are accepted, and NaN is rejected`(_ seconds: String, _ status: Int32) throws {
            let app = try ProvingHome()
            let result = try app.run("refresh", seconds)
            #expect(result.status == status, "\(result.output)")
            if status != 0 {
                #expect(result.output == "unavailable: earliestBeginDate of refresh is not a valid date\n")
            } else if seconds.hasPrefix("-") {
                #expect(try app.waitForLaunch("the past is now") { $0.outcome != nil }.outcome == .completed)
            } else {
                // The request is waiting, and the agent is running.
                try app.home.wait("an agent") { try $0.fact(.conditions) }
                #expect(try app.condition("earliestBeginDate")["met"] as? Bool == false)
                #expect(try !app.run("background", "why").output.contains("agent:"))
                #expect(app.home.agentPID != nil)
                try app.home.killAgent()
                #expect(try app.run("background", "why").output.contains("agent: this command started the agent"))
            }
        }

        @Test(arguments: [
            nil, "not a property list",
            """
            <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>proving-ground</string>
            <key>BGTaskSchedulerPermittedIdentifiers</key><string>refresh</string></dict></plist>
            """, "<plist><dict><key>CFBundleIdentifier</key><string>a/b</string></dict></plist>",
        ])
        func `no identifier is permitted without a valid manifest`(_ manifest: String?) throws {
            let app = try ProvingHome()
            let folder = app.home.folder.appendingPathComponent("alone")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let copy = folder.appendingPathComponent("proving-ground")
            try Home.copyProgram(Home.product("proving-ground"), to: copy.path)
            if let manifest {
                try Data(manifest.utf8).write(to: folder.appendingPathComponent("proving-ground-Info.plist"))
            }
            let result = try Child.run(copy.path, ["refresh"], environment: app.home.environment)
            #expect(result.status == 3)
            #expect(result.output.hasPrefix("notPermitted: \"refresh\" is not among the permitted identifiers"))
            #expect(result.errors.contains("no requests are permitted") == (manifest != nil), "\(result.errors)")
        }

        /// The commands and the agent must work even if rows have values that no version of this program wrote.
        @Test(arguments: [
            "earliestBegin = 1e308", "earliestBegin = 'soon'", "backoffUntil = 9e999", "failures = 9223372036854775807",
        ])
        func `invalid request rows do not affect other requests`(_ change: String) throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_GROUND_NO_AGENT"] = "1"
            try app.run("refresh", "3600")
            let changed = try Child.run(
                "sqlite3", [app.home.directories.ledger.path, "UPDATE request SET \(change)"], environment: app.home.environment)
            #expect(changed.status == 0)
            #expect(try app.run("background", "why").status == 0)
            #expect(try app.run("background", "status").status == 0)
            app.home.environment["PROVING_GROUND_NO_AGENT"] = nil
            // Another request of the app is still launched.
            #expect(try app.run("work", "cycle.1").status == 0)
            try app.waitForLaunch("the other one") { $0.identifier == "cycle.1" && $0.outcome == .completed }
            #expect(app.home.agentPID != nil)
        }

        @Test func `a truncated ledger is reported and left untouched`() throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_GROUND_NO_AGENT"] = "1"
            try app.run("refresh", "3600")
            let path = app.home.directories.ledger.path
            for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
            #expect(truncate(path, 100) == 0)
            let result = try app.run("refresh", "3600")
            #expect(result.status == 1)
            #expect(result.output.contains("is damaged, or is not a ledger. The file was not changed"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == 100)
        }

        /// The handler blocks the main thread. The expiration handler runs on another thread.
        @Test func `the expiration is delivered while the handler blocks the main thread`() throws {
            let app = try ProvingHome()
            try app.run("work", "work.main")
            try app.waitForLine("begin work.main on the main thread")
            let expired = try app.run("background", "simulate", "expire", "work.main", "--wait")
            #expect(expired.status == 0)
            #expect(expired.output.hasSuffix("expired\n"))
            #expect(app.lines == ["begin work.main on the main thread", "expire work.main"])
        }

        @Test func `requests of ten concurrent processes all run, one after another`() throws {
            let app = try ProvingHome()
            let children = try (0..<10).map { number in
                try Child(Home.product("proving-ground"), ["work", "cycle.\(number)"], environment: app.home.environment)
            }
            withExtendedLifetime(children) {}
            try app.home.wait("all ten") { transaction in
                let ended = try transaction.history(limit: 100).filter { $0.outcome == .completed }
                return Set(ended.map(\.identifier)).count == 10 ? true : nil
            }
            // One agent starts the launches one after the other, at least a second apart.
            let starts = try app.home.wait("starts") { try $0.history(limit: 100).map(\.startedAt) }
            for (earlier, later) in zip(starts, starts.dropFirst()) { #expect(later.timeIntervalSince(earlier) > 0.99) }
        }

        // MARK: Continued processing

        @Test func `an export shows its progress and is cancelled by its button`() throws {
            let desktop = try Desktop()
            let app = try ProvingHome(desktop: desktop)
            let pipe = try StepPipe(in: app.home.folder)
            let export = try app.beginExport("export.1", steps: 4, pipe: pipe)
            #expect(desktop.listen(for: 1) == ["Exporting"])
            pipe.step(2)
            try app.waitForLaunch("half of it") { $0.progressDone == 500_000 && $0.subtitle == "2 of 4" }
            #expect(try app.rows("why").isEmpty)
            try desktop.press("Cancel")
            let launch = try app.waitForLaunch("its end") { $0.outcome != nil }
            #expect(launch.outcome == .expired)
            #expect(launch.detail == "the user pressed Cancel")
            #expect(app.lines.contains("expire export.1"))
            #expect(app.lines.last == "stopped export.1 at 2")
            #expect(export.waitForEnd() == 0, "the command ends when its work has ended")
            try app.home.wait("quiet") { try $0.liveLaunches().isEmpty ? true : nil }
            try desktop.waitForEmptyScreen()
        }

        @Test func `an export beyond the fourth waits or fails, as requested`() throws {
            let app = try ProvingHome()
            let pipes = try (0..<5).map { _ in try StepPipe(in: app.home.folder) }
            let exports = try (0..<5).map { try app.beginExport("export.\($0)", steps: 1, pipe: pipes[$0]) }
            try app.home.wait("four of them, one waiting") { transaction in
                try transaction.liveLaunches().count == 4 && transaction.requests(of: .continuedProcessing).count == 1
                    ? true : nil
            }
            let sixth = try app.run("export", "export.6", "fail", "1")
            #expect(sixth.status == 4)
            #expect(sixth.output.hasPrefix("immediateRunIneligible"))
            let why = try #require(try app.rows("why").first?["conditions"] as? [[String: Any]])
            #expect(why.map { $0["name"] as? String } == ["room"])
            for pipe in pipes { pipe.step() }
            try app.home.wait("all of them") { transaction in
                try transaction.history(limit: 10).filter { $0.outcome == .completed }.count == 5 ? true : nil
            }
            for export in exports { #expect(export.waitForEnd() == 0) }
        }

        /// A command waits for its export while the agent is killed. The command starts another agent, and ends when the export
        /// ends.
        @Test func `an export continues after its agent is killed`() throws {
            let app = try ProvingHome()
            let pipe = try StepPipe(in: app.home.folder)
            let export = try app.beginExport("export.1", steps: 3, pipe: pipe)
            try app.waitForLine("begin export.1")
            pipe.step()
            try app.waitForLaunch("a third of it") { $0.progressDone ?? 0 > 0 }
            try app.home.killAgent()
            pipe.step(2)
            #expect(export.waitForEnd() == 0)
            #expect(app.lines.last == "done export.1")
            #expect(try app.waitForLaunch("its end") { $0.outcome != nil }.outcome == .completed)
        }

        @Test func `quit ends an export whose agent was killed`() throws {
            let app = try ProvingHome()
            let export = try app.beginExport("export.1", steps: 3, pipe: StepPipe(in: app.home.folder))
            try app.waitForLine("begin export.1")
            try app.home.killAgent()
            #expect(try app.run("background", "quit").status == 0)
            #expect(export.waitForEnd() == 0)
            #expect(app.lines.last == "stopped export.1 at 0")
        }

        /// If a handler submits requests while it is being stopped, `quit` also removes these requests.
        @Test func `quit ends work that submits itself again`() throws {
            let app = try ProvingHome()
            app.home.environment["BACKGROUND_UNLIMITED_REQUESTS"] = "1"
            try app.run("cycle", "20")
            try app.home.wait("some of them") { try $0.history(limit: 100).count > 20 ? true : nil }
            #expect(try app.run("background", "quit").status == 0)
            #expect(try app.rows("why").isEmpty)
            let count = app.lines.count
            #expect(try app.run("background", "status").status == 0)
            #expect(!FileLock.isHeld(app.home.directories.agentLock))
            #expect(app.lines.count == count)
        }

        /// The command `quit` starts another agent, which stops the launch of the killed agent.
        @Test func `quit ends a launch whose agent was killed`() throws {
            let app = try ProvingHome()
            try app.run("work", "work.main")
            try app.waitForLine("begin work.main on the main thread")
            try app.home.killAgent()
            let quit = try app.run("background", "quit")
            #expect(quit.status == 0, "\(quit.errors)")
            #expect(quit.output.contains("Stopped the agent."))
            #expect(app.lines.last == "expire work.main")
            #expect(try app.history() == ["processing work.main expired"])
        }

        /// If each agent exits directly after its start, the commands report this and do not wait forever.
        @Test func `an agent that exits at once is reported`() throws {
            let app = try ProvingHome()
            app.home.environment["BACKGROUND_AGENT"] = "/bin/false"
            try app.run("refresh", "3600")
            let result = try app.run("background", "simulate", "launch", "refresh")
            #expect(result.status == 69)
            #expect(result.errors.contains("no agent keeps running"))
            let export = try app.run("export", "export.1", "queue", "1")
            #expect(export.status == 0)
            #expect(export.errors.contains("export.1 cannot begin, because no agent keeps running"))
            let log = app.home.directories.agentLog.path
            let why = try app.run("background", "why", "refresh")
            #expect(
                why.output.contains("this command started the agent, but the agent exited. See the log of the agent: \(log)"),
                "\(why)")
        }

        @Test func `a rejected request creates no login entry`() throws {
            let app = try ProvingHome()
            try app.run("refresh", "3600")
            let folder = app.home.folder.path + "/config/autostart"
            try FileManager.default.removeItem(atPath: folder)
            #expect(try app.run("submit", "unhandled").status == 2)
            #expect(!FileManager.default.fileExists(atPath: folder))
        }

        /// If no command waits for the result of a simulation, the agent drops the simulation.
        @Test func `a simulation whose command was killed does not run later`() throws {
            let app = try ProvingHome()
            try app.run("refresh", "3600")
            try app.home.freezeAgent()
            let simulate = try Child(
                Home.product("proving-ground"), ["background", "simulate", "launch", "refresh"], environment: app.home.environment
            )
            try app.home.wait("the question") { try $0.openQuestions().isEmpty ? nil : true }
            simulate.end(SIGKILL)
            try app.home.killAgent()
            try app.run("background", "status")
            try app.home.wait("the answer") { try $0.openQuestions().isEmpty ? true : nil }
            #expect(try app.history().isEmpty)
            #expect(try app.rows("why").count == 1)
        }

        /// The command starts another agent, and this agent replies.
        @Test func `a simulation completes after its agent is killed`() throws {
            let app = try ProvingHome()
            try app.run("refresh", "3600")
            try app.home.freezeAgent()
            let simulate = try Child(
                Home.product("proving-ground"), ["background", "simulate", "launch", "refresh", "--wait"],
                environment: app.home.environment)
            try app.home.wait("the question") { try $0.openQuestions().isEmpty ? nil : true }
            try app.home.killAgent()
            #expect(simulate.waitForEnd() == 0)
            #expect(app.lines == ["begin refresh BGAppRefreshTask"])
            // The agent is killed a second time, while the launch is running.
            app.home.environment["PROVING_ENDLESS"] = "1"
            try app.run("background", "quit")
            try app.run("refresh", "3600")
            let second = try Child(
                Home.product("proving-ground"), ["background", "simulate", "launch", "refresh", "--wait"],
                environment: app.home.environment)
            try app.home.wait("the launch") { try $0.liveLaunches().first?.pid }
            try app.home.killAgent()
            #expect(try app.run("background", "simulate", "expire", "refresh").status == 0)
            #expect(second.waitForEnd() == 75, "the launch did not complete")
        }

        /// The program was copied without its agent, so no request could ever run. The commands report that no agent is
        /// installed.
        @Test func `requests are rejected if no agent is installed`() throws {
            let app = try ProvingHome()
            let folder = app.home.folder.appendingPathComponent("alone")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for name in ["proving-ground", "stormy"] {
                try Home.copyProgram(Home.product(name), to: folder.appendingPathComponent(name).path)
            }
            let manifest =
                ["CFBundleIdentifier": "proving-ground", "BGTaskSchedulerPermittedIdentifiers": ["refresh"]] as [String: Any]
            try PropertyListSerialization.data(fromPropertyList: manifest, format: .xml, options: 0)
                .write(to: folder.appendingPathComponent("proving-ground-Info.plist"))
            func run(_ name: String, _ arguments: String...) throws -> Child.Result {
                try Child.run(folder.appendingPathComponent(name).path, arguments, environment: app.home.environment)
            }
            let submitted = try run("proving-ground", "submit", "refresh")
            #expect(submitted.status == 1, "\(submitted)")
            #expect(submitted.output.contains("background-agent was not found in \(folder.path)"), "\(submitted)")
            #expect(try app.rows("why").isEmpty)
            let scheduled = try run("stormy", "schedule")
            #expect(scheduled.status != 0 && scheduled.errors.contains("background-agent was not found in"), "\(scheduled)")
            let downloaded = try run("stormy", "download", "http://127.0.0.1:9/file", "-o", folder.path + "/file")
            #expect(downloaded.status != 0 && downloaded.errors.contains("background-agent was not found in"), "\(downloaded)")
        }

        /// The disk is full when a request is due. The agent keeps running, reports the reason, and continues when the disk has
        /// space.
        @Test(.enabled(if: Namespaces.areAllowed, "namespaces are not allowed here"))
        func `the agent waits while the disk of the ledger is full`() throws {
            let app = try ProvingHome()
            let (tool, state) = (Home.product("proving-ground"), app.home.directories.state.path)
            let log = app.home.environment["PROVING_LOG"] ?? ""
            let script = """
                mkdir -p '\(state)' && mount -t tmpfs -o size=2m,mode=700 none '\(state)' || exit 9
                '\(tool)' refresh 3 || exit 8
                for i in $(seq 1200); do '\(tool)' background status | grep -q 'running, pid' && break; sleep 0.1; done
                dd if=/dev/zero of='\(state)/fill' bs=4k 2>/dev/null
                for i in $(seq 1200); do grep -aq reason '\(state)/agent.lock' && break; sleep 0.1; done
                '\(tool)' background status
                rm '\(state)/fill'
                for i in $(seq 1200); do grep -q 'begin refresh' '\(log)' && break; sleep 0.1; done
                for i in $(seq 1200); do grep -aq reason '\(state)/agent.lock' || break; sleep 0.1; done
                '\(tool)' background status
                '\(tool)' background quit
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: app.home.environment)
            let parts = result.output.components(separatedBy: "cannot work now: ")
            #expect(parts.count == 2 && parts.last?.contains("no space is left") == true, "\(result)")
            #expect(parts.last?.contains("running, pid") == true, "\(result)")
            #expect(app.lines == ["begin refresh BGAppRefreshTask"], "\(result)")
        }

        @Test func `an export ends with its process`() throws {
            let desktop = try Desktop()
            let app = try ProvingHome(desktop: desktop)
            let export = try app.beginExport("export.1", steps: 4, pipe: StepPipe(in: app.home.folder))
            _ = desktop.listen(for: 1)
            try app.home.wait("it is shown") { try $0.liveLaunches().first?.noticeID }
            export.end(SIGKILL)
            #expect(try app.waitForLaunch("its end") { $0.outcome != nil }.outcome == .crashed)
            #expect(try app.run("background", "history").output.contains("crashed"))
            try desktop.waitForEmptyScreen()
        }

        @Test func `an export without an agent is rejected at once`() throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_GROUND_NO_AGENT"] = "1"
            #expect(try app.run("export", "export.1", "queue", "1").status == 1)
            #expect(try app.run("export", "export.1", "fail", "1").status == 4)
            #expect(try app.rows("why").isEmpty)
        }

        // MARK: Days on which the clock changes

        /// The command `faketime` sets the clock. No agent is started.
        @Test(arguments: [
            ("Europe/Berlin", "2025-03-29 13:00:00", "2025-03-30T12:00:00+02:00"),
            ("Europe/Berlin", "2025-10-25 12:00:00", "2025-10-26T12:00:00+01:00"),
            ("Africa/Khartoum", "2000-01-14 13:00:00", "2000-01-15T13:00:00+03:00"),
            ("Pacific/Apia", "2011-12-29 13:00:00", "2011-12-31T12:00:00+14:00"),
            ("Pacific/Kwajalein", "1993-08-20 13:00:00", "1993-08-22T12:00:00+12:00"),
            ("Australia/Lord_Howe", "2025-10-04 12:30:00", "2025-10-05T12:00:00+11:00"),
            ("Africa/Casablanca", "2025-02-22 12:00:01", "2025-02-23T12:00:00Z"),
        ])
        func `the next noon is right on days when the clock changes`(_ zone: String, _ now: String, _ noon: String) throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            home.environment["TZ"] = zone
            func verb(_ words: String...) throws -> Child.Result {
                try Child.run("sh", FakeTime.arguments(now, Home.product("stormy"), words), environment: home.environment)
            }
            #expect(try verb("place", "add", "Here", "1,1", "--no-sync").status == 0)
            let scheduled = try verb("schedule", "--exact")
            #expect(scheduled.status == 0, "\(scheduled.errors)")
            let status = try JSONSerialization.jsonObject(with: Data(try verb("status", "--json").output.utf8)) as? [String: Any]
            #expect((status?["schedule"] as? [String: Any])?["next"] as? String == noon)
        }

        // MARK: A newer version

        @Test func `an old agent exits for a ledger of a newer version`() throws {
            let app = try ProvingHome()
            app.home.environment["PROVING_ENDLESS"] = "1"
            try app.run("refresh")
            try app.waitForLine("begin refresh BGAppRefreshTask")
            let handler = try #require(try app.home.wait("its process") { try $0.liveLaunches().first?.pid })
            let migration = try Child.run(
                "sqlite3", [app.home.directories.ledger.path, "INSERT INTO grdb_migrations VALUES ('9999: from the future')"],
                environment: app.home.environment)
            #expect(migration.status == 0)
            func waitForLog(_ text: String) -> Bool {
                FileWatch.wait(app.home.directories.agentLog.path) { $0.contains(text) } != nil
            }
            #expect(waitForLog("exits when the running work has ended"))
            #expect(!app.home.log.contains("the agent exited, because"), "the agent waits for the running launch")
            kill(handler, SIGTERM)
            #expect(waitForLog("the agent exited, because a newer agent took over the ledger"))
            // The agent starts the program at its path. In this test, this program still has the old version, so it reports
            // that the ledger is too new.
            #expect(waitForLog("was written by a newer version"))
            #expect(app.lines == ["begin refresh BGAppRefreshTask", "expire refresh"])
            let refused = try app.run("refresh")
            #expect(refused.status == 1)
            #expect(refused.output.contains("was written by a newer version"))
        }
    }
}
