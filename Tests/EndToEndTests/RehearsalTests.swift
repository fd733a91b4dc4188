import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of the scenarios of `stormy rehearse`, which users can run on their machines.
    @Suite struct Rehearsals {
        @Test func `every promise is kept`() throws {
            let home = try Home()
            let result = try home.run("stormy", ["rehearse", "--json"])
            let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
            for row in rows where row["held"] as? Bool != true { Issue.record("\(row)") }
            #expect(result.status == 0)
            #expect(rows.count >= 40)
            #expect(Set(rows.compactMap { $0["scenario"] as? String }).count == rows.count)
            // The rehearsal does not use the user's home.
            #expect(!FileManager.default.fileExists(atPath: home.directories.ledger.path))
            let explained = try home.rows("rehearse", "--list")
            #expect(explained.count == rows.count)
            try RehearsalPage.compare(explained)
        }

        @Test func `scenarios are chosen by name`() throws {
            let home = try Home()
            let kept = home.folder.appendingPathComponent("kept")
            let result = try home.stormy("rehearse", "upload-nothing-happens", "--keep", kept.path)
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("PASS upload-nothing-happens") && result.output.contains("1 of 1 passed"))
            let names = try FileManager.default.contentsOfDirectory(atPath: kept.path).sorted()
            #expect(names.count == 2 && names.last == "upload-nothing-happens.jsonl", "\(names)")
            #expect(try home.run("stormy", ["rehearse", "no-such"]).status == 66)
            // An empty name would match all scenarios. An empty name is rejected, because a script may have passed an empty
            // variable.
            for nonsense in [["rehearse", ""], ["rehearse", "--serve", "x", "--list"], ["rehearse", "upload", "--serve", "x"]] {
                #expect(try home.run("stormy", nonsense).status == 64, "\(nonsense)")
            }
            // A second run into the same folder replaces no file of the first run.
            home.environment["http_proxy"] = "http://127.0.0.1:9"
            #expect(try home.run("stormy", ["rehearse", "upload-nothing-happens", "--keep", kept.path]).status == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: kept.path).filter { $0.hasSuffix(".jsonl") }.count == 2)
            #expect(try home.rows("rehearse", "--list", "download-").count >= 10)
        }

        /// All started processes are ended, and all files are removed.
        @Test(arguments: [(SIGTERM, 143), (SIGINT, 130)] as [(Int32, Int32)])
        func `an interrupted rehearsal leaves no files and no processes`(_ signal: Int32, _ code: Int32) throws {
            let home = try Home()
            let temporary = try TestFolder.make("tmp")
            defer { try? FileManager.default.removeItem(at: temporary) }
            home.environment["TMPDIR"] = temporary.path
            let output = home.folder.appendingPathComponent("output")
            let rehearsal = try Self.start(Home.product("stormy"), ["rehearse"], in: home, output: output)
            // The first scenario has ended, and other scenarios are still running.
            #expect(FileWatch.wait(output.path) { $0.contains("    result ") } != nil)
            #expect(Self.waitForProcess(with: temporary, beside: rehearsal.pid))
            #expect(try !FileManager.default.contentsOfDirectory(atPath: temporary.path).isEmpty)
            rehearsal.end(signal)
            #expect(rehearsal.waitForEnd() == code)
            #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
            #expect(Self.processes(with: temporary) == [])
        }

        /// Returns the processes whose environment contains this folder.
        private static func processes(with temporary: URL) -> [Int32] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return names.compactMap { Int32($0) }.filter { pid in
                let variables = try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/environ"))
                return variables?.range(of: Data("TMPDIR=\(temporary.path)\0".utf8)) != nil
            }
        }

        /// Waits for a process of a scenario. For a short time between two scenarios, no process of a scenario is running. The
        /// loop needs no pause, because reading /proc takes some time.
        private static func waitForProcess(with temporary: URL, beside pid: Int32) -> Bool {
            let deadline = Date().addingTimeInterval(20)
            while Date() < deadline { if processes(with: temporary).contains(where: { $0 != pid }) { return true } }
            return false
        }

        @Test func `a rehearsal that cannot be set up exits with 73`() throws {
            let home = try Home()
            func rehearse(_ arguments: String..., temporary: String? = nil) throws -> Child.Result {
                try Child.run(
                    Home.product("stormy"), ["rehearse", "check-nothing-happens"] + arguments,
                    environment: home.environment.merging(temporary.map { ["TMPDIR": $0] } ?? [:]) { $1 })
            }
            // Below a file, no folder can be created, not even by root.
            let file = home.folder.appendingPathComponent("file")
            try Data().write(to: file)
            let missing = try rehearse(temporary: file.path + "/folder")
            #expect(missing.status == 73 && missing.errors.contains(file.path), "\(missing)")
            // The path is longer than the maximum length of a socket's path.
            let long = home.folder.appendingPathComponent(String(repeating: "x", count: 90))
            try FileManager.default.createDirectory(at: long, withIntermediateDirectories: true)
            let unnamed = try rehearse(temporary: long.path)
            #expect(unnamed.status == 73 && unnamed.errors.contains(long.path), "\(unnamed)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: long.path) == [])
            let unkept = try rehearse("--keep", "/proc/nope")
            #expect(unkept.status == 73 && unkept.errors.contains("/proc/nope: "), "\(unkept)")
            #expect(try rehearse("--keep", "").status == 64)
        }

        @Test func `variables for other processes are not inherited`() throws {
            let home = try Home()
            home.environment["BACKGROUND_CRASH_AT"] = "agent.launchCommitted"
            home.environment["BACKGROUND_LAUNCH"] = "7"
            // The command line names the scenario twice, but the scenario runs only once.
            let result = try home.stormy("rehearse", "check-nothing-happens", "check-nothing")
            #expect(result.status == 0 && result.output.contains("1 of 1 passed"), "\(result)")
        }

        @Test func `the help describes the script format`() throws {
            let help = try Home().stormy("rehearse", "--help").output
            for line in ScriptFile.grammar.split(separator: "\n") { #expect(help.contains(line)) }
        }

        /// Starts a program. The output of the program goes to a file that the test can watch.
        private static func start(_ program: String, _ arguments: [String], in home: Home, output: URL) throws -> Child {
            let descriptor = open(output.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(descriptor) }
            return try Child(program, arguments, environment: home.environment, output: descriptor)
        }

        /// Starts a faulty server that runs a script.
        /// - Returns: The server, the file of its output, and its first output, which contains the address.
        private static func serve(_ text: String, _ options: String..., in home: Home) throws -> (
            Child, output: URL, said: String
        ) {
            let script = home.folder.appendingPathComponent("script")
            try Data(text.utf8).write(to: script)
            let output = home.folder.appendingPathComponent("output")
            let server = try start(
                Home.product("stormy"), ["rehearse", "--serve", script.path] + options, in: home, output: output)
            let said = FileWatch.wait(output.path) { $0.contains("\n") }
            if said == nil { server.end() }
            return (server, output, try #require(said))
        }

        /// A request that never ends does not delay the output of other requests. Each line of the output is a JSON document.
        @Test func `each request is logged when it ends`() throws {
            let home = try Home()
            let text = "GET /slow\n  status 200\n  header Content-Length: 5\n  body he\n  stall\nGET /a\n  status 204\n"
            let (server, output, first) = try Self.serve(text, "--json", in: home)
            defer { server.end() }
            let document = try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any]
            let url = try #require(document?["url"] as? String)
            let body = home.folder.appendingPathComponent("body")
            let slow = try Self.start("curl", ["-sN", url + "/slow"], in: home, output: body)
            defer { slow.end() }
            #expect(FileWatch.wait(body.path) { $0.contains("he") } != nil)
            #expect(try Child.run("curl", ["-s", url + "/a"], environment: home.environment).status == 0)
            let told = try #require(FileWatch.wait(output.path) { $0.contains("\"path\":\"/a\"") })
            #expect(!told.contains("/slow"))
            slow.end()
            let all = try #require(FileWatch.wait(output.path) { $0.contains("clientClosed") && $0.hasSuffix("\n") })
            let rows = try all.split(separator: "\n").dropFirst().map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
            #expect(rows.map { $0?["path"] as? String } == ["/a", "/slow"])
        }

        /// If a client trusts the printed certificate authority, it receives responses.
        @Test func `--serve runs a script as an HTTPS server`() throws {
            let home = try Home()
            let text =
                "greet https\nGET /whole\n  status 200\n  body hello\nGET /cut\n  status 200\n  header Content-Length: 5\n  body hel\n  cut\n"
            let (server, _, first) = try Self.serve(text, "--json", in: home)
            defer { server.end() }
            let document = try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any]
            let url = try #require(document?["url"] as? String)
            let authority = home.folder.appendingPathComponent("ca.pem")
            try Data(try #require(document?["certificateAuthority"] as? String).utf8).write(to: authority)
            func curl(_ arguments: String...) throws -> (Int32, String) {
                let result = try Child.run("curl", ["-s"] + arguments, environment: home.environment)
                return (result.status, result.output)
            }
            #expect(url.hasPrefix("https://127.0.0.1:"))
            #expect(try curl(url + "/whole") == (60, ""))
            #expect(try curl("--cacert", authority.path, url + "/whole") == (0, "hello"))
            #expect(try curl("--cacert", authority.path, url + "/cut") == (18, "hel"))
        }

        @Test func `--serve runs a script as an HTTP server`() throws {
            let home = try Home()
            let text = "GET /a\n  status 200\n  header Content-Length: 5\n  body hello\nthen\n  cut\n"
            let (server, output, said) = try Self.serve(text, in: home)
            defer { server.end() }
            let line = try #require(said.split(separator: "\n").first { $0.hasPrefix("Listening on ") })
            let url = String(line.dropFirst("Listening on ".count)) + "/a"
            #expect(try Child.run("curl", ["-s", url], environment: home.environment).output == "hello")
            #expect(try Child.run("curl", ["-s", url], environment: home.environment).status == 52)
            let log = FileWatch.wait(output.path) { $0.contains("cutByScript") }
            #expect(log?.contains("GET /a: 0 bytes in, status 200, 5 bytes out, answered") == true, "\(log ?? "nothing")")
            let bad = home.folder.appendingPathComponent("bad")
            try Data("GET /a\n  jump\n".utf8).write(to: bad)
            let refused = try home.run("stormy", ["rehearse", "--serve", bad.path])
            #expect(refused.status == 65 && refused.errors.contains("bad:2: jump is not a step"))
        }
    }
}

/// Compares the page in the documentation with the scenarios. If `WRITE_TABLES=1` is set, the test writes the page.
private enum RehearsalPage {
    static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/API/BackgroundTasks/BackgroundTasks.docc/Rehearsals.md")

    static func compare(_ explained: [[String: Any]]) throws {
        var page = """
            # Promises for interrupted work

            Lists every scenario of the command `stormy rehearse`. A scenario runs real processes, and interrupts or kills these processes. The last
            column of each table shows the required result. A promise is kept only if the real result is equal to the required result, word for word.
            The command `stormy rehearse` runs the scenarios on your machine, and prints the results.

            The command `WRITE_TABLES=1 swift test --filter EndToEnd.Rehearsals` runs a test of these promises, and writes this page.

            """
        var work = ""
        for row in explained {
            if work != row["work"] as? String {
                work = row["work"] as? String ?? ""
                page += "\n## While \(work)\n\n| event | promise | result |\n| --- | --- | --- |\n"
            }
            let sight = (row["expected"] as? [String] ?? []).joined(separator: ", or ")
            page += "| \(row["cause"] as? String ?? "") | \(row["promised"] as? String ?? "") | \(sight) |\n"
        }
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == page, "WRITE_TABLES=1 writes the page again")
    }
}
