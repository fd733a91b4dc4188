import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// kill -9 at every named point: nothing is lost, nothing is told twice, every relaunch says why.
    @Suite struct Kill {
        let server: FaultyServer

        init() async throws { server = try await FaultyServer.start() }

        private func home(_ desktop: Desktop) throws -> Home {
            let home = try Home(server: server, desktop: desktop, budget: 3)
            // Only agents of the test's making.
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try Noon.missDays(1, home)
            return home
        }

        private func expectServedOnce(_ home: Home, _ desktop: Desktop, showings: ClosedRange<Int> = 1...1) throws {
            try home.waitForQuiet()
            let titles = try desktop.heardSoFar()
            #expect(Set(titles) == ["Storm expected in Here"])
            #expect(showings.contains(titles.count))
            // Whatever went over the bus, the person sees one.
            #expect(try desktop.dunstctl("count", "displayed") == "1")
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count == 1)
            let launches = try Ledger(home.directories).read { try $0.history(limit: 100) }
            let refreshes = launches.filter { $0.kind == .appRefresh }
            #expect(refreshes.last?.outcome?.isResult == true)
            #expect(refreshes.map(\.generation) == Array(1...refreshes.count))
            #expect(refreshes.dropFirst().allSatisfy { $0.reason.hasPrefix("relaunch after") })
            // Tomorrow stands.
            #expect(try home.wait("tomorrow") { try $0.request("StormyNoon")?.occurrence } > Date())
        }

        @Test(arguments: [
            "agent.launchCommitted", "agent.spawned", "agent.launchStarted", "agent.launchEnded", "agent.transferStarting",
            "agent.transferHead", "agent.transferPrepared", "agent.transferEnded", "agent.transferCommitting",
        ])
        func theAgentDiesOnTheNoonPath(_ point: String) throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            try home.startAgent(["BACKGROUND_CRASH_AT": point]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            // The app ends right after it asked to tell: an agent that dies then may be between showing and remembering.
            try expectServedOnce(home, desktop, showings: point == "agent.launchEnded" ? 1...2 : 1...1)
        }

        @Test func theAgentDiesBetweenShowingAndRemembering() throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            try home.startAgent(["BACKGROUND_CRASH_AT": "agent.noticePresented"]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            // Nobody can know whether it was shown: it is shown again, in place of itself.
            try expectServedOnce(home, desktop, showings: 1...2)
        }

        @Test(arguments: ["app.transferSubmitted", "app.beforeResult", "app.afterResult"])
        func theAppDiesOnTheNoonPath(_ point: String) throws {
            let desktop = try Desktop()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home(desktop)
            // Every process of this agent dies there; the next agent's do not.
            let cursed = try home.startAgent(["BACKGROUND_APP_CRASH_AT": point])
            try home.waitForEnded("appRefresh")
            // It is the app's death that is looked at: what was being shown is remembered first.
            try home.waitForNoticesRemembered()
            cursed.end(SIGKILL)
            let agent = try home.startAgent()
            defer { agent.end() }
            try expectServedOnce(home, desktop)
        }

        @Test(arguments: ["app.waiterLeaving", "app.waiterLeft", "app.taskResumed"])
        func theAppDiesWhileHandingOver(_ point: String) throws {
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

        @Test func bothDieWhileTheFetchHangs() async throws {
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

        @Test func sigtermWhileTheFetchHangs() async throws {
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
