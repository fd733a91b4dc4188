import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests that the end of an upload is reported either in the terminal that waits for the photo, or by a notification.
    @Suite struct FollowedUpload {
        let server: FaultyServer
        let desktop: Desktop
        let home: Home

        init() async throws {
            (server, desktop) = (try await FaultyServer.start(), try Desktop())
            home = try Home(
                desktop: desktop,
                extra: """
                    [upload]
                    default = "held"
                    [upload.destinations.held]
                    kind = "put"
                    url = "\(server.url)/held/"
                    [upload.destinations.open]
                    kind = "multipart"
                    url = "\(server.url)/open"
                    field = "photo"
                    """)
            server.route("PUT", "/held/*", ResponseScript([.hold(until: "held"), .status(403)]))
            desktop.countsEveryShowing = true
            server.route("POST", "/open", .status(200))
        }

        private func photo(_ name: String) throws -> String {
            let photo = home.folder.appendingPathComponent(name)
            try (JPEG.withoutPosition + Data(name.utf8)).write(to: photo)
            return photo.path
        }

        private func follow(_ photo: String) throws -> Child {
            let follower = try Child(Home.product("stormy"), ["upload", "--wait", photo], environment: home.environment)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            return follower
        }

        /// Stops the process at a time when it does not write to the ledger, because a stopped writer would block all other
        /// writers.
        private func stop(_ follower: Child) throws {
            let ledger = try Ledger(home.directories)
            for _ in 0..<20 {
                kill(follower.pid, SIGSTOP)
                if (try? ledger.write { _ in }) != nil { return }
                kill(follower.pid, SIGCONT)
            }
            throw Desktop.Trouble("the terminal writes on and on")
        }

        @Test func `a failure is reported only in the terminal that waits`() throws {
            let follower = try follow(photo("a.jpg"))
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForQuiet()
            #expect(try home.history() == [])
            #expect(try desktop.receivedTitles() == [])
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["failed"])
        }

        /// SIGHUP, SIGINT or SIGKILL ends the command.
        @Test(arguments: [SIGHUP, SIGINT, SIGKILL])
        func `a failure is notified if the waiting command was ended before`(_ signal: Int32) throws {
            let follower = try follow(photo("a.jpg"))
            follower.end(signal)
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Photo not uploaded"])
        }

        /// The command waits until the upload has ended, but its output cannot be written.
        @Test(arguments: ["2>/dev/full", "2>&-", "2>&1 | true"])
        func `failures are notified if the terminal output cannot be written`(_ redirection: String) throws {
            server.openGate("held")
            let words = "'\(Home.product("stormy"))' upload --wait '\(try photo("a.jpg"))' '\(try photo("b.jpg"))' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            _ = desktop.listen(for: 1)
            try home.waitForNoticesRemembered()
            let heard = try desktop.receivedTitles()
            #expect(heard.last == "2 photos not uploaded", "\(heard)")
            let body = try home.rows("transfers").map { $0["state"] as? String }
            #expect(body == ["failed", "failed"])
        }

        /// The uploads succeed, but the output of the command cannot be written.
        @Test(arguments: [">/dev/full 2>&1", ">&- 2>&-", "| head -c0"])
        func `successes are notified once if the terminal output cannot be written`(_ redirection: String) throws {
            let words =
                "'\(Home.product("stormy"))' upload --to open --wait '\(try photo("a.jpg"))' '\(try photo("b.jpg"))' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            let last = try lastReceivedTitle("2 photos uploaded")
            #expect(last == "2 photos uploaded")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles().last == last, "once")
        }

        /// Reads the bus until a notification with the given title arrives or the time is up. Returns the title of the last
        /// notification.
        private func lastReceivedTitle(_ title: String) throws -> String? {
            var count = 1
            while desktop.listen(for: count).count == count, desktop.listen(for: count).last != title { count += 1 }
            return desktop.listen(for: count).last
        }

        /// The command waits because its output pipe is full, and is killed later. A success counts as reported only after the
        /// output was written.
        @Test func `a success is notified if the output of a killed command was blocked`() throws {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting.fileDescriptor
            let flags = fcntl(output, F_GETFL)
            _ = fcntl(output, F_SETFL, flags | O_NONBLOCK)
            while write(output, [UInt8](repeating: 0, count: 4096), 4096) > 0 {}
            _ = fcntl(output, F_SETFL, flags)
            let follower = try Child(
                Home.product("stormy"), ["upload", "--to", "open", "--wait", try photo("a.jpg")], environment: home.environment,
                output: output)
            try home.wait("its end") { try $0.transfers().contains { $0.state == .completed } ? true : nil }
            #expect(try desktop.receivedTitles() == [])
            follower.end(SIGKILL)
            #expect(desktop.listen(for: 1) == ["Photo uploaded"])
        }

        @Test(arguments: [(">/dev/full 2>&1", "none"), (">&- 2>&-", "none"), (">&- 2>&-", "open"), ("| head -c0", "open")])
        func `a download is notified once if its output cannot be written`(_ redirection: String, _ path: String) throws {
            server.route("GET", "/none", .status(404))
            server.route("GET", "/open", .file(Payload.pattern(1000)))
            let words =
                "'\(Home.product("stormy"))' download --wait '\(server.url)/\(path)' -o '\(home.folder.path)/d' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            #expect(desktop.listen(for: 1) == [path == "none" ? "Not downloaded" : "Downloaded"])
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles().count == 1, "once")
        }

        /// The command printed the first failure before the terminal was closed.
        @Test func `a failure is printed while other photos are still uploading`() throws {
            server.route("PUT", "/held/1.jpg", .status(403))
            let pipe = home.folder.appendingPathComponent("said").path
            #expect(mkfifo(pipe, 0o600) == 0)
            let words =
                "exec '\(Home.product("stormy"))' upload --wait '\(try photo("1.jpg"))' '\(try photo("2.jpg"))' 2> '\(pipe)'"
            let follower = try Child("sh", ["-c", words], environment: home.environment)
            let reader = LineReader(open(pipe, O_RDONLY))
            var lines: [String] = []
            while lines.last?.contains("1.jpg: failed") != true, let line = reader.next(within: 240) { lines.append(line) }
            #expect(lines.last?.contains("1.jpg: failed") == true, "\(lines)")
            follower.end(SIGHUP)
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            // If the command was printing a failure when the terminal was closed, the failure may also appear in a notification.
            let heard = try desktop.receivedTitles()
            #expect(["Photo not uploaded", "2 photos not uploaded"].contains(heard.last), "\(heard)")
        }

        /// Starts a command that follows an upload. The server temporarily rejects this upload. Returns the command, and the
        /// lines that the command printed before it began to wait.
        private func followWaitingUpload() throws -> (follower: Child, reader: LineReader, lines: [String]) {
            server.route("PUT", "/held/*", .status(503))
            let pipe = home.folder.appendingPathComponent("said").path
            #expect(mkfifo(pipe, 0o600) == 0)
            let words = "exec '\(Home.product("stormy"))' upload --wait '\(try photo("a.jpg"))' 2> '\(pipe)'"
            let follower = try Child("sh", ["-c", words], environment: home.environment)
            let reader = LineReader(open(pipe, O_RDONLY))
            var lines: [String] = []
            while lines.last?.hasPrefix("waiting:") != true, let line = reader.next(within: 240) { lines.append(line) }
            return (follower, reader, lines)
        }

        @Test func `Ctrl-C while a command waits for an upload prints that the upload continues and how to stop it`() throws {
            var (follower, reader, lines) = try followWaitingUpload()
            kill(follower.pid, SIGINT)
            while let line = reader.next(within: 240) { lines.append(line) }
            #expect(
                lines.last == "Transfer 1 continues in the background. To stop the transfer: stormy transfers cancel 1",
                "\(lines)")
            #expect(follower.waitForEnd() == 128 + SIGINT)
            let cancelled = try home.stormy("transfers", "cancel", "1")
            #expect(cancelled.status == 0 && cancelled.errors.contains("Cancelled 1 transfer."), "\(cancelled)")
        }

        @Test func `a command that waits for a paused upload prints how to resume it`() throws {
            var (follower, reader, lines) = try followWaitingUpload()
            #expect(try home.stormy("transfers", "pause", "1").status == 0)
            while let line = reader.next(within: 240) { lines.append(line) }
            #expect(lines.last?.hasSuffix("paused: stormy transfers resume 1 continues the upload") == true, "\(lines)")
            #expect(follower.waitForEnd() == 75)
        }

        /// A photo has two file names, and each of two terminals uploads one of these files. Both terminals wait for the end of
        /// the same upload.
        @Test func `two terminals can wait for one photo`() throws {
            let one = try photo("a.jpg")
            let other = home.folder.appendingPathComponent("b.jpg").path
            try FileManager.default.copyItem(atPath: one, toPath: other)
            let first = try follow(one)
            let pipe = home.folder.appendingPathComponent("said").path
            #expect(mkfifo(pipe, 0o600) == 0)
            let second = try Child(
                "sh", ["-c", "exec '\(Home.product("stormy"))' upload --wait '\(other)' 2> '\(pipe)'"],
                environment: home.environment)
            // If the upload failed before the second command followed it, the second command would send the photo again.
            let reader = LineReader(open(pipe, O_RDONLY))
            let line = reader.next(within: 240)
            #expect(line?.contains("is already queued") == true, "\(line ?? "")")
            server.openGate("held")
            #expect([first, second].map { $0.waitForEnd() } == [69, 69])
            extendLifetime(reader)
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["failed"])
        }

        /// The app was launched because of another photo. The command in the stopped terminal still reports the result of
        /// the photo that the command uploads.
        @Test func `a stopped terminal reports the end when it is continued`() throws {
            let follower = try follow(photo("a.jpg"))
            try stop(follower)
            server.openGate("held")
            try home.wait("its end") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            kill(follower.pid, SIGCONT)
            #expect(follower.waitForEnd() == 69)
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles().last == "Photo uploaded")
        }

        /// The terminal was stopped when the upload ended, and was killed while no agent was running.
        @Test func `the next agent notifies an end that a killed terminal did not report`() throws {
            let follower = try follow(photo("a.jpg"))
            try stop(follower)
            server.openGate("held")
            try home.wait("its end") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            try home.killAgent()
            follower.end(SIGKILL)
            // Each command checks whether an agent is needed.
            try home.stormy("transfers")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Photo not uploaded"])
        }

        /// The notification of a failure stays on the screen next to the notification of a later success.
        @Test func `a failure notification stays until its transfer is retried`() throws {
            server.route("POST", "/open", .status(403))
            #expect(try home.stormy("upload", photo("a.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            server.route("POST", "/open", .status(200))
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession", count: 2)
            try home.waitForNoticesRemembered()
            func shown() throws -> [String] {
                try Ledger(home.directories).read { try $0.notifications() }.filter { $0.state == .delivered }.map(
                    \.content.title)
            }
            #expect(try shown().sorted() == ["Photo not uploaded", "Photo uploaded"])
            // If another transfer is retried, this notification is not removed.
            server.route("GET", "/gone.bin", .status(404))
            try home.stormy("download", server.url + "/gone.bin", "-o", home.folder.path + "/gone.bin")
            try home.waitForEnded("urlSession", count: 3)
            #expect(try home.stormy("transfers", "retry", "3").errors.contains("1 transfer"))
            try home.waitForEnded("urlSession", count: 4)
            #expect(try shown().contains("Photo not uploaded"))
            try home.stormy("transfers", "retry", "1")
            try home.waitForEnded("urlSession", count: 5)
            try home.waitForNoticesRemembered()
            #expect(try shown().filter { $0.contains("hoto") } == ["Photo uploaded"])
        }

        /// The photos of a waiting command also belong to the batch. If these photos are uploaded last, the batch ends with
        /// them.
        @Test func `a batch ends when the photo of a waiting terminal ends`() throws {
            let follower = try follow(photo("a.jpg"))
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Uploading photos", "Photo uploaded"])
        }

        /// The uploads of the two photos end one after the other, and their notifications have the same title. If the upload
        /// of a photo is retried, the user is notified of its result again.
        @Test func `two photos of one name are each notified, and so is a retry`() throws {
            server.openGate("held")
            for folder in ["1", "2"] {
                try FileManager.default.createDirectory(
                    at: home.folder.appendingPathComponent(folder), withIntermediateDirectories: true)
                #expect(try home.stormy("upload", photo("\(folder)/a.jpg"), "--to", "open").status == 0)
                try home.waitForEnded("urlSession", count: Int(folder)!)
                try home.waitForNoticesRemembered()
            }
            #expect(try desktop.receivedTitles() == ["Photo uploaded", "Photo uploaded"])
            #expect(try home.stormy("upload", photo("3.jpg")).status == 0)
            try home.waitForEnded("urlSession", count: 3)
            try home.waitForNoticesRemembered()
            #expect(try home.stormy("transfers", "retry", "3").status == 0)
            try home.waitForEnded("urlSession", count: 4)
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles().suffix(2) == ["Photo not uploaded", "Photo not uploaded"])
        }

        /// While a photo waits, the store is lost or restored from a backup.
        @Test(arguments: [false, true])
        func `the end of an upload is notified if the store does not know the photo`(_ isFromBackup: Bool) throws {
            let store = home.folder.appendingPathComponent("data/stormy")
            let backup = home.folder.appendingPathComponent("backup")
            #expect(try home.stormy("place", "list").status == 0)
            try FileManager.default.copyItem(at: store, to: backup)
            #expect(try home.stormy("upload", photo("a.jpg")).status == 0)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            try FileManager.default.removeItem(at: store)
            if isFromBackup { try FileManager.default.moveItem(at: backup, to: store) }
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Photo not uploaded"])
        }

        /// If a photo of the batch is paused, the batch ends without this photo.
        @Test func `a paused photo does not keep its batch open`() throws {
            #expect(try home.stormy("upload", photo("a.jpg")).status == 0)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Uploading photos"])
            #expect(try home.stormy("transfers", "pause", "1").status == 0)
            try home.waitForNoticesRemembered()
            #expect(try desktop.receivedTitles() == ["Uploading photos", "Photo uploaded"])
        }
    }
}
