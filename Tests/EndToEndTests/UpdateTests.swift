import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of package upgrades that replace the program of a running agent.
    @Suite struct Update {
        let server: FaultyServer
        let home: Home
        private let program: URL

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home(server: server)
            program = home.folder.appendingPathComponent("background-agent")
            try Home.copyProgram(Home.product("background-agent"), to: program.path)
            home.environment["BACKGROUND_AGENT"] = program.path
        }

        private func replaceProgram() throws {
            let new = home.folder.appendingPathComponent("new")
            try Home.copyProgram(Home.product("background-agent"), to: new.path)
            #expect(rename(new.path, program.path) == 0)
        }

        private var starts: Int { home.log.components(separatedBy: "agent started pid=").count - 1 }
        private func isOutdated() throws -> Bool? { try home.status("agent", "outdated") as? Bool }

        @Test func `an idle agent is replaced by the new program at once`() throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let pid = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            try replaceProgram()
            // The test wakes the agent by a commit. Outside of tests, the next daily check would wake the agent. The variable
            // prevents that commands start another agent while this agent restarts.
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("schedule")
            try home.wait("the new program") { _ in starts == 2 ? true : nil }
            #expect(
                try home.wait("its pid") { try $0.fact(.agent)?.pid } == pid, "the main process of the service stays the same")
            #expect(try isOutdated() == false)
            #expect(try home.status("schedule", "enabled") as? Bool == true)
        }

        @Test func `a download under way ends before the program is replaced`() throws {
            let file = Payload.pattern(300_000)
            server.route(
                "GET", "/late.img",
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(file.count)"]), .body(file.slice(0..<100_000)),
                    .hold(until: "rest"),
                    .body(file.slice(100_000..<file.count)),
                ]))
            #expect(try home.stormy("download", server.url + "/late.img", "-o", home.folder.path + "/late.img").status == 0)
            try home.wait("its first bytes") { try $0.transfers().first.flatMap { $0.bytesDone > 0 ? true : nil } }
            try replaceProgram()
            try home.stormy("schedule")
            #expect(try isOutdated() == true)
            #expect(try home.stormy("status").output.contains("The new program starts when no work is running"))
            #expect(starts == 1)
            server.openGate("rest")
            try home.waitForEnded("urlSession")
            try home.wait("the new program") { _ in starts == 2 ? true : nil }
            #expect(try Data(contentsOf: home.folder.appendingPathComponent("late.img")) == file.data)
            #expect(server.requests(matching: "/late.img").count == 1)
        }

        /// The new program cannot run: its libraries are missing, or the file is a different program.
        @Test(arguments: ["exit 127", "exit 0", "echo 0.0.1"])
        func `an unusable new program does not replace the agent`(_ what: String) throws {
            try home.stormy("schedule")
            let pid = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            let new = home.folder.appendingPathComponent("new")
            try Data("#!/bin/sh\n\(what)\n".utf8).write(to: new)
            chmod(new.path, 0o755)
            #expect(rename(new.path, program.path) == 0)
            try home.stormy("schedule")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            #expect(try isOutdated() == true)
            #expect(home.agentPID == pid && starts == 1)
        }

        /// The folder of the programs was moved. Each command that is started in the new folder updates the login entry.
        @Test(arguments: ["status", "why", "check --offline", "place list"])
        func `the login entry follows a moved program folder`(_ verb: String) throws {
            home.environment["BACKGROUND_AGENT"] = nil
            let (old, new) = (home.folder.path + "/old", home.folder.path + "/new")
            try FileManager.default.createDirectory(atPath: old, withIntermediateDirectories: true)
            for name in ["stormy", "background-agent"] { try Home.copyProgram(Home.product(name), to: old + "/" + name) }
            func run(_ folder: String, _ words: String) throws -> Child.Result {
                try Child.run(folder + "/stormy", words.split(separator: " ").map(String.init), environment: home.environment)
            }
            #expect(try run(old, "place add Here 1,1 --no-sync").status == 0)
            #expect(try run(old, "schedule").status == 0)
            let entry = home.folder.path + "/config/autostart/background-agent-stormy.desktop"
            #expect(try String(contentsOfFile: entry, encoding: .utf8).contains("\"\(old)/stormy\" agent"))
            #expect(rename(old, new) == 0)
            _ = try run(new, verb)
            let text = try String(contentsOfFile: entry, encoding: .utf8)
            // The entry contains `TryExec`, so the desktop ignores the entry if the program is missing.
            #expect(text.contains("\"\(new)/stormy\" agent") && text.contains("TryExec=\(new)/stormy\n"))
            #expect(try run(new, "quit").status == 0)
        }
    }
}
