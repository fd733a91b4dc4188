import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of `stormy download`, as the user runs it.
    @Suite struct Download {
        let server: FaultyServer
        private(set) var home: Home
        private(set) var folder: URL

        static let file = Payload.pattern(400_000)

        init() async throws {
            server = try await FaultyServer.start()
            (home, folder) = try Self.makeHome(nil)
            server.route("GET", "/*", .file(Self.file, etag: "\"v1\""))
        }

        private static func makeHome(_ desktop: Desktop?) throws -> (Home, folder: URL) {
            let home = try Home(desktop: desktop)
            home.environment["BACKGROUND_RETRY_BASE"] = "0.05"
            let folder = home.folder.appendingPathComponent("here/inner")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return (home, folder)
        }

        /// Adds a desktop for tests that check notifications.
        private mutating func useDesktop() throws -> Desktop {
            let desktop = try Desktop()
            (home, folder) = try Self.makeHome(desktop)
            return desktop
        }

        /// Runs `stormy download` in the folder of the test.
        @discardableResult
        private func download(_ arguments: String...) throws -> Child.Result { try download(arguments) }

        private func download(_ arguments: [String]) throws -> Child.Result {
            let words = ([Home.product("stormy"), "download"] + arguments).map { "'\($0)'" }.joined(separator: " ")
            return try Child.run("/bin/sh", ["-c", "cd '\(folder.path)' && \(words)"], environment: home.environment)
        }

        private func names(_ place: URL) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: place.path).sorted()
        }

        /// The download is queued. The command reports that no agent can be started.
        @Test func `a download whose agent cannot be started ends with 69 and begins with the next command`() throws {
            let program = home.folder.appendingPathComponent("broken-agent")
            try Data("no program".utf8).write(to: program)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
            home.environment["BACKGROUND_AGENT"] = program.path
            let place = folder.appendingPathComponent("file.jpg")
            let queued = try home.stormy("download", "\(server.url)/file.jpg", "-o", place.path)
            #expect(queued.status == 69, "\(queued)")
            #expect(queued.errors.components(separatedBy: "The agent could not be started: ").count == 2, "\(queued)")
            #expect(try home.stormy("status").status == 0)
            home.environment["BACKGROUND_AGENT"] = nil
            #expect(try home.stormy("transfers").status == 0)
            try home.wait("the download") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            #expect(try Data(contentsOf: place) == Self.file.data)
        }

        @Test func `a followed download prints its digest and launches no app`() throws {
            let result = try download(server.url + "/disk.img", "--wait")
            #expect(result.status == 0 && result.output.contains(FileDigest.sha256(of: Self.file.data)), "\(result)")
            #expect(try Data(contentsOf: folder.appendingPathComponent("disk.img")) == Self.file.data)
            #expect(try names(folder) == ["disk.img"])
            // The command has printed the result of the download, so no app is launched to report this result.
            try home.waitForQuiet()
            #expect(try home.history() == [])
            // Without -o, no existing file is replaced.
            #expect(try download(server.url + "/disk.img").status == 73)
            #expect(try download(server.url + "/disk.img", "-o", "disk.img", "--wait").status == 0)
        }

        /// When the download was requested, no file had this name. The user created the file later, so the download does not
        /// replace the file.
        @Test(arguments: [false, true])
        func `a file created during the download is replaced only with --force`(_ force: Bool) throws {
            server.route(
                "GET", "/late",
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(Self.file.count)", "ETag": "\"v1\""]),
                    .body(Self.file.slice(0..<100_000)), .hold(until: "/late"), .body(Self.file.slice(100_000..<Self.file.count)),
                ]))
            #expect(try download([server.url + "/late", "-o", "late.img"] + (force ? ["--force"] : [])).status == 0)
            try home.wait("its first bytes") { try $0.transfers().first.flatMap { $0.bytesDone > 0 ? true : nil } }
            let mine = folder.appendingPathComponent("late.img")
            try Data("mine".utf8).write(to: mine)
            server.openGate("/late")
            try home.waitForEnded("urlSession")
            #expect(try names(folder) == (force ? ["late.img"] : ["late (1).img", "late.img"]))
            #expect(try Data(contentsOf: mine) == (force ? Self.file.data : Data("mine".utf8)))
            if !force {
                #expect(try Data(contentsOf: folder.appendingPathComponent("late (1).img")) == Self.file.data)
                let listed = try home.stormy("transfers").output
                #expect(listed.contains("late (1).img"), "\(listed)")
                // Full addresses and paths are shown only with -v.
                #expect(!listed.contains(server.url) && !listed.contains(folder.path), "\(listed)")
                let long = try home.stormy("transfers", "-v").output
                #expect(long.contains("    from \(server.url)/late\n    to \(folder.path)/late (1).img\n"), "\(long)")
            }
        }

        /// With -o the user agrees to replace the existing file, but not another file that is created later with the same name.
        @Test(arguments: [false, true])
        func `a new file in place of the output file is replaced only with --force`(_ force: Bool) throws {
            held("late")
            let notes = folder.appendingPathComponent("notes.txt")
            try Data("old".utf8).write(to: notes)
            #expect(try download([server.url + "/late", "-o", "notes.txt"] + (force ? ["--force"] : [])).status == 0)
            try home.wait("its first bytes") { try $0.transfers().first.flatMap { $0.bytesDone > 0 ? true : nil } }
            try FileManager.default.removeItem(at: notes)
            try Data("precious".utf8).write(to: notes)
            server.openGate("late")
            try home.waitForEnded("urlSession")
            #expect(try Data(contentsOf: notes) == (force ? Self.file.data : Data("precious".utf8)))
            #expect(try names(folder) == (force ? ["notes.txt"] : ["notes (1).txt", "notes.txt"]))
        }

        /// The agent uses the same mounted file systems as the first command, because this command started the agent.
        @Test(.enabled(if: Namespaces.areAllowed))
        func `a download of a command with other mounts never gets to another folder of the same path`() throws {
            #expect(try download(server.url + "/disk.img", "--wait").status == 0)
            let script = """
                mount -t tmpfs none '\(folder.path)' && cd '\(folder.path)' || exit 9
                '\(Home.product("stormy"))' download '\(server.url)/disk.img' --force -o '\(folder.path)/disk.img'
                '\(Home.product("stormy"))' download '\(server.url)/disk.img' --wait -o '\(home.folder.path)/here/shared.img' || exit 8
                """
            let disk = folder.appendingPathComponent("disk.img")
            try Data("precious".utf8).write(to: disk)
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            #expect(result.status == 0, "\(result)")
            try home.wait("the download that waits") { transaction in
                try transaction.transfers().contains { $0.state == .waiting } ? true : nil
            }
            #expect(try String(contentsOf: disk, encoding: .utf8) == "precious")
            #expect(try names(folder) == ["disk.img"] && names(folder.deletingLastPathComponent()) == ["inner", "shared.img"])
            let listed = try home.stormy("transfers")
            #expect(listed.output.contains("cannot access the folder that was chosen"), "\(listed)")
        }

        /// Twelve downloads with the same name are requested at the same time. Each queued download gets a file.
        @Test func `concurrent downloads of one name get different file names`() throws {
            for number in 0..<12 {
                server.route("GET", "/\(number)/same", .file(Payload.pattern(1000 + number), etag: "\"v\(number)\""))
            }
            let verb = "'\(Home.product("stormy"))' download '\(server.url)/{}/same' && echo queued"
            let words = "cd '\(folder.path)' && seq 0 11 | xargs -P 12 -I{} sh -c \"\(verb)\""
            let all = try Child.run("/bin/sh", ["-c", words], environment: home.environment)
            let queued = all.output.split(separator: "\n").filter { $0 == "queued" }.count
            try home.wait("all of them") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            #expect(queued > 0)
            let wanted = (0..<queued).map { $0 == 0 ? "same" : "same (\($0))" }
            #expect(try names(folder) == wanted.sorted(), "\(all)")
            let places = try home.rows("transfers").compactMap { $0["file"] as? String }
            #expect(Set(places) == Set(wanted.map { folder.appendingPathComponent($0).path }), "\(places)")
        }

        /// An unfinished download continues at the next login, even if the daily check is off.
        @Test func `an unfinished download keeps a login entry until quit`() throws {
            server.route("GET", "/slow", .cutAfter(100_000, of: Self.file, etag: "\"v1\"", by: .stall))
            #expect(try download(server.url + "/slow").status == 0)
            let entry = home.folder.path + "/config/autostart/background-agent-stormy.desktop"
            #expect(try String(contentsOfFile: entry, encoding: .utf8).contains("\(Home.product("stormy"))\" agent\n"))
            #expect(try home.stormy("unschedule").status == 0)
            #expect(FileManager.default.fileExists(atPath: entry), "the entry is kept, because a download is still queued")
            #expect(try home.stormy("quit").status == 0)
            #expect(!FileManager.default.fileExists(atPath: entry))
        }

        @Test func `a download without a follower ends with a notification`() throws {
            let result = try download(server.url + "/disk.img", "--json")
            let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
            #expect(rows?.first?["kind"] as? String == "download" && rows?.first?["session"] as? String == "StormyDownloads")
            try home.waitForEnded("urlSession")
            #expect(try home.history() == ["urlSession completed"])
            #expect(try Ledger(home.directories).read { try $0.notifications() }.first?.content.title == "Downloaded")
        }

        private func held(_ name: String) {
            server.route(
                "GET", "/\(name)",
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(Self.file.count)", "ETag": "\"v1\""]),
                    .body(Self.file.slice(0..<100_000)), .hold(until: name), .body(Self.file.slice(100_000..<Self.file.count)),
                ]))
        }

        private func follow(_ name: String) throws -> Child {
            try Child(
                Home.product("stormy"),
                ["download", "\(server.url)/\(name)", "-o", folder.appendingPathComponent(name).path, "--wait"],
                environment: home.environment)
        }

        /// A command that follows one download receives only the result of this download.
        @Test mutating func `following one download does not hide the end of another`() throws {
            let desktop = try useDesktop()
            held("slow")
            server.route("GET", "/none", .status(404))
            let follower = try follow("slow")
            try home.wait("its first bytes") { try $0.transfers().first.flatMap { $0.bytesDone > 0 ? true : nil } }
            #expect(try download(server.url + "/none").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Not downloaded"])
            server.openGate("slow")
            #expect(follower.waitForEnd() == 0)
            try home.waitForQuiet()
            #expect(
                try home.history() == ["urlSession completed"], "the transfer that a command followed does not launch the app")
            #expect(try Ledger(home.directories).read { try $0.attachedProcesses() } == [])
        }

        @Test func `concurrent followers each report their own download`() throws {
            let names = (0..<6).map { "same\($0)" }
            for name in names { held(name) }
            let followers = try names.map { try follow($0) }
            try home.wait("all of them") { try $0.transfers().count == names.count ? true : nil }
            for name in names { server.openGate(name) }
            #expect(followers.map { $0.waitForEnd() } == names.map { _ in 0 })
            #expect(try self.names(folder) == names)
            try home.waitForQuiet()
            #expect(try home.history() == [])
        }

        /// The command that follows the download is killed, for example because the user closed the terminal. The user then
        /// receives a notification, as for any other download.
        @Test func `the end of a download is notified if its follower is killed`() throws {
            held("slow")
            let follower = try follow("slow")
            try home.wait("its first bytes") { try $0.transfers().first.flatMap { $0.bytesDone > 0 ? true : nil } }
            follower.end(SIGKILL)
            server.openGate("slow")
            try home.waitForEnded("urlSession")
            #expect(try Ledger(home.directories).read { try $0.notifications() }.first?.content.title == "Downloaded")
        }

        @Test mutating func `a retry that fails again is notified again`() throws {
            let desktop = try useDesktop()
            server.route("GET", "/none", .status(404))
            #expect(try download(server.url + "/none").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            let number = try #require(try home.rows("transfers").first?["id"] as? String)
            #expect(try home.stormy("transfers", "retry", number).status == 0)
            try home.waitForEnded("urlSession", count: 2)
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Not downloaded", "Not downloaded"])
        }

        /// The address must never choose a folder, hide a file, or write control characters to the terminal.
        @Test(arguments: [
            ("/x/%2e%2e%2fevil", "_evil"), ("/..%2F..%2Fevil", "_.._evil"), ("/%2Fetc%2Fevil", "evil"), ("/.bashrc", "bashrc"),
            ("/a%0ab", "a_b"), ("/a%1bb", "a_b"), ("/", "download"), ("/..", "download"), ("/%2e%2e", "download"),
        ])
        func `the address determines only a safe file name`(_ path: String, _ name: String) throws {
            let before = try names(folder.deletingLastPathComponent())
            let result = try download(server.url + path, "--wait")
            #expect(result.status == 0, "\(result)")
            let found = try names(folder)
            #expect(found.count == 1 && !found[0].hasPrefix(".") && !found[0].contains("\n"), "\(found)")
            #expect(found == [name] || path.contains("etc"), "\(found)")
            #expect(try names(folder.deletingLastPathComponent()) == before)
            #expect(try home.rows("transfers").count == 1)
        }

        @Test func `invalid arguments and failed downloads have their exit codes`() throws {
            #expect(try download("ftp://h/x").status == 65)
            #expect(try download(server.url + "/x", "--sha256", "12").status == 64)
            #expect(try download(server.url + "/x", "--limit-rate", "fast").status == 64)
            #expect(try download(server.url + "/x", "-o", "nowhere/x").status == 66)
            #expect(try download(server.url + "/x", "-o", ".").status == 73)
            let pipe = folder.appendingPathComponent("pipe").path
            mkfifo(pipe, 0o600)
            #expect(try download(server.url + "/x", "-o", pipe).status == 73)
            let wrong = String(repeating: "0", count: 64)
            let result = try download(server.url + "/x", "--sha256", wrong, "--wait")
            #expect(result.status == 65 && result.errors.contains("does not match the expected"))
            #expect(try names(folder) == ["pipe"])
            server.route("GET", "/none", .status(404))
            #expect(try download(server.url + "/none", "--wait").status == 69)
        }

        /// The command starts the agent. The agent inherits the proxy variables of the command's environment.
        @Test func `the proxy of the environment is used`() throws {
            server.route("GET", "http*", .file(Self.file, etag: "\"v1\""))
            home.environment["http_proxy"] = server.url
            home.environment["no_proxy"] = "127.0.0.1"
            let result = try download("http://proxied.invalid/disk.img", "--wait")
            #expect(result.status == 0, "\(result)")
            #expect(try Data(contentsOf: folder.appendingPathComponent("disk.img")) == Self.file.data)
            #expect(server.requests().map(\.path) == ["http://proxied.invalid/disk.img"])
            #expect(try download(server.url + "/direct", "--wait").status == 0)
            #expect(server.requests().last?.path == "/direct")
            // If a proxy requires a login, its status 407 counts as a response, and the request is not repeated.
            server.route("GET", "http*", .status(407, headers: ["Proxy-Authenticate": "Basic realm=\"p\""]))
            let refused = try download("http://proxied.invalid/other", "--wait")
            #expect(refused.status == 69 && refused.errors.contains("407"), "\(refused)")
        }

        @Test func `a proxy that refuses the connection to the server is named`() throws {
            home.environment["https_proxy"] = server.url
            home.environment["no_proxy"] = ""
            server.route("CONNECT", "proxied*", .status(407, headers: ["Proxy-Authenticate": "Basic realm=\"p\""]))
            #expect(try download("https://proxied.invalid/secure").status == 0)
            let waiting = try home.wait("the refusal") { try $0.transfers().first { $0.errorMessage != nil } }
            #expect(waiting.errorMessage == "The proxy requires a user name and password (407).")
            // The next attempt may have begun.
            #expect(!waiting.state.isTerminal)
        }

        @Test func `two unfinished downloads cannot have the same destination`() throws {
            server.route("GET", "/slow", .cutAfter(100_000, of: Self.file, etag: "\"v1\"", by: .stall))
            #expect(try download(server.url + "/slow", "-o", "same").status == 0)
            let second = try download(server.url + "/disk.img", "-o", "same")
            #expect(second.status == 73 && second.errors.contains("transfer 1"))
            #expect(try home.stormy("transfers", "cancel", "all").status == 0)
            try home.waitForQuiet()
            #expect(try names(folder).isEmpty, "a cancelled download leaves nothing")
        }

        /// The disk becomes full during a download. The bytes that are already on the disk are kept.
        @Test(.enabled(if: Namespaces.areAllowed, "namespaces are not allowed here"))
        func `a download waits while the disk is full and then resumes`() throws {
            let disk = home.folder.appendingPathComponent("disk")
            try FileManager.default.createDirectory(at: disk, withIntermediateDirectories: true)
            let script = """
                mount -t tmpfs -o size=200k none '\(disk.path)' || exit 9
                '\(Home.product("stormy"))' download '\(server.url)/disk.img' -o '\(disk.path)/x' || exit 8
                for i in $(seq 1200); do
                  '\(Home.product("stormy"))' transfers | grep -q 'No space' && break; sleep 0.1
                done
                '\(Home.product("stormy"))' transfers
                mount -o remount,size=10m '\(disk.path)'
                '\(Home.product("stormy"))' transfers retry 1
                for i in $(seq 1200); do
                  '\(Home.product("stormy"))' transfers | grep -q completed && break; sleep 0.1
                done
                '\(Home.product("stormy"))' transfers; sha256sum '\(disk.path)/x'
                '\(Home.product("stormy"))' quit
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            #expect(result.output.contains("waiting"), "\(result)")
            #expect(result.output.contains(FileDigest.sha256(of: Self.file.data)), "\(result)")
            #expect(result.output.contains("continued at byte"), "\(result)")
        }

        /// An endless response fills the disk, except for the reserve for other programs. The partial file is then deleted.
        /// Another program fills the disk completely. The commands that show transfers, cancel a transfer and quit still work.
        ///
        /// - Parameter size: The size of the disk in MiB.
        @Test(.enabled(if: Namespaces.areAllowed, "namespaces are not allowed here"), arguments: [96, 12])
        func `an endless body leaves free space, and commands work on a full disk`(_ size: Int) throws {
            server.route(
                "GET", "/endless", ResponseScript([.status(200), .headers([:]), .chunked(Payload.pattern(100_000_000))]))
            server.route("GET", "/stuck", .cutAfter(100_000, of: Self.file, etag: "\"v1\"", by: .stall))
            let (tool, state) = (Home.product("stormy"), home.directories.state.path)
            // Stormy's store is on the same disk.
            home.environment["XDG_DATA_HOME"] = state + "/data"
            let script = """
                mkdir -p '\(state)' && mount -t tmpfs -o size=\(size)m,mode=700 none '\(state)' || exit 9
                '\(tool)' download '\(server.url)/endless' -o '\(state)/endless'
                timeout 100 sh -c "until '\(tool)' transfers | grep 'No space left'; do sleep 0.1; done" || echo "the wait for a full disk ended with $?"
                '\(tool)' transfers cancel 1
                # The agent deletes the part after the command has ended.
                timeout 100 sh -c "while ls -A '\(state)' | grep -q endless; do sleep 0.1; done" || echo "the wait for the deletion ended with $?"
                ls -A '\(state)' | grep -c endless
                '\(tool)' download '\(server.url)/stuck' -o '\(folder.path)/stuck'
                timeout 100 sh -c "until ls '\(state)' | grep -q reserve; do sleep 0.1; done" || echo "the wait for a reserve ended with $?"
                dd if=/dev/zero of='\(state)/fill' bs=4k 2>/dev/null
                df --output=avail '\(state)' | tail -1
                for verb in status transfers history why; do '\(tool)' $verb > /dev/null || echo "$verb ended with $?"; done
                '\(tool)' transfers cancel 2 || echo "cancel ended with $?"
                '\(tool)' quit || echo "quit ended with $?"
                # Now nobody has the ledger open.
                dd if=/dev/zero of='\(state)/more' bs=4k 2>/dev/null
                for verb in status transfers history why; do '\(tool)' $verb > /dev/null || echo "$verb ended with $?"; done
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            let lines = result.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            #expect(lines.contains { $0.contains("No space left") }, "\(result)")
            #expect(lines.contains("0"), "no partial file is left, and no space is free: \(result)")
            #expect(!lines.contains { $0.contains("ended with") }, "\(result)")
        }

        /// The agent releases the disk space that it keeps in reserve. If this space is not enough, the agent deletes the
        /// largest inactive partial file, because the bytes of this file can be downloaded again.
        @Test(.enabled(if: Namespaces.areAllowed, "namespaces are not allowed here"))
        func `the largest partial file is deleted if the ledger needs its space`() throws {
            for name in ["small", "large"] {
                let size = name == "small" ? 200_000 : 3_000_000
                server.route(
                    "GET", "/\(name)", .cutAfter(size, of: Payload.pattern(4_000_000), etag: "\"v1\""),
                    .status(503, headers: ["Retry-After": "3600"]))
            }
            let (tool, state) = (Home.product("stormy"), home.directories.state.path)
            home.environment["XDG_DATA_HOME"] = state + "/data"
            let script = """
                mkdir -p '\(state)' && mount -t tmpfs -o size=24m,mode=700 none '\(state)' || exit 9
                for name in small large; do '\(tool)' download "\(server.url)/$name" -o '\(state)'/$name || exit 8; done
                for i in $(seq 1200); do '\(tool)' transfers | grep -c 503 | grep -q 2 && break; sleep 0.1; done
                '\(tool)' transfers
                pid=$('\(tool)' status | sed -n 's/.*running, pid \\([0-9]*\\).*/\\1/p')
                # The kernel releases the lock of a killed process after everything else.
                kill -9 $pid; while STORMY_NO_AGENT=1 '\(tool)' status | grep -q 'running, pid'; do sleep 0.05; done
                # With it, the agent that starts next can write once before the disk is full again.
                rm -f '\(state)/agent.reserve'
                dd if=/dev/zero of='\(state)/fill' bs=4k 2>/dev/null
                '\(Home.product("background-agent"))' --app stormy 2> '\(folder.path)/agent.errors' &
                for i in $(seq 1200); do
                  grep -aq 'was removed to free space' '\(state)/agent.log' '\(folder.path)/agent.errors' && break
                  dd if=/dev/zero of='\(state)/more' bs=1k 2>/dev/null; sleep 0.1
                done
                cat '\(state)/agent.log' '\(folder.path)/agent.errors'
                find '\(state)' -name '*.part' -size +1k
                rm -f '\(state)/fill' '\(state)/more'
                '\(tool)' quit
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            #expect(
                result.output.contains(
                    "was removed to free space for the ledger, and the bytes will be fetched again file=.large."),
                "\(result)")
            #expect(result.output.contains("/.small.") && !result.output.contains("/.large."), "\(result)")
        }
    }
}
