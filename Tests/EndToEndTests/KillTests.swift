import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of kill -9 at every named kill point. No work is lost, one notification stays on the screen, and every repeated
    /// launch has a recorded reason.
    @Suite struct Kill {
        let server: FaultyServer

        init() async throws { server = try await FaultyServer.start() }

        private func home(_ desktop: Desktop) throws -> Home {
            let home = try Home(server: server, desktop: desktop, budget: 3)
            // Only the test starts agents.
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try Noon.missDays(1, home)
            return home
        }

        private func expectServedOnce(_ home: Home, _ desktop: Desktop, showings: ClosedRange<Int> = 1...1) throws {
            try home.waitForQuiet()
            let titles = try desktop.receivedTitles()
            #expect(Set(titles) == ["Storm expected in Here"])
            #expect(showings.contains(titles.count))
            // The screen shows one notification, even if several notifications were sent over the bus.
            #expect(try desktop.dunstctl("count", "displayed") == "1")
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count == 1)
            let launches = try Ledger(home.directories).read { try $0.history(limit: 100) }
            let refreshes = launches.filter { $0.kind == .appRefresh }
            #expect(refreshes.last?.outcome?.isResult == true)
            #expect(refreshes.map(\.generation) == Array(1...refreshes.count))
            #expect(refreshes.dropFirst().allSatisfy { $0.reason.hasPrefix("relaunch after") })
            // The check of the next day is planned.
            #expect(try home.wait("tomorrow") { try $0.request("StormyNoon")?.occurrence } > Date())
        }

        @Test(arguments: [
            "agent.launchCommitted", "agent.spawned", "agent.launchStarted", "agent.launchEnded", "agent.transferStarting",
            "agent.transferHead", "agent.transferPrepared", "agent.transferEnded", "agent.transferCommitting",
        ])
        func `a storm is displayed once if the agent is killed during the check`(_ point: String) throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            try home.startAgent(["BACKGROUND_CRASH_AT": point]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            // The app ends directly after its notification request. An agent that is killed at this time may have shown the
            // notification without recording this in the ledger.
            try expectServedOnce(home, desktop, showings: point == "agent.launchEnded" ? 1...2 : 1...1)
        }

        @Test func `a storm is displayed once if the agent is killed right after showing it`() throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            try home.startAgent(["BACKGROUND_CRASH_AT": "agent.noticePresented"]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            // The agent cannot determine whether the notification was shown. The next agent shows the notification again, in
            // place of the first one.
            try expectServedOnce(home, desktop, showings: 1...2)
        }

        @Test(arguments: ["app.transferSubmitted", "app.beforeResult", "app.afterResult"])
        func `a storm is displayed once if the app is killed during the check`(_ point: String) throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            // Every app process of this agent is killed at the kill point. The app processes of the next agent are not killed.
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": point])
            try home.waitForEnded("appRefresh")
            // Only the app must be killed, so the test waits until the agent has recorded which notifications were shown.
            try home.waitForNoticesRemembered()
            cursed.end(SIGKILL)
            let agent = try home.startAgent()
            defer { agent.end() }
            try expectServedOnce(home, desktop)
        }

        @Test(arguments: ["app.waiterLeaving", "app.waiterLeft", "app.taskResumed"])
        func `a storm is displayed once if the app is killed during the hand-over`(_ point: String) throws {
            let desktop = try Desktop()
            Weather.serveHeld(on: server)
            let home = try home(desktop)
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": point])
            try home.waitForEnded("appRefresh")
            cursed.end(SIGKILL)
            server.openGate("rest")
            let agent = try home.startAgent()
            defer { agent.end() }
            try expectServedOnce(home, desktop)
        }

        @Test func `a storm is displayed once if app and agent are killed during the request`() async throws {
            let desktop = try Desktop()
            Weather.serveHeld(on: server)
            let home = try home(desktop)
            let first = try home.startAgent()
            _ = try await server.waitForRequest { $0.path.hasPrefix("/v1/forecast") }
            let app = try home.wait("the app's pid") { try $0.liveLaunches().first?.pid }
            first.end(SIGKILL)
            kill(app, SIGKILL)
            server.openGate("rest")
            let agent = try home.startAgent()
            defer { agent.end() }
            try expectServedOnce(home, desktop)
        }

        @Test func `a storm is displayed once if the agent is terminated during the request`() async throws {
            let desktop = try Desktop()
            Weather.serveHeld(on: server)
            let home = try home(desktop)
            let first = try home.startAgent()
            _ = try await server.waitForRequest { $0.path.hasPrefix("/v1/forecast") }
            first.end(SIGTERM)
            server.openGate("rest")
            let agent = try home.startAgent()
            defer { agent.end() }
            try expectServedOnce(home, desktop)
        }
    }
}
