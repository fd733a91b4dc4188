import BackgroundLedger
import FaultyServer
import Foundation
import ProcessSupport
import Testing

extension EndToEnd {
    /// Tests of stores that are damaged, newer, read-only or readable for other users. The commands print a clear message and
    /// change no byte.
    @Suite struct Store {
        let home: Home

        init() throws {
            home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
        }

        /// When most of these commands start, the folders do not exist yet.
        @Test func `300 commands at once all succeed`() throws {
            for folder in ["data/stormy", "state/stormy"] { try FileManager.default.removeItem(at: url(folder)) }
            let script = "seq -w 300 | xargs -P 300 -I{} '\(Home.product("stormy"))' place add 'Place {}' '1.{},1' --no-sync"
            let result = try Child.run("/bin/sh", ["-c", script], environment: home.environment)
            #expect(result.status == 0 && result.errors == "", "\(result)")
            #expect(try home.stormy("place", "list").output.split(separator: "\n").filter { $0.contains("Place ") }.count == 300)
        }

        /// The umask would remove the user's permissions from new files and folders.
        @Test func `the first command makes files that the next can write`() throws {
            for folder in ["data/stormy", "state/stormy"] { try FileManager.default.removeItem(at: url(folder)) }
            let stormy = Home.product("stormy")
            let script = "umask 0377; '\(stormy)' place add There 1,1 --no-sync && exec '\(stormy)' schedule"
            let result = try Child.run("/bin/sh", ["-c", script], environment: home.environment)
            #expect(result.status == 0, "\(result)")
            for file in Self.files {
                let mode = try FileManager.default.attributesOfItem(atPath: url(file).path)[.posixPermissions] as? Int
                #expect(mode == 0o600, "\(file)")
            }
        }

        /// A database that `VACUUM INTO` created has no write-ahead log.
        @Test func `a database copied with VACUUM INTO is used with a write-ahead log`() async throws {
            let server = try await FaultyServer.start()
            server.route("GET", "/a", [.status(200), .body("whole")])
            home.environment["STORMY_NO_AGENT"] = nil
            for file in Self.files {
                let script = "VACUUM INTO '\(url("copy").path)'"
                #expect(try Child.run("sqlite3", [url(file).path, script], environment: home.environment).status == 0)
                for side in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url(file).path + side) }
                try FileManager.default.moveItem(at: url("copy"), to: url(file))
            }
            let result = try home.stormy("download", server.url + "/a", "-o", url("whole").path, "--wait")
            #expect(result.status == 0, "\(result.errors)")
            for file in Self.files {
                try home.stormy("place", "add", UUID().uuidString, "1,1", "--no-sync")
                let mode = try Child.run("sqlite3", [url(file).path, "PRAGMA journal_mode"], environment: home.environment)
                #expect(mode.output == "wal\n")
            }
        }

        /// `doctor` prints `why` as the command that passes the address of the desktop to the agent. The command must also work
        /// while another process writes to the ledger.
        @Test func `why stores the desktop of the session when the ledger is free`() throws {
            let ledger = try Ledger(home.directories)
            home.environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/of/this/desktop"
            let output = home.folder.appendingPathComponent("output")
            _ = FileManager.default.createFile(atPath: output.path, contents: nil)
            let file = try FileHandle(forWritingTo: output)
            let why = try ledger.write { transaction in
                try transaction.setFact(.sessionEnvironment, nil)
                let why = try Child(
                    Home.product("stormy"), ["why"], environment: home.environment, output: file.fileDescriptor)
                // The command prints its explanation before it waits for the ledger.
                #expect(FileWatch.wait(output.path) { $0.contains("time: waiting for") } != nil)
                return why
            }
            #expect(why.waitForEnd() == 0)
            let told = try ledger.read { try $0.fact(.sessionEnvironment) }
            #expect(told?.variables["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/of/this/desktop")
        }

        /// A process was stopped during a transaction. Commands that only read do not wait. A command that changes the database
        /// prints the name of the stopped process.
        @Test(arguments: ["state/stormy/agent.sqlite", "data/stormy/stormy.sqlite"])
        func `a stopped writer does not delay commands that only read`(_ file: String) throws {
            let verbs = ["status", "transfers", "history", "why"]
            let holder = try home.stopAWriter(of: file)
            defer { holder.end(SIGKILL) }
            let free = try Home()
            func time(_ verb: String, in home: Home) throws -> Duration {
                try ContinuousClock().measure {
                    let result = try home.stormy(verb)
                    #expect(result.status == 0, "\(verb): \(result.errors)")
                }
            }
            for verb in verbs {
                // A writer waits two seconds before it looks up which process holds the lock of the file. If the machine is
                // busy, the commands are slow in both homes.
                let isQuick = try (0..<10).contains { _ in try time(verb, in: home) < time(verb, in: free) + .seconds(2) }
                #expect(isQuick, "\(verb)")
            }
            let writing = file.hasPrefix("state") ? ["quit"] : ["place", "add", "There", "2,2", "--no-sync"]
            let result = try home.stormy(writing)
            #expect(result.status == 75, "\(result)")
            #expect(result.errors.contains("process \(holder.pid) (python3), which is stopped"), "\(result.errors)")
            // `quit` failed, so the daily check is still enabled.
            let report = try home.status("schedule", "enabled") as? Bool
            #expect(report == true)
        }

        /// The removed files look like leftovers, but they belong to the database of the ledger. The agent writes all its data
        /// into a new ledger.
        @Test(arguments: [["-shm"], ["-wal"], ["-wal", "-shm"]])
        func `removing the side files of the ledger loses no data`(_ endings: [String]) async throws {
            let server = try await FaultyServer.start()
            for name in ["a", "b", "c"] { server.route("GET", "/\(name)", [.status(200), .body("whole")]) }
            let home = try Home()
            func download(_ name: String) throws {
                let result = try home.stormy("download", "\(server.url)/\(name)", "-o", "\(home.folder.path)/\(name)")
                #expect(result.status == 0, "\(result)")
            }
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try download("a")
            try home.waitForEnded("urlSession")
            let agent = try #require(home.agentPID)
            for ending in endings { try FileManager.default.removeItem(atPath: home.directories.ledger.path + ending) }
            #expect(
                FileWatch.wait(home.directories.agentLog.path) { $0.contains("the agent starts with an empty ledger") } != nil,
                "\(home.log)")
            try download("b")
            try download("c")
            try home.wait("both") { try $0.transfers().count == 3 && $0.unfinishedTransfers().isEmpty ? true : nil }
            // While the agent writes the new ledger, other processes cannot open the ledger and must try again. The test
            // therefore repeats the read.
            let going = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            #expect(going == agent && kill(agent, 0) == 0, "the same process opened the new ledger: \(home.log)")
            let status = try home.status()
            #expect(status["schedule"] != nil, "\(status)")
            let whole = try Child.run(
                "sqlite3", [home.directories.ledger.path, "PRAGMA integrity_check"], environment: home.environment)
            #expect(whole.output == "ok\n", "\(whole)")
        }

        /// The agent is stopped and has not detected that the files were removed. A command must not write to files that the
        /// agent would never read.
        @Test(arguments: [["-shm"], ["-wal"], ["-wal", "-shm"]])
        func `a ledger without its side files is not written while the agent is stopped`(_ endings: [String]) async throws {
            let server = try await FaultyServer.start()
            for name in ["a", "b"] { server.route("GET", "/\(name)", [.status(200), .body("whole")]) }
            let home = try Home()
            func download(_ name: String) throws -> Child.Result {
                try home.stormy("download", "\(server.url)/\(name)", "-o", "\(home.folder.path)/\(name)")
            }
            try home.stormy("schedule")
            let agent = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            try home.freezeAgent()
            defer { kill(agent, SIGCONT) }
            #expect(try download("a").status == 0)
            for ending in endings { try FileManager.default.removeItem(atPath: home.directories.ledger.path + ending) }
            let refused = try download("b")
            #expect(refused.status == 75 && refused.errors.contains("kill -CONT \(agent) "), "\(refused)")
            kill(agent, SIGCONT)
            #expect(try download("b").status == 0)
            try home.wait("both") { try $0.transfers().count == 2 && $0.unfinishedTransfers().isEmpty ? true : nil }
            for name in ["a", "b"] { #expect(FileManager.default.fileExists(atPath: "\(home.folder.path)/\(name)")) }
        }

        /// The user removes a lock file, because it looks unused.
        @Test func `removing the lock file leaves one agent running`() throws {
            home.environment["STORMY_NO_AGENT"] = nil
            try home.stormy("schedule")
            let first = try home.wait("the agent") { try $0.fact(.agent)?.pid }
            defer { _ = try? home.stormy("quit") }
            #expect(unlink(home.directories.agentLock.path) == 0)
            // Each command starts an agent if no agent is running.
            for name in ["One", "Two", "Three"] { try home.stormy("schedule", "--at", name == "Two" ? "11:00" : "12:00") }
            let last = try home.wait("the one that is left") { _ in
                let agents = home.agents
                return agents.count == 1 && FileLock.isHeld(home.directories.agentLock) ? agents.first : nil
            }
            #expect(try home.wait("its word") { try $0.fact(.agent)?.pid } == last, "the first was \(first)")
        }

        private static let files = ["state/stormy/agent.sqlite", "data/stormy/stormy.sqlite"]

        private func url(_ file: String) -> URL { home.folder.appendingPathComponent(file) }

        private func expectRefused(_ file: String, status: Int32, words: String) throws {
            let before = try Data(contentsOf: url(file))
            for arguments in [["status"], ["schedule"], ["quit"], ["transfers"]] {
                let result = try home.run("stormy", arguments)
                #expect(result.status == status, "\(arguments): \(result.errors)")
                #expect(result.errors.contains(url(file).path) && result.errors.contains(words), "\(result.errors)")
                #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
            }
            if file == Self.files[0] {
                let agent = try home.run("background-agent", ["--app", "stormy"])
                // The unit does not restart the agent after this exit code.
                #expect(agent.status == (status == 74 ? 65 : status))
                #expect(agent.errors.contains(words), "\(agent.errors)")
            }
            #expect(try Data(contentsOf: url(file)) == before, "\(file) was changed")
        }

        @Test(arguments: files)
        func `a file that is not a database is left untouched`(_ file: String) throws {
            for side in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url(file).path + side) }
            try Data("This was never a database, but somebody's shopping list.\n".utf8 + Data(repeating: 0x5A, count: 9_000))
                .write(to: url(file))
            try expectRefused(file, status: 74, words: "The file was not changed")
        }

        @Test(arguments: files)
        func `a database of a newer version is left untouched`(_ file: String) throws {
            // When the last connection closes, it writes all data into the file. After the last connection is closed, the bytes
            // of the file no longer change.
            let changed = try Child.run(
                "sqlite3", [url(file).path, "INSERT INTO grdb_migrations VALUES ('99: from the future')"],
                environment: home.environment)
            #expect(changed.status == 0, "\(changed.errors)")
            try expectRefused(file, status: 78, words: "newer version")
        }

        /// Root can always write. The commands therefore run as a user who can read but not write.
        @Test(.enabled(if: getuid() == 0, "only root can give files to another user"))
        func `commands that only read show a ledger that cannot be written`() throws {
            try #require((try? Child.find("setpriv")) != nil, "setpriv (util-linux) is not installed")
            // The folder belongs to the user of the commands, but this user can only read it.
            for (tool, change) in [("chown", "65534:65534"), ("chmod", "a-w,a+rX")] {
                #expect(try Child.run(tool, ["-R", change, home.folder.path], environment: home.environment).status == 0)
            }
            defer { _ = try? Child.run("chmod", ["-R", "u+w", home.folder.path], environment: home.environment) }
            func run(_ command: String) throws -> Child.Result {
                try Child.run(
                    "setpriv",
                    ["--reuid=65534", "--regid=65534", "--clear-groups", Home.product("stormy")]
                        + command.split(separator: " ").map(String.init), environment: home.environment)
            }
            let expected = [
                ("status", "daily at 12:00"), ("history", "Nothing has run yet."), ("why", "StormyNoon"),
                ("report -o -", "Nothing has run yet."),
            ]
            for (command, words) in expected {
                let result = try run(command)
                // The user of the commands may not have access to the build folder. If the user has no access, the test ends
                // without a result.
                guard result.status != 126, result.status != 127 else { return }
                #expect(result.status == 0 && result.output.contains(words), "\(command): \(result)")
                let notes = result.errors.split(separator: "\n").filter { $0.contains(url("state/stormy").path) }
                #expect(notes.count == 1 && notes[0].contains("The command shows the stored state"), "\(command): \(result)")
            }
            let refused = try run("quit")
            #expect([73, 74].contains(refused.status), "\(refused)")
            #expect(refused.errors.contains("check the permissions"), "\(refused)")
        }

        /// The folder is a symbolic link to itself. Even root cannot read this folder.
        @Test func `a folder that cannot be read is not an empty one`() throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            let cases = [
                (home.directories.state, ["history", "why", "status", "transfers"]),
                (home.directories.data, ["status", "transfers"]),
            ]
            for (folder, commands) in cases {
                try? FileManager.default.removeItem(at: folder)
                try FileManager.default.createDirectory(
                    at: folder.deletingLastPathComponent(), withIntermediateDirectories: true)
                #expect(symlink(folder.lastPathComponent, folder.path) == 0)
                for command in commands {
                    let result = try home.stormy(command)
                    #expect([73, 74].contains(result.status) && result.errors.contains(folder.path), "\(command): \(result)")
                }
                unlink(folder.path)
            }
        }

        @Test(arguments: [("/\\377", "is not valid UTF-8"), ("/a\\nb", "contains a line break")])
        func `a folder that is not UTF-8 or contains a line break is refused at start`(_ name: String, _ fault: String) throws {
            let state = home.folder.appendingPathComponent("refused")
            try FileManager.default.createDirectory(at: state, withIntermediateDirectories: false)
            for command in ["'\(Home.product("stormy"))' status", "'\(Home.product("background-agent"))' --app stormy"] {
                let script = "XDG_STATE_HOME=$(printf '\(state.path)\(name)') \(command)"
                let result = try Child.run("/bin/sh", ["-c", script], environment: home.environment)
                #expect(result.status == 78, "\(result)")
                #expect(result.errors.contains("XDG_STATE_HOME names a folder whose path \(fault): set"), "\(result)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: state.path) == [])
        }

        /// A login script may run `umask 000`.
        @Test func `no file is writable by others under umask 000`() throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            for folder in ["config", "state", "data"] {
                try? FileManager.default.removeItem(at: home.folder.appendingPathComponent(folder))
            }
            let script =
                "umask 000; '\(Home.product("stormy"))' place add Here 1,1 --no-sync && '\(Home.product("stormy"))' schedule"
            let result = try Child.run("/bin/sh", ["-c", script], environment: home.environment)
            #expect(result.status == 0, "\(result.errors)")
            #expect(
                FileManager.default.fileExists(atPath: home.folder.path + "/config/autostart/background-agent-stormy.desktop"))
            let all = FileManager.default.enumerator(atPath: home.folder.path)?.compactMap { home.folder.path + "/\($0)" } ?? []
            for path in all where ["config", "state", "data"].contains(where: { path.contains("/\($0)/") }) {
                var information = stat()
                guard lstat(path, &information) == 0, information.st_mode & S_IFMT != S_IFLNK else { continue }
                #expect(
                    information.st_mode & 0o022 == 0,
                    "other users can write to \(path): \(String(information.st_mode, radix: 8))")
            }
        }

        @Test func `state and data are readable only by the user`() async throws {
            let server = try await FaultyServer.start()
            let store = try DavStore(prefix: "/photos", directory: TestFolder.shared.appendingPathComponent(UUID().uuidString))
            server.mount(store)
            let home = try Home(extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(server.url)/photos/\"\n")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            // The upload is waiting, so the agent's copy of the photo is in the spool.
            store.refuse(status: 507, method: "PUT")
            try home.stormy("upload", photo.path)
            try home.wait("waiting") { try $0.transfers().first { $0.state == .waiting } }
            try home.stormy("schedule")
            for folder in ["state/stormy", "data/stormy"] {
                let root = home.folder.appendingPathComponent(folder)
                let all =
                    [root.path] + (FileManager.default.enumerator(atPath: root.path)?.compactMap { root.path + "/\($0)" } ?? [])
                #expect(all.contains { $0.contains("/spool/") } || folder == "data/stormy")
                for path in all {
                    var information = stat()
                    guard lstat(path, &information) == 0 else { continue }
                    let isFolder = information.st_mode & S_IFMT == S_IFDIR
                    #expect(information.st_mode & 0o777 == (isFolder ? 0o700 : 0o600), "\(path)")
                }
            }
        }
    }
}
