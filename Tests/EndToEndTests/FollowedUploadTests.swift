import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Who hears how photos ended: the terminal that waits for them, or the desktop.
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

        /// Not while it writes: it would hold up everybody.
        private func stop(_ follower: Child) throws {
            let ledger = try Ledger(home.directories)
            for _ in 0..<20 {
                kill(follower.pid, SIGSTOP)
                if (try? ledger.write { _ in }) != nil { return }
                kill(follower.pid, SIGCONT)
            }
            throw Desktop.Trouble("the terminal writes on and on")
        }

        @Test func aTerminalThatWaitsHearsItAlone() throws {
            let follower = try follow(photo("a.jpg"))
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForQuiet()
            #expect(try home.history() == [])
            #expect(try desktop.heardSoFar() == [])
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["failed"])
        }

        /// Closed while it waits, or killed: what failed then is told by notification.
        @Test(arguments: [SIGHUP, SIGINT, SIGKILL]) func aTerminalThatIsGoneHearsNothing(_ signal: Int32) throws {
            let follower = try follow(photo("a.jpg"))
            follower.end(signal)
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Photo not uploaded"])
        }

        /// It waits to the end, and nobody can read what it says.
        @Test(arguments: ["2>/dev/full", "2>&-", "2>&1 | true"]) func aTerminalThatTakesNothing(_ redirection: String) throws {
            server.openGate("held")
            let words = "'\(Home.product("stormy"))' upload --wait '\(try photo("a.jpg"))' '\(try photo("b.jpg"))' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            _ = desktop.listen(for: 1)
            try home.waitForNoticesRemembered()
            let heard = try desktop.heardSoFar()
            #expect(heard.last == "2 photos not uploaded", "\(heard)")
            let body = try home.rows("transfers").map { $0["state"] as? String }
            #expect(body == ["failed", "failed"])
        }

        /// All is well, and nobody can read that either.
        @Test(arguments: [">/dev/full 2>&1", ">&- 2>&-", "| head -c0"])
        func aTerminalThatTakesNoGoodNews(_ redirection: String) throws {
            let words =
                "'\(Home.product("stormy"))' upload --to open --wait '\(try photo("a.jpg"))' '\(try photo("b.jpg"))' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            let last = try lastHeard("2 photos uploaded")
            #expect(last == "2 photos uploaded")
            try home.waitForQuiet()
            #expect(try desktop.heardSoFar().last == last, "once")
        }

        /// Up to it, or to the end of patience.
        private func lastHeard(_ title: String) throws -> String? {
            var count = 1
            while desktop.listen(for: count).count == count, desktop.listen(for: count).last != title { count += 1 }
            return desktop.listen(for: count).last
        }

        /// A terminal that was stopped, and one that is closed later: good news do not count as told before it takes something.
        @Test func aTerminalThatWasStoppedHasHeardNothing() throws {
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
            #expect(try desktop.heardSoFar() == [])
            follower.end(SIGKILL)
            #expect(desktop.listen(for: 1) == ["Photo uploaded"])
        }

        @Test(arguments: [(">/dev/full 2>&1", "none"), (">&- 2>&-", "none"), (">&- 2>&-", "open"), ("| head -c0", "open")])
        func aTerminalThatTakesNothingOfADownload(_ redirection: String, _ path: String) throws {
            server.route("GET", "/none", .status(404))
            server.route("GET", "/open", .file(Payload.pattern(1000)))
            let words =
                "'\(Home.product("stormy"))' download --wait '\(server.url)/\(path)' -o '\(home.folder.path)/d' \(redirection)"
            _ = try Child.run("sh", ["-c", words], environment: home.environment)
            #expect(desktop.listen(for: 1) == [path == "none" ? "Not downloaded" : "Downloaded"])
            try home.waitForQuiet()
            #expect(try desktop.heardSoFar().count == 1, "once")
        }

        /// What ended while it waited was said there, before it was closed.
        @Test func whatEndedIsSaidAtOnce() throws {
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
            // What was being said when it was closed may be told on the desktop, too.
            let heard = try desktop.heardSoFar()
            #expect(["Photo not uploaded", "2 photos not uploaded"].contains(heard.last), "\(heard)")
        }

        /// A command that follows an upload which the server refuses for now, with what it printed until it waits.
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
                lines.last == "Transfer 1 continues in the background. To stop it: stormy transfers cancel 1", "\(lines)")
            #expect(follower.waitForEnd() == 128 + SIGINT)
            let cancelled = try home.stormy("transfers", "cancel", "1")
            #expect(cancelled.status == 0 && cancelled.errors.contains("cancel: 1 transfer"), "\(cancelled)")
        }

        @Test func `a command that waits for a paused upload prints how to resume it`() throws {
            var (follower, reader, lines) = try followWaitingUpload()
            #expect(try home.stormy("transfers", "pause", "1").status == 0)
            while let line = reader.next(within: 240) { lines.append(line) }
            #expect(lines.last?.hasSuffix("paused: stormy transfers resume 1 continues it") == true, "\(lines)")
            #expect(follower.waitForEnd() == 75)
        }

        /// One photo under two names, and two terminals that wait for it: both come to their end.
        @Test func twoTerminalsMayWaitForOnePhoto() throws {
            let one = try photo("a.jpg")
            let other = home.folder.appendingPathComponent("b.jpg").path
            try FileManager.default.copyItem(atPath: one, toPath: other)
            let first = try follow(one)
            let pipe = home.folder.appendingPathComponent("said").path
            #expect(mkfifo(pipe, 0o600) == 0)
            let second = try Child(
                "sh", ["-c", "exec '\(Home.product("stormy"))' upload --wait '\(other)' 2> '\(pipe)'"],
                environment: home.environment)
            // Failed before it has joined, the photo would be sent a second time.
            let reader = LineReader(open(pipe, O_RDONLY))
            let line = reader.next(within: 240)
            #expect(line?.contains("is on its way already") == true, "\(line ?? "")")
            server.openGate("held")
            #expect([first, second].map { $0.waitForEnd() } == [69, 69])
            extendLifetime(reader)
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["failed"])
        }

        /// A stopped terminal keeps its end, also where the app is launched for another's.
        @Test func aStoppedTerminalHearsItLater() throws {
            let follower = try follow(photo("a.jpg"))
            try stop(follower)
            server.openGate("held")
            try home.wait("its end") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            kill(follower.pid, SIGCONT)
            #expect(follower.waitForEnd() == 69)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar().last == "Photo uploaded")
        }

        /// A terminal that was stopped over its end, and killed when no agent ran: the next agent tells it.
        @Test func theEndOfADeadTerminalIsWork() throws {
            let follower = try follow(photo("a.jpg"))
            try stop(follower)
            server.openGate("held")
            try home.wait("its end") { try $0.unfinishedTransfers().isEmpty ? true : nil }
            try home.killAgent()
            follower.end(SIGKILL)
            // Any verb looks whether an agent is needed.
            try home.stormy("transfers")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Photo not uploaded"])
        }

        /// What failed stays on the screen beside what ended well after it, until the person acts.
        @Test func aFailureIsReplacedByNothing() throws {
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
            // Another failure is tried again: this one is as it was.
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

        /// Those of one that waits count for the others, and their end is the end of the batch.
        @Test func theLastOfABatchMayBeATerminals() throws {
            let follower = try follow(photo("a.jpg"))
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos", "Photo uploaded"])
        }

        /// Two photos of one name that end in the same words are two ends: one after the other, and one that a person held back.
        @Test func sameWordsOfAnotherPhotoAreToldToo() throws {
            server.openGate("held")
            for folder in ["1", "2"] {
                try FileManager.default.createDirectory(
                    at: home.folder.appendingPathComponent(folder), withIntermediateDirectories: true)
                #expect(try home.stormy("upload", photo("\(folder)/a.jpg"), "--to", "open").status == 0)
                try home.waitForEnded("urlSession", count: Int(folder)!)
                try home.waitForNoticesRemembered()
            }
            #expect(try desktop.heardSoFar() == ["Photo uploaded", "Photo uploaded"])
            #expect(try home.stormy("upload", photo("3.jpg")).status == 0)
            try home.waitForEnded("urlSession", count: 3)
            try home.waitForNoticesRemembered()
            #expect(try home.stormy("transfers", "retry", "3").status == 0)
            try home.waitForEnded("urlSession", count: 4)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar().suffix(2) == ["Photo not uploaded", "Photo not uploaded"])
        }

        /// The store is gone, or from a backup, while a photo waits: how that ends is told all the same.
        @Test(arguments: [false, true]) func aPhotoThatNobodyRemembersIsToldOf(_ isFromBackup: Bool) throws {
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
            #expect(try desktop.heardSoFar() == ["Photo not uploaded"])
        }

        /// A person who pauses one does not wait for it: the others are told as whole.
        @Test func aPausedPhotoKeepsNoBatchOpen() throws {
            #expect(try home.stormy("upload", photo("a.jpg")).status == 0)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos"])
            #expect(try home.stormy("transfers", "pause", "1").status == 0)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos", "Photo uploaded"])
        }
    }
}
