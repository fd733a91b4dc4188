import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of kill -9 of the app when its result arrives late: after a hand-over, after an upload, or after a pressed button.
    @Suite struct LateKill {
        let desktop: Desktop
        let server: FaultyServer
        let store: DavStore

        init() async throws {
            desktop = try Desktop()
            server = try await FaultyServer.start()
            store = try DavStore(prefix: "/photos", directory: TestFolder.shared.appendingPathComponent(UUID().uuidString))
            server.mount(store)
        }

        private func home() throws -> Home {
            let home = try Home(
                server: server, desktop: desktop,
                extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(server.url)/photos/\"\n")
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            return home
        }

        private func launches(_ home: Home, _ kind: String) throws -> [LaunchRecord] {
            try Ledger(home.directories).read { try $0.history(limit: 100) }.filter { $0.kind.rawValue == kind }
        }

        private func expectRelaunchesExplained(_ home: Home, _ kind: String) throws {
            let all = try launches(home, kind)
            #expect(all.count >= 2)
            #expect(all.last?.outcome == .completed)
            #expect(all.map(\.generation) == Array(1...max(1, all.count)), "\(all.map(\.reason))")
            #expect(all.dropFirst().allSatisfy { $0.reason.hasPrefix("relaunch after") }, "\(all.map(\.reason))")
        }

        @Test(arguments: ["app.beforeResult", "app.afterResult"])
        func `a handed-over result is notified once if the app is killed`(_ point: String) throws {
            let home = try home()
            let forecast = Weather.forecast()
            Weather.serve(
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]), .hold(until: "rest"),
                    .body(.text(forecast)),
                ]), on: server)
            try Noon.missDays(1, home)
            let first = try home.startAgent()
            try home.endNoonWhileItAsks()
            first.end(SIGKILL)
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": point])
            server.openGate("rest")
            try home.waitForEnded("urlSession")
            // Only the app must be killed, so the test waits until the agent has recorded which notifications were shown.
            try home.waitForNoticesRemembered()
            cursed.end(SIGKILL)
            let agent = try home.startAgent()
            defer { agent.end() }
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count == 1)
            if point == "app.beforeResult" {
                try expectRelaunchesExplained(home, "urlSession")
            } else {
                // The result was committed before the app was killed, so no launch is retried.
                #expect(try launches(home, "urlSession").map(\.outcome) == [.completed])
            }
        }

        /// The second agent is also killed, at each step between the last byte and the notification.
        @Test(arguments: [
            "agent.transferStarting", "agent.transferPrepared", "agent.transferEnded", "agent.transferCommitting",
            "agent.launchCommitted", "agent.spawned", "agent.launchStarted", "agent.launchEnded", "agent.noticePresented",
        ])
        func `a handed-over result is displayed once if the second agent is killed`(_ point: String) throws {
            let home = try home()
            let forecast = Weather.forecast()
            Weather.serve(
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]), .hold(until: "rest"),
                    .body(.text(forecast)),
                ]), on: server)
            try Noon.missDays(1, home)
            let first = try home.startAgent()
            try home.endNoonWhileItAsks()
            first.end(SIGKILL)
            server.openGate("rest")
            try home.startAgent(["BACKGROUND_CRASH_AT": point]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            try home.waitForQuiet()
            let titles = try desktop.receivedTitles()
            #expect(Set(titles) == ["Storm expected in Here"])
            // The app ends directly after its notification request. An agent that is killed at this time may have shown the
            // notification without recording this in the ledger.
            let mayShowAgain = ["agent.noticePresented", "agent.launchEnded"].contains(point)
            #expect(titles.count == 1 || titles.count == 2 && mayShowAgain, "\(titles)")
            #expect(try desktop.dunstctl("count", "displayed") == "1")
            #expect(try launches(home, "appRefresh").map(\.outcome) == [.expired])
            #expect(try launches(home, "urlSession").last?.outcome == .completed)
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count == 1)
            #expect(try home.status("schedule", "enabled") as? Bool == true)
        }

        @Test func `an app that is killed while it handles an upload is launched again`() throws {
            let home = try home()
            let photo = home.folder.appendingPathComponent("a.jpg")
            try Payload.pattern(200_000).data.write(to: photo)
            try home.stormy("upload", photo.path)
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": "app.beforeResult"])
            try home.waitForEnded("urlSession")
            cursed.end(SIGKILL)
            let agent = try home.startAgent()
            defer { agent.end() }
            try home.waitForQuiet()
            try expectRelaunchesExplained(home, "urlSession")
            #expect(store.files.count == 1)
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["completed"])
        }

        @Test(arguments: ["app.taskResumed", "app.beforeResult", "app.afterResult"])
        func `a photo is uploaded once if the app is killed after the button was pressed`(_ point: String) throws {
            let home = try home()
            Weather.serve(.json(Weather.forecast()), on: server)
            let photo = home.folder.appendingPathComponent("a.jpg")
            try (JPEG.withoutPosition + Payload.pattern(200_000).data).write(to: photo)
            try home.installChooser("echo '\(photo.path)'")
            try Noon.missDays(1, home)
            // The check ends first, so that only the launch for the button is killed. The second agent shows the notification and
            // receives the button press. Only the app processes of the second agent have the variable that kills them.
            let first = try home.startAgent()
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            first.end()
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": point])
            // A second place makes the second agent show a notification.
            home.environment["BACKGROUND_CRASH_AT"] = nil
            try home.stormy("place", "add", "There", "2,2")
            try home.stormy("check", "There", "--notify")
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Storm expected in There"])
            try home.wait("shown") { try $0.notification("storm-2")?.deliveredAt }
            try desktop.dunstctl("close")
            try desktop.press("Add photo")
            try home.waitForEnded("notificationResponse")
            cursed.end(SIGKILL)
            let agent = try home.startAgent()
            defer { agent.end() }
            try home.waitForQuiet()
            #expect(store.contents(of: "/a.jpg") == (try Data(contentsOf: photo)))
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count == 1)
            // The button press is delivered again, and the user chooses the same photo again. The two choices become one upload.
            #expect(store.files == ["/a.jpg"])
        }

        /// While twenty photos are uploaded, the agent is killed at any step. The next command starts another agent.
        @Test func `twenty photos are stored once each if the agent is killed from outside`() throws {
            let nginx = try Nginx()
            let home = try Home(
                extra: """
                    [upload.destinations.home]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    location = "keep"

                    """)
            let source = home.folder.appendingPathComponent("camera")
            try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
            let noise = try #require(FileHandle(forReadingAtPath: "/dev/urandom"))
            var wanted: [String: String] = [:]
            for index in 0..<20 {
                let bytes = try noise.read(upToCount: 6_000_000 + index) ?? Data()
                let name = "IMG_\(100 + index).jpg"
                try bytes.write(to: source.appendingPathComponent(name))
                wanted[name] = FileDigest.sha256(of: bytes)
            }
            let files = wanted.keys.sorted().map { source.appendingPathComponent($0).path }
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.run("stormy", ["upload"] + files).status == 0)
            let first = try home.startAgent()
            // The server has just received the complete body of the eighth photo.
            let accessLog = nginx.folder.appendingPathComponent("access.log").path
            #expect(FileWatch.wait(accessLog) { $0.components(separatedBy: "\"PUT ").count > 8 } != nil, "\(home.log)")
            first.end(SIGKILL)
            let completed = try Ledger(home.directories).read { try $0.transfers() }.filter { $0.state == .completed }.count
            #expect(completed < 20, "the agent was killed too late")
            #expect(try home.status("agent", "running") as? Bool == false)
            // The next command starts an agent. On a slow machine, this agent already runs before the command has printed the
            // agent's state.
            home.environment["STORMY_NO_AGENT"] = nil
            try home.stormy("status")
            try home.waitForQuiet()
            var found: [String: String] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: nginx.photos.path) {
                found[name] = try FileDigest.sha256(of: nginx.photos.appendingPathComponent(name)).digest
            }
            #expect(found == wanted)
            // For each photo, the server's log contains exactly one successful MOVE request. The MOVE request gives the photo its
            // final name.
            let log = try String(contentsOfFile: accessLog, encoding: .utf8)
            let moves = log.split(separator: "\n").filter {
                $0.contains("\"MOVE ") && ($0.contains(" 201 ") || $0.contains(" 204 "))
            }
            #expect(moves.count == 20)
            let rows = try home.rows("transfers")
            #expect(
                rows.allSatisfy {
                    $0["state"] as? String == "completed" && $0["sha256"] as? String == $0["sourceSha256"] as? String
                })
        }
    }
}
