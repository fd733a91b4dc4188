import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of work that cannot run yet. The work waits visibly, and runs as soon as possible.
    @Suite struct Waiting {
        let server: FaultyServer
        let store: DavStore

        init() async throws {
            server = try await FaultyServer.start()
            store = try DavStore(prefix: "/photos", directory: TestFolder.shared.appendingPathComponent(UUID().uuidString))
            server.mount(store)
            Weather.serve(.json(Weather.forecast()), on: server)
        }

        private func home(_ desktop: Desktop? = nil, budget: Double = 10) throws -> Home {
            try Home(
                server: server, desktop: desktop, budget: budget,
                extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(server.url)/photos/\"\n")
        }

        private func photo(_ home: Home, _ name: String = "a.jpg", size: Int = 2_000_000) throws -> URL {
            let url = home.folder.appendingPathComponent(name)
            try (JPEG.withoutPosition + Payload.pattern(size).data).write(to: url)
            return url
        }

        private func photos(_ home: Home) throws -> [String?] {
            try home.rows("transfers").filter { $0["session"] as? String == "StormyPhotos" }.map { $0["state"] as? String }
        }

        @Test func `work without an agent waits in the ledger`() throws {
            let home = try home()
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let photo = try photo(home)
            #expect(try home.stormy("upload", photo.path).status == 0)
            #expect(try home.status("agent", "running") as? Bool == false)
            #expect(try home.status("transfers", "queued") as? Int == 1)
            #expect((try home.status()["pending"] as? [[String: Any]])?.map { $0["identifier"] as? String } == ["StormyNoon"])
            let simulated = try home.stormy("simulate", "launch", "StormyNoon")
            #expect(simulated.status == 69)
            #expect(simulated.errors.contains("STORMY_NO_AGENT"))
            #expect(server.connectionCount == 0)
            // The variable is removed, so the next command starts an agent.
            home.environment["STORMY_NO_AGENT"] = nil
            try home.stormy("status")
            try home.waitForQuiet()
            #expect(store.contents(of: "/a.jpg") == (try Data(contentsOf: photo)))
            #expect(try home.status("agent", "running") as? Bool == true)
        }

        /// Editors and sync tools can use all inotify instances. The agent polls its files until an inotify instance is free, and
        /// reports that it polls.
        @Test(.enabled(if: Namespaces.areAllowed)) func `an agent without an inotify instance polls until one is free`() throws {
            let home = try home()
            let limit = "/proc/sys/user/max_inotify_instances"
            let tool = Home.product("stormy")
            let script = """
                set -e; was=$(cat \(limit))
                '\(tool)' place add Here 1,1 --no-sync >/dev/null
                echo 0 > \(limit); '\(tool)' schedule >/dev/null
                timeout 120 sh -c "until '\(tool)' status | grep 'cannot work now: .*inotify'; do :; done"
                echo "$was" > \(limit)
                timeout 120 sh -c "until '\(tool)' status | grep 'Agent *running, pid [0-9]*$' && ! '\(tool)' status | grep -q 'cannot work now'; do :; done"
                '\(tool)' simulate launch StormyNoon --wait; '\(tool)' quit
                """
            let result = try Child.run("unshare", Namespaces.asOwnUser(script), environment: home.environment)
            #expect(result.status == 0 && result.output.contains("completed"), "\(result)\n\(home.log)")
        }

        @Test func `quit pauses uploads, and resume continues them`() async throws {
            let home = try home()
            let photo = try photo(home)
            store.stallUploads(afterBytes: 100_000)
            try home.stormy("upload", photo.path)
            try await server.waitForRequest { $0.method == "PUT" && $0.bodyByteCount > 0 }
            let quit = try home.stormy("quit")
            #expect(quit.status == 0)
            #expect(quit.output.contains("Paused 1 transfer"), "\(quit.output)")
            #expect(try home.status("agent", "running") as? Bool == false)
            #expect(try home.status("transfers", "paused") as? Int == 1)
            #expect(store.files.isEmpty)
            #expect(try home.stormy("transfers", "resume", "all").status == 0)
            try home.waitForQuiet()
            #expect(store.files.count == 1, "\(store.files)")
            #expect(store.contents(of: "/a.jpg") == (try Data(contentsOf: photo)))
        }

        /// The user runs `quit` while the weather request of a check waits for its response. Later the user enables the daily
        /// check again. The paused request does not delay the next check.
        @Test func `quit during a request does not delay a later check`() async throws {
            let desktop = try Desktop()
            let home = try home(desktop, budget: 10)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            server.route("GET", Weather.path, [.hold(until: "never")], .json(Weather.forecast()))
            try home.stormy("simulate", "launch", "StormyNoon")
            try await server.waitForRequest { $0.path == "/v1/forecast" }
            let quit = try home.stormy("quit")
            #expect(quit.status == 0, "\(quit.errors)")
            #expect(try home.status("agent", "running") as? Bool == false)
            #expect((try home.status()["pending"] as? [[String: Any]])?.isEmpty == true)
            #expect(try home.history().count == 1)
            #expect(try home.stormy("schedule").status == 0)
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
        }

        /// The command is killed directly after its transfer was committed.
        @Test func `a photo is uploaded once if the command is killed after queuing it`() throws {
            let desktop = try Desktop()
            let home = try home(desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(try photos(home) == ["awaitingPhoto"])
            let photo = try photo(home)
            home.environment["BACKGROUND_CRASH_AT"] = "app.taskResumed"
            #expect(try home.stormy("upload", photo.path).status == SIGKILL)
            home.environment["BACKGROUND_CRASH_AT"] = nil
            try home.stormy("status")
            try home.waitForQuiet()
            #expect(store.files.count == 1)
            #expect(store.contents(of: "/a.jpg") == (try Data(contentsOf: photo)))
            // This photo completes the photo request of the storm.
            #expect(try photos(home) == ["completed"])
        }

        // MARK: Desktop

        @Test func `a replaced notification server shows the notification once more`() throws {
            let desktop = try Desktop()
            let home = try home(desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            try home.waitForQuiet()
            try desktop.restartServer()
            // The new server shows the old notification once more. The next check notifies only about the other place.
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Storm expected in Here"])
            try home.wait("there again") { try $0.notification("storm-1")?.state == .delivered ? true : nil }
            try home.stormy("place", "add", "There", "2,2", "--no-sync")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles().dropFirst(2) == ["Storm expected in There"])
            #expect(try desktop.dunstctl("count", "displayed") == "2")
        }

        @Test func `a missing session bus is reported, and the next bus is used`() throws {
            let desktop = try Desktop()
            let home = try home()
            home.environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=\(home.folder.path)/no-such-bus"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            try home.wait("a reason") { try $0.notification("storm-1")?.trouble }
            let trouble = try home.status("notifications", "trouble") as? String
            #expect(trouble?.contains("session bus") == true, "\(trouble ?? "none")")
            #expect(try home.status("notifications", "pending") as? Int == 1)
            home.environment.merge(desktop.environment) { $1 }
            try home.stormy("status")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            try home.waitForQuiet()
            #expect(try home.status("notifications", "delivered") as? Int == 1)
        }

        // MARK: Clock

        /// The clock is set back by six hours after the check.
        @Test func `a clock that is set back does not run a check twice`() throws {
            let desktop = try Desktop()
            let home = try home(desktop)
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule", "--exact")
            try Noon.missDays(1, home)
            let first = try home.startAgent()
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            first.end()
            let next = try home.wait("the next one") { try $0.request("StormyNoon")?.occurrence }
            #expect(next > Date())
            let log = open(home.directories.agentLog.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(log) }
            // libdispatch and SQLite work with a wrong wall clock if the monotonic clock is correct.
            let environment = home.environment.merging(["DONT_FAKE_MONOTONIC": "1"]) { $1 }
            let late = try Child(
                Child.find("sh"), FakeTime.arguments("-6h", Home.product("background-agent"), ["--app", "stormy"]),
                environment: environment, output: log)
            // The command waits until the agent that it started has ended.
            defer {
                try? home.killAgent()
                late.end()
            }
            try home.wait("the second agent") { try ($0.fact(.agent)?.startedAt ?? Date()) < Date() - 20_000 ? true : nil }
            // When the agent replies, it has already planned all work with the current time of its clock.
            #expect(try home.stormy("simulate", "expire", "StormyNoon").errors.contains("no launch"))
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try home.wait("the next one") { try $0.request("StormyNoon")?.occurrence } == next)
        }
    }
}
