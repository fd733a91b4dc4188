import ProcessSupport
import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    static func stormyServer() async throws -> FaultyServer {
        let server = try await FaultyServer.start()
        Weather.serve(.json(Weather.forecast()), on: server)
        return server
    }

    /// Login, logout, power cut: the agent is back, and what was missed runs once.
    /// One at a time: each user manager looks for the folder /run/systemd/system, of which a machine has one, and the first that ends
    /// removes it.
    @Suite(.serialized, .enabled(if: UserManager.obstacle == nil, "\(UserManager.obstacle ?? "")")) struct Login {
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
