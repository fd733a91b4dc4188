import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import ProcessSupport
import StormyFixtures
import Testing

extension EndToEnd {
    @Suite struct Upload {
        private static func destination(_ url: String) -> String {
            "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(url)\"\n"
        }

        private static func makePhotos(_ count: Int, in folder: URL, size: Int = 300_000) throws -> [String: String] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var digests: [String: String] = [:]
            for index in 0..<count {
                var generator = SystemRandomNumberGenerator()
                let bytes =
                    JPEG.withoutPosition
                    + Data((0..<size / 8).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } })
                let name = "IMG \(index) ü#?.jpg"
                try bytes.write(to: folder.appendingPathComponent(name))
                digests[name] = FileDigest.sha256(of: bytes)
            }
            return digests
        }

        private static func digests(in folder: URL) throws -> [String: String] {
            var found: [String: String] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                found[name] = try FileDigest.sha256(of: folder.appendingPathComponent(name)).digest
            }
            return found
        }

        /// Root can read all files. If root runs this test, the command runs in a user namespace that does not contain root's
        /// user ID.
        @Test func `photos that cannot be read make the upload of a folder fail`() throws {
            let home = try Home(extra: Self.destination("http://127.0.0.1:1/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let card = home.folder.appendingPathComponent("card")
            try FileManager.default.createDirectory(
                at: card.appendingPathComponent("private"), withIntermediateDirectories: true)
            let names = ["a.jpg", "b.jpg"]
            for name in names { try JPEG.withoutPosition.write(to: card.appendingPathComponent(name)) }
            chmod(card.appendingPathComponent("b.jpg").path, 0)
            chmod(card.appendingPathComponent("private").path, 0)
            func upload(_ arguments: String...) throws -> Child.Result {
                try Child.run("unshare", ["-U", Home.product("stormy"), "upload"] + arguments, environment: home.environment)
            }
            let result = try upload("--recursive", card.path)
            // If a pattern is in quotes, the shell does not expand it.
            for pattern in ["/*/*.jpg", "/*/DCIM/*.jpg"] {
                let matched = try upload(card.path + pattern)
                #expect(matched.status == 74 && matched.errors.contains("cannot be read: Permission denied"), "\(matched)")
                #expect(matched.errors.contains("\(card.path)/private"), "\(matched)")
            }
            chmod(card.appendingPathComponent("private").path, 0o700)
            #expect(result.status == 74, "\(result)")
            #expect(result.output.contains("Queued 1 photo"), "\(result)")
            #expect(result.errors.contains("b.jpg: cannot be read: Permission denied"), "\(result)")
            #expect(result.errors.contains("private: cannot be read: Permission denied"), "\(result)")
        }

        /// In an earlier version, a copy that could not be opened counted as missing, and 290 of 300 photos failed.
        @Test func `photos wait while the agent can open no more files`() throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(60, in: source, size: 1_000)
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.stormy("upload", "--recursive", source.path).status == 0)
            let limited = try home.startAgent(openFiles: 26)
            try home.wait("a photo that waits for the disk") { transaction in
                try transaction.transfers().contains { $0.errorMessage?.contains("Too many open files") ?? false } ? true : nil
            }
            #expect(try home.rows("transfers").allSatisfy { $0["state"] as? String != "failed" })
            limited.end(SIGKILL)
            _ = limited.waitForEnd()
            home.environment["STORMY_NO_AGENT"] = nil
            #expect(try home.stormy("transfers", "retry", "all").status == 0)
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
        }

        @Test(arguments: [12, 18, 24])
        func `an agent that starts with few descriptors waits, reports why, and ends when asked`(_ openFiles: Int) throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            let limited = try home.startAgent(openFiles: openFiles)
            try home.wait("the reason") { _ in
                AgentTrouble.read(home.directories)?.reason.contains("Too many open files") == true ? true : nil
            }
            limited.end()
            #expect(limited.waitForEnd() == 74)
        }

        /// The command is interrupted while it computes the digest of a file of 50 GB. The computation takes many seconds.
        @Test(arguments: [SIGTERM, SIGINT, SIGKILL])
        func `an upload that is ended while it copies leaves no copy`(_ signal: Int32) throws {
            let home = try Home(extra: Self.destination("http://127.0.0.1:1/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let photo = home.folder.appendingPathComponent("sparse.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(truncate(photo.path, 50 << 30) == 0)
            let upload = try Child(Home.product("stormy"), ["upload", photo.path], environment: home.environment)
            let spool = home.directories.spool.path
            let files = URL(fileURLWithPath: "/proc/\(upload.pid)/fd")
            try home.wait("the copy") { _ in
                let names = (try? FileManager.default.contentsOfDirectory(atPath: files.path)) ?? []
                let open = names.compactMap {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: files.appendingPathComponent($0).path)
                }
                return open.contains { $0.hasPrefix(spool + "/") } ? true : nil
            }
            upload.end(signal)
            #expect(upload.waitForEnd() == 128 + signal)
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool) == [])
        }

        @Test func `twenty photos are uploaded if the agent is killed half-way`() throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(20, in: source)
            let files = wanted.keys.sorted().map { source.appendingPathComponent($0).path }
            home.environment["STORMY_NO_AGENT"] = "1"
            let queued = try home.run("stormy", ["upload"] + files)
            #expect(queued.status == 0, "\(queued.errors)")
            // The agent is killed before the tenth photo gets its name on the server. While the tenth photo gets its name, other
            // photos are being sent.
            try home.startAgent(["BACKGROUND_CRASH_AT": "agent.upload.move:10"]).waitForEnd()
            let arrived = try Self.digests(in: nginx.photos).filter { wanted[$0.key] != nil }
            #expect((1...19).contains(arrived.count))
            home.environment["STORMY_NO_AGENT"] = nil
            #expect(try home.stormy("status").status == 0)
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
            let rows = try home.rows("transfers")
            #expect(rows.count == 20)
            #expect(
                rows.allSatisfy {
                    $0["state"] as? String == "completed" && $0["sha256"] as? String == $0["sourceSha256"] as? String
                })
        }

        @Test(arguments: [
            "agent.upload.chooseName", "agent.upload.put", "agent.upload.check", "agent.upload.move", "agent.transferEnded:4",
        ])
        func `a photo is uploaded if the agent is killed at any step`(_ point: String) throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx.url + "photos/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(1, in: source)
            try home.stormy("upload", source.appendingPathComponent(wanted.keys.first!).path)
            try home.startAgent(["BACKGROUND_CRASH_AT": point]).waitForEnd()
            let agent = try home.startAgent()
            defer { agent.end() }
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
        }

        /// The files of the ledger. The user may move these files away, or restore them from a backup.
        private static func ledgerFiles(_ home: Home) -> [URL] {
            ["", "-wal", "-shm"].map { home.directories.state.appendingPathComponent("agent.sqlite" + $0) }
                .filter { FileManager.default.fileExists(atPath: $0.path) }
        }

        /// If the ledger does not contain a photo, the photo is queued again, from its copy in the spool or from its file.
        @Test(arguments: [false, true]) func `photos are queued again after the ledger is lost`(_ isFromBackup: Bool) throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx.url + "photos/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Hobart", "-42.9,147.3", "--no-sync")
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(3, in: source)
            let files = wanted.keys.sorted().map { source.appendingPathComponent($0) }
            let first = isFromBackup ? 1 : 3
            #expect(try home.stormy(["upload"] + files.prefix(first).map(\.path)).status == 0)
            #expect(try home.stormy("schedule").status == 0)
            let backup = home.folder.appendingPathComponent("backup")
            if isFromBackup {
                try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: false)
                for file in Self.ledgerFiles(home) {
                    try FileManager.default.copyItem(at: file, to: backup.appendingPathComponent(file.lastPathComponent))
                }
                #expect(try home.stormy(["upload"] + files.dropFirst().map(\.path)).status == 0)
            }
            for file in Self.ledgerFiles(home) { try FileManager.default.removeItem(at: file) }
            if isFromBackup {
                for name in try FileManager.default.contentsOfDirectory(atPath: backup.path) {
                    try FileManager.default.copyItem(
                        at: backup.appendingPathComponent(name), to: home.directories.state.appendingPathComponent(name))
                }
            }
            // The user's file and the agent's copy of the first photo exist. Only the file of the second photo exists, and
            // only the copy of the third photo.
            let copies = try Self.digests(in: home.directories.spool)
            try FileManager.default.removeItem(at: files[2])
            for (name, digest) in copies where digest == wanted[files[1].lastPathComponent] {
                try FileManager.default.removeItem(at: home.directories.spool.appendingPathComponent(name))
            }
            home.environment["STORMY_NO_AGENT"] = nil
            let said = try home.stormy("transfers")
            #expect(said.status == 0, "\(said)")
            #expect(said.errors.contains("\(isFromBackup ? 2 : 3) photos queued again"), "\(said)")
            if !isFromBackup { #expect(said.errors.contains("the daily check was scheduled again"), "\(said)") }
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
            #expect(try Set(home.rows("transfers").compactMap { $0["file"] as? String }) == Set(files.map(\.path)))
            // The photos were queued again by the first command only.
            #expect(try home.stormy("transfers").errors == "")
            #expect(BackgroundLeft.names(home) == [])
            #expect(try home.stormy("upload", files[0].path).errors.contains("is already uploaded"))
        }

        private enum BackgroundLeft {
            static func names(_ home: Home) -> [String] {
                (try? FileManager.default.contentsOfDirectory(atPath: home.directories.leftCopies.path)) ?? []
            }
        }

        /// The password of the destination cannot be read at this time. The photo waits, and is not sent to the default
        /// destination.
        @Test func `after a lost ledger a photo waits for its destination`() throws {
            let nginx = try Nginx()
            let password = FileManager.default.temporaryDirectory.appendingPathComponent("password-" + UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: password) }
            let home = try Home(
                extra: """
                    [upload]
                    default = "public"
                    [upload.destinations.public]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    [upload.destinations.private]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    user = "me"
                    password_file = "\(password.path)"
                    """)
            try Data("secret".utf8).write(to: password)
            chmod(password.path, 0o600)
            home.environment["STORMY_NO_AGENT"] = "1"
            let wanted = try Self.makePhotos(1, in: home.folder.appendingPathComponent("camera"))
            let file = home.folder.appendingPathComponent("camera/" + wanted.keys.first!)
            #expect(try home.stormy("upload", file.path, "--to", "private", "--keep-location").status == 0)
            for file in Self.ledgerFiles(home) { try FileManager.default.removeItem(at: file) }
            let away = home.folder.appendingPathComponent("away")
            try FileManager.default.moveItem(at: password, to: away)
            home.environment["STORMY_NO_AGENT"] = nil
            let said = try home.stormy("transfers")
            #expect(
                said.errors.contains(
                    "1 photo for \"private \(nginx.url)photos/ webdav as me\" not sent yet, because the destination was changed or removed"
                ),
                "\(said)")
            #expect(try home.rows("transfers").isEmpty)
            #expect(
                try Ledger(home.directories).read { try $0.notifications() }.map(\.content.title) == [
                    "Photos wait for their destination"
                ])
            try FileManager.default.moveItem(at: away, to: password)
            #expect(try home.stormy("transfers").errors.contains("1 photo queued again"))
            try home.wait("the photo") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            #expect(try Self.digests(in: nginx.photos) == wanted)
        }

        /// After the photo was queued again, it still waits for external power.
        @Test func `after a lost ledger a photo still waits for power`() throws {
            let home = try Home(extra: Self.destination("http://127.0.0.1:1/photos/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let source = home.folder.appendingPathComponent("camera")
            let names = try Self.makePhotos(2, in: source).keys.sorted()
            let files = names.map { source.appendingPathComponent($0).path }
            #expect(try home.stormy("upload", files[0], files[1], "--when", "charging").status == 0)
            #expect(try home.stormy("upload", files[1]).status == 0)
            for file in Self.ledgerFiles(home) { try FileManager.default.removeItem(at: file) }
            #expect(try home.stormy("transfers").errors.contains("2 photos queued again"))
            let states = try home.rows("transfers").reduce(into: [:]) { $0[$1["file"] as? String] = $1["state"] as? String }
            #expect(states == [files[0]: "held", files[1]: "queued"])
            #expect(try Ledger(home.directories).read { try $0.requests() }.map(\.identifier) == ["StormyUploads"])
        }

        /// For one photo, both the agent's copy and the user's file are missing. The command reports only once that this photo is
        /// lost.
        @Test func `a photo without file and copy is reported as lost`() throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx.url + "photos/"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(1, in: source)
            let file = source.appendingPathComponent(wanted.keys.first!)
            #expect(try home.stormy("upload", file.path).status == 0)
            for file in Self.ledgerFiles(home) { try FileManager.default.removeItem(at: file) }
            try FileManager.default.removeItem(at: home.directories.spool)
            try FileManager.default.removeItem(at: file)
            let said = try home.stormy("transfers")
            #expect(said.errors.contains("the file and its queued copy are missing"), "\(said)")
            #expect(try Ledger(home.directories).read { try $0.notifications() }.map(\.content.title) == ["A photo is lost"])
            #expect(try home.stormy("transfers").errors == "", "said once")
        }

        /// If a form is being sent at `quit`, it is paused until the user resumes it, like other transfers.
        @Test func `a form upload is paused by quit`() async throws {
            let server = try await FaultyServer.start()
            server.route("POST", "/form", .status(201).after(.hold(until: "never")))
            let home = try Home(extra: "[upload.destinations.home]\nkind = \"multipart\"\nurl = \"\(server.url)/form\"\n")
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", photo.path).status == 0)
            _ = try await server.waitForRequest { $0.path == "/form" }
            #expect(try home.stormy("quit").output.contains("Paused 1 transfer"))
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["paused"])
            #expect(try home.status("agent", "running") as? Bool == false)
            #expect(server.requests(matching: "/form").count == 1)
        }

        /// The command `quit` removed the login entry. The command `resume` creates the login entry again.
        @Test func `a resumed upload has a login entry`() throws {
            let home = try Home(extra: Self.destination("http://127.0.0.1:1/photos/"))
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", photo.path).status == 0)
            #expect(try home.stormy("quit").status == 0)
            let entry = home.folder.path + "/config/autostart/background-agent-stormy.desktop"
            #expect(!FileManager.default.fileExists(atPath: entry))
            #expect(try home.stormy("transfers", "resume", "all").status == 0)
            #expect(FileManager.default.fileExists(atPath: entry))
        }

        /// The user chooses photos after the launch has reached its time limit. The chosen photos are uploaded, and the chooser
        /// opens only once.
        @Test func `photos that are chosen after the launch has ended are uploaded`() async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, budget: 2, extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(4, in: source)
            let asked = home.folder.appendingPathComponent("asked")
            try home.installChooser("echo asked >> '\(asked.path)'; sleep 4; ls -d '\(source.path)'/*")
            try home.pressAddPhoto(on: desktop)
            try home.wait("the photos") {
                try $0.transfers().filter { $0.kind == .upload && $0.state == .completed }.count == 4 ? true : nil
            }
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
            #expect(try String(contentsOf: asked, encoding: .utf8) == "asked\n")
        }

        /// If the window of the killed process stayed open, photos chosen in this window would be lost.
        @Test func `the chooser of a killed launch is closed before the next chooser opens`() async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(1, in: source)
            let first = home.folder.appendingPathComponent("first")
            try home.installChooser(
                "test -s '\(first.path)' && exec ls -d '\(source.path)'/*; echo $$ > '\(first.path)'; exec sleep 600")
            try home.pressAddPhoto(on: desktop)
            let store = home.directories.data.appendingPathComponent("stormy.sqlite").path
            let query = "SELECT value FROM setting WHERE name LIKE 'chooser %'"
            let chooser = try home.wait("the chooser") { _ in
                try Child.run("sqlite3", ["-readonly", store, query], environment: home.environment).output
                    .split(separator: " ").first.flatMap { Int32($0) }.flatMap { ProcessIdentity(pid: $0) }
            }
            // The store contains the chooser's PID before the script of the chooser runs. The test waits for the script's file.
            // If the first script had not written its file, the second window would behave like the first window.
            try home.wait("the window") { _ in (try? Data(contentsOf: first))?.isEmpty == false ? true : nil }
            let app = try home.wait("the launch") { try $0.history(limit: 9).first { $0.kind == .notificationResponse }?.pid }
            kill(app, SIGKILL)
            try home.wait("the photo") {
                try $0.transfers().contains { $0.kind == .upload && $0.state == .completed } ? true : nil
            }
            #expect(!chooser.isAlive)
            #expect(try Self.digests(in: nginx.photos) == wanted)
        }

        /// A stopped process locks the store while the user chooses, for longer than the time limit of the launch.
        @Test func `photos that are chosen while the store is locked are uploaded later`() async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, budget: 2, extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(2, in: source)
            try home.installChooser("ls -d '\(source.path)'/*")
            try home.prepareAddPhoto(on: desktop)
            let holder = try home.stopAWriter(of: "data/stormy/stormy.sqlite")
            try desktop.press("Add photo")
            try home.waitForEnded("notificationResponse")
            holder.end(SIGKILL)
            try home.wait("the photos") {
                try $0.transfers().filter { $0.kind == .upload && $0.state == .completed }.count == 2 ? true : nil
            }
            #expect(try Self.digests(in: nginx.photos) == wanted)
        }

        /// For a short time, the path of the photo contains a loop of symbolic links.
        @Test func `a chosen photo that cannot be read yet is uploaded later, and the user is notified`() async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, budget: 2, extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(1, in: source)
            let link = home.folder.appendingPathComponent("link")
            try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: link.path)
            try home.installChooser("echo '\(link.path)/\(wanted.keys.first!)'")
            try home.pressAddPhoto(on: desktop)
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Photo waits"])
            try FileManager.default.removeItem(at: link)
            try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: source.path)
            #expect(desktop.listen(for: 3).last == "Photo uploaded")
            #expect(try Self.digests(in: nginx.photos) == wanted)
            #expect(try !home.history().contains("notificationResponse killed"))
        }

        /// The photos are on a card that the user removed while the launch copied them.
        @Test func `chosen photos that are missing are named in one notification`() async throws {
            let desktop = try Desktop()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, extra: Self.destination("http://127.0.0.1:1/photos/"))
            try home.installChooser("for number in 1 2 3 4 5; do echo /missing/$number.jpg; done")
            try home.pressAddPhoto(on: desktop)
            try home.waitForEnded("notificationResponse")
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "5 photos not queued"])
            let log = try String(contentsOf: home.directories.agentLog, encoding: .utf8)
            for number in 1...5 { #expect(log.contains("/missing/\(number).jpg"), "\(log)") }
        }

        /// If the chooser fails, this does not count as a cancelled choice.
        @Test(arguments: ["kill -SEGV $$", "exit 127", "echo 'cannot open display: :7' >&2; exit 1"])
        func `a chooser that fails is notified`(_ script: String) async throws {
            let desktop = try Desktop()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, extra: Self.destination("http://127.0.0.1:1/photos/"))
            try home.installChooser(script)
            try home.pressAddPhoto(on: desktop)
            try home.waitForEnded("notificationResponse")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Storm expected in Here", "Add a photo"])
        }

        @Test func `the button uploads the chosen photo`() async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, extra: Self.destination(nginx.url + "photos/"))
            let source = home.folder.appendingPathComponent("camera")
            let wanted = try Self.makePhotos(1, in: source)
            try home.installChooser("echo '\(source.path)/\(wanted.keys.first!)'")
            try home.pressAddPhoto(on: desktop)
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Photo uploaded"])
            try home.waitForQuiet()
            #expect(try Self.digests(in: nginx.photos) == wanted)
            #expect(try home.history() == ["appRefresh completed", "notificationResponse completed", "urlSession completed"])
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.isEmpty)
        }
    }
}
