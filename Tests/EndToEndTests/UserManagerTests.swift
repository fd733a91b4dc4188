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

    /// A real systemd user manager, started as at a login.
    @Suite struct UserManager {
        /// Process 1 need not be systemd: a user manager runs where these hold (root, and cgroups that can be made).
        static var canRun: Bool {
            getuid() == 0 && access("/lib/systemd/systemd", X_OK) == 0
                && access("/sys/fs/cgroup/systemd/cgroup.procs", W_OK) == 0
        }

        @Test(.enabled(if: canRun, "needs root, systemd and writable cgroups"))
        func theAgentIsBackAndTheMissedCheckRanOnce() async throws {
            let server = try await EndToEnd.stormyServer()
            let desktop = try Desktop()
            let home = try Home(server: server, desktop: desktop)
            // A user manager looks for units in ~/.config unless told otherwise.
            let login = try Login(home)
            #expect(try home.stormy("place", "add", "Here", "1,1", "--no-sync").status == 0)
            #expect(try home.stormy("schedule").status == 0)
            try home.wait("the agent") { try $0.fact(.agent) }
            let unit = home.folder.path + "/config/systemd/user/background-agent-stormy.service"
            #expect(FileManager.default.fileExists(atPath: unit))
            #expect(try login.systemctl("is-active", "background-agent-stormy.service") == "active")
            login.end()
            // The user manager takes its services with it.
            #expect(!FileLock.isHeld(home.directories.agentLock))
            try Noon.missDays(3, home)

            let next = try Login(home)
            defer { next.end() }
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            #expect(try home.history() == ["appRefresh completed"])
            #expect(try desktop.heardSoFar() == ["Storm expected in Here"])
            #expect(try next.systemctl("is-active", "background-agent-stormy.service") == "active")
            #expect(try home.stormy("unschedule").status == 0)
            #expect(!FileManager.default.fileExists(atPath: unit))
        }
    }
}

/// One login: a user manager in a cgroup of its own.
final class Login {
    private let home: Home
    private let manager: Child
    private let folders = ["/sys/fs/cgroup/systemd/stormy-test", "/sys/fs/cgroup/unified/stormy-test"]

    init(_ home: Home) throws {
        self.home = home
        try FileManager.default.createDirectory(atPath: "/run/systemd/system", withIntermediateDirectories: true)
        // The manager refuses to run in the root cgroup: a shell goes into one of our own and becomes it.
        let enter = folders.map { "[ -d $(dirname \($0)) ] && mkdir -p \($0) && echo $$ > \($0)/cgroup.procs" }.joined(
            separator: "; ")
        let log = open(home.folder.path + "/systemd.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        manager = try Child(
            "sh", ["-c", "\(enter); exec /lib/systemd/systemd --user"], environment: home.environment, output: log)
        let ready = try Child.run(
            "sh", ["-c", "until systemctl --user is-system-running --wait; do :; done"],
            environment: home.environment.merging(["SYSTEMD_LOG_LEVEL": "crit"]) { $1 })
        guard ready.output.contains("running") || ready.output.contains("degraded") else {
            throw Desktop.Trouble("the user manager does not run: \(ready.output)")
        }
    }

    func systemctl(_ arguments: String...) throws -> String {
        try Child.run("systemctl", ["--user"] + arguments, environment: home.environment).output
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func end() { manager.end(SIGTERM) }
}
