import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of statements of SECURITY.md that no other suite tests.
    @Suite struct Security {
        /// Returns the sockets of a process in a table of `/proc/net`. Only lines whose columns meet `isListed` are returned.
        private func sockets(of pid: Int32, in table: String, column: Int, where isListed: ([Substring]) -> Bool) throws
            -> [String]
        {
            let folder = "/proc/\(pid)/fd"
            let own = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { descriptor in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")).flatMap { target in
                    target.hasPrefix("socket:[") ? String(target.dropFirst(8).dropLast()) : nil
                }
            }
            // `cat` reads the complete file. The file has no length and must be read in pieces.
            let text = try Child.run("cat", ["/proc/\(pid)/net/\(table)"], environment: ProcessInfo.processInfo.environment)
                .output
            let lines = text.split(separator: "\n").dropFirst()
            return lines.filter { line in
                let columns = line.split(separator: " ")
                return columns.count > column && own.contains(String(columns[column])) && isListed(columns)
            }.map(String.init)
        }

        /// The test lists the sockets during a transfer, while a daily check is planned.
        @Test func `the agent accepts no connections`() async throws {
            let server = try await EndToEnd.stormyServer()
            server.route("GET", "/slow", ResponseScript([.status(200), .headers(["Content-Length": "10"]), .hold(until: "end")]))
            let desktop = try Desktop()
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("download", server.url + "/slow", "-o", home.folder.path + "/slow")
            try home.wait("the transfer") { try $0.transfers().first?.state == .running ? true : nil }
            try await server.waitForRequest { $0.path == "/slow" }
            let pid = try #require(home.agentPID)
            let internet = try ["tcp", "tcp6"].flatMap { table in try sockets(of: pid, in: table, column: 9) { _ in true } }
            #expect(!internet.isEmpty, "the socket belongs to the transfer")
            // The value 0A in the fourth column is the state LISTEN.
            #expect(internet.allSatisfy { $0.split(separator: " ")[3] != "0A" }, "\(internet)")
            #expect(try ["udp", "udp6"].allSatisfy { table in try sockets(of: pid, in: table, column: 9) { _ in true }.isEmpty })
            // The flag 00010000 marks a listening socket. If a socket has a name, the eighth column contains the name.
            let local = try sockets(of: pid, in: "unix", column: 6) { $0[3] == "00010000" || $0.count > 7 }
            #expect(local.isEmpty, "\(local)")
            let owner = try Child.run(
                "busctl", ["--user", "list", "--no-pager", "--no-legend", "--acquired"], environment: home.environment)
            #expect(!owner.output.contains(" \(pid) "), "the agent owns a name on the bus: \(owner)")
        }

        @Test func `a launch inherits the variables of the desktop and of the manifest, and no others`() throws {
            let app = try ProvingHome()
            app.home.environment["SECRET_OF_A_TERMINAL"] = "1"
            app.home.environment["PROVING_ENDLESS"] = "1"
            try app.run("refresh")
            try app.waitForLine("begin refresh BGAppRefreshTask")
            let launch = try app.home.wait("its process") { try $0.liveLaunches().first { $0.pid != nil } }
            let text = try String(contentsOfFile: "/proc/\(try #require(launch.pid))/environ", encoding: .utf8)
            let names = Set(text.split(separator: "\0").map { $0.prefix { $0 != "=" } })
            let expected: [Substring] = ["BACKGROUND_LAUNCH", "HOME", "LC_ALL", "PATH", "PROVING_ENDLESS", "TZ"]
            #expect(names.isSuperset(of: expected), "\(names)")
            #expect(!names.contains("SECRET_OF_A_TERMINAL"))
        }

        /// If another user owns the state folder, this user could choose the program that the agent launches.
        @Test func `a state folder of another user is rejected`() throws {
            let home = try Home()
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let folder = home.directories.state
            try home.stormy("quit")
            chmod(folder.path, 0o700)
            // The commands may first set the mode of the folder. The mode does not change the owner, which is checked afterwards.
            let result = try Child.run(
                "unshare",
                Namespaces.withOwnMounts(
                    """
                    chown 12345 '\(folder.path)'
                    '\(Home.product("stormy"))' schedule; echo "rc $?"
                    '\(Home.product("background-agent"))' --app stormy; echo "rc $?"
                    chown \(getuid()) '\(folder.path)'
                    """), environment: home.environment)
            #expect(result.errors.components(separatedBy: "the folder belongs to another user").count == 3, "\(result)")
            #expect(!result.output.contains("rc 0"), "\(result)")
        }

        @Test func `variables of a rehearsal are ignored outside a rehearsal`() throws {
            let home = try Home()
            home.environment["BACKGROUND_REHEARSAL"] = home.folder.path + "/socket"
            let agent = try home.startAgent()
            #expect(
                FileWatch.wait(home.directories.agentLog.path) { $0.contains("is ignored, because this home") } != nil,
                "\(home.log)")
            #expect(!home.log.contains("clock, network, power and notification server are simulated"))
            agent.end(SIGTERM)
        }

        /// The picture is several gigabytes large, or is not a picture, or is a pipe without a writer. In each case the decoder
        /// ends with an error.
        @Test func `the picture decoder exits with an error for invalid pictures`() throws {
            let home = try Home()
            func decode(_ name: String) throws -> Int32 {
                let path = home.folder.appendingPathComponent(name).path
                return try Child.run(Home.product("background-agent"), ["--picture", path], environment: home.environment).status
            }
            func write(_ name: String, _ content: Data) throws {
                try content.write(to: home.folder.appendingPathComponent(name))
            }
            let path = home.folder.appendingPathComponent("good.png").path
            _ = try Child.run("convert", ["-size", "300x300", "gradient:", path], environment: home.environment)
            #expect(try decode("good.png") == 0)
            let good = try Data(contentsOf: URL(fileURLWithPath: path))
            // A picture of 12,000 by 12,000 pixels with 16 bits and four channels needs more memory than the decoder may use.
            var large = good
            large.replaceSubrange(16..<26, with: [0, 0, 0x2E, 0xE0, 0, 0, 0x2E, 0xE0, 16, 6])
            try write("large.png", large)
            try write("words.png", Data("words".utf8))
            for name in ["large.png", "words.png", "nothing.png", "."] { #expect(try decode(name) != 0, "\(name)") }
            mkfifo(home.folder.appendingPathComponent("pipe.png").path, 0o600)
            #expect(try decode("pipe.png") == SIGALRM)
        }
    }
}
