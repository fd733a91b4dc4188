import BackgroundLedger
import BackgroundTasksTesting
import Foundation
import ProcessSupport
import ServerScripts
import Testing

/// Tests work that cannot continue. The work waits, is shown as waiting, and continues as soon as possible.
@Suite(.timeLimit(.minutes(30))) struct WaitingTests {
    private func play(_ body: @Sendable (VirtualHome, DavStore) async throws -> Void) async throws {
        let destination = "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(VirtualHome.origin)/photos/\"\n"
        try await VirtualHome.play(destination) { home in
            let store = try DavStore(prefix: "/photos")
            home.server.mount(store)
            try await body(home, store)
        }
    }

    /// Writes a file that is not a photo of a known format and that has no location.
    private func photo(_ home: VirtualHome) throws -> URL {
        let file = home.folder.appendingPathComponent("a.jpg")
        try Payload.pattern(2_000_000).data.write(to: file)
        return file
    }

    /// Lets virtual time pass until a transfer waits for its next attempt.
    ///
    /// - Parameter attempts: The transfer must have made more attempts than this number.
    private func waitingTransfer(_ home: VirtualHome, after attempts: Int = -1) async throws -> TransferReport {
        var found: TransferReport?
        for _ in 0..<200 where found == nil {
            try await home.driver.advance(by: .milliseconds(50))
            found = home.driver.ledger.transfers.first { $0.state == .waiting && $0.attempts > attempts }
        }
        return try #require(found, "no transfer waits: \(home.driver.ledger.transfers)")
    }

    // MARK: The agent

    /// The agent writes its problem into its lock file.
    @Test func `commands that show or follow transfers report the problem of the agent once`() async throws {
        try await play { home, store in
            let photo = try photo(home).path
            #expect(try await home.stormy("upload", "--wait", photo).errors.contains("The agent cannot work now") == false)
            let trouble = AgentTrouble(reason: "no space left", since: home.now, nextTry: home.now.addingTimeInterval(60))
            try JSONEncoder().encode(trouble).write(to: home.directories.agentLock)
            let listed = try await home.stormy("transfers")
            #expect(listed.output.contains("\nThe agent cannot work now: no space left. The agent tries again at "), "\(listed)")
            let document = try await home.stormy("transfers", "--json")
            #expect(!document.output.contains("The agent cannot work now"))
            let followed = try await home.stormy("upload", "--again", "--wait", photo)
            #expect(followed.errors.components(separatedBy: "The agent cannot work now: no space left").count == 2, "\(followed)")
            #expect(followed.status == 0)
        }
    }

    @Test func `work waits in the ledger while no agent may start`() async throws {
        try await play { home, store in
            await home.setStartsAgents(false)
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try await home.stormy("schedule")
            let photo = try photo(home)
            #expect(try await home.stormy("upload", photo.path).status == 0)
            #expect(try await home.status("agent", "running") as? Bool == false)
            #expect(try await home.status("transfers", "queued") as? Int == 1)
            let pending = try await home.status()["pending"] as? [[String: Any]]
            #expect(pending?.map { $0["identifier"] as? String } == ["StormyNoon"])
            let simulated = try await home.stormy("simulate", "launch", "StormyNoon")
            #expect(simulated.status == 69)
            #expect(simulated.errors.contains("STORMY_NO_AGENT"))
            try await home.driver.advance(by: .seconds(60))
            #expect(home.server.activity.connectionsAccepted == 0)
            // Commands may start an agent again.
            await home.setStartsAgents(true)
            try await home.stormy("status")
            try await home.driver.advance(by: .seconds(60))
            #expect(store.contents(of: "/a.jpg") == (try Data(contentsOf: photo)))
            #expect(try await home.status("agent", "running") as? Bool == true)
        }
    }

    // MARK: Uploads

    @Test func `a cancelled upload leaves nothing`() async throws {
        try await play { home, store in
            store.stallUploads(afterBytes: 100_000)
            try await home.stormy("upload", try photo(home).path)
            try await home.driver.advance(by: .seconds(5))
            #expect(home.server.requests().contains { $0.method == "PUT" && $0.bodyByteCount > 0 })
            #expect(try await home.stormy("transfers", "cancel", "all").status == 0)
            try await home.driver.advance(by: .seconds(60))
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["cancelled"])
            #expect(store.files.isEmpty)
            #expect(try await home.stormy("transfers", "cancel", "77").status == 66)
            #expect(try await home.stormy("transfers", "cancel").status == 64)
        }
    }

    @Test func `an action without an effect on a named transfer fails`() async throws {
        try await play { home, _ in
            try await home.stormy("upload", "--wait", try photo(home).path)
            let id = try #require(try await home.rows("transfers").first?["id"] as? String)
            for action in ["cancel", "pause", "resume", "retry"] {
                let named = try await home.stormy("transfers", action, id)
                #expect(named.status == 69 && named.errors.contains("\(id) has ended"), "\(named)")
                #expect(try await home.stormy("transfers", action, "all").status == 0)
                let unknown = try await home.stormy("transfers", action, "all", "99")
                #expect(unknown.status == 66 && unknown.errors.contains("no transfer has the id 99"), "\(unknown)")
                #expect(try await home.stormy("transfers", action, "99", id).status == 66)
            }
            // The store numbers its photos independently of the numbers of transfers.
            let sent = try await home.stormy("transfers", "cancel", "photo-1")
            #expect(sent.status == 69 && !sent.errors.contains("only `cancel`"), "\(sent)")
        }
    }

    @Test func `cancelling a transfer twice is not an error`() async throws {
        try await play { home, store in
            store.stallUploads(afterBytes: 100_000)
            try await home.stormy("upload", try photo(home).path)
            let id = try #require(try await home.rows("transfers").first?["id"] as? String)
            for _ in 0..<2 { #expect(try await home.stormy("transfers", "cancel", id).status == 0) }
        }
    }

    @Test func `an upload is retried after a reset and while the server is full`() async throws {
        try await play { home, _ in
            home.server.route("PUT", "/photos/*", ResponseScript([.reset]).begins(.afterBodyBytes(300_000)))
            try await home.stormy("upload", try photo(home).path)
            let waiting = try await waitingTransfer(home)
            #expect(waiting.trouble?.isEmpty == false)
            #expect(try await home.status("transfers", "waiting") as? Int == 1)
            home.server.route("PUT", "/photos/*", .status(507))
            try await home.stormy("transfers", "retry", "all")
            let full = try await waitingTransfer(home, after: waiting.attempts)
            #expect(full.id == waiting.id)
            #expect(full.trouble != waiting.trouble)
            let row = try #require(try await home.rows("transfers").first)
            #expect(row["nextAttemptAt"] as? String != nil)
        }
    }

    @Test func `an upload whose copy is lost fails with the reason`() async throws {
        try await play { home, store in
            await home.setStartsAgents(false)
            try await home.stormy("upload", try photo(home).path)
            let spool = home.directories.spool
            let copies = try FileManager.default.contentsOfDirectory(atPath: spool.path)
            #expect(!copies.isEmpty)
            for name in copies { try FileManager.default.removeItem(at: spool.appendingPathComponent(name)) }
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            let row = try #require(try await home.rows("transfers").first)
            #expect(row["state"] as? String == "failed")
            #expect(((row["error"] as? [String: Any])?["message"] as? String)?.contains("spool") == true)
            #expect(store.files.isEmpty)
        }
    }

    // MARK: The desktop

    @Test func `no notification is shown if notifications are disabled`() async throws {
        try await VirtualHome.play("[notifications]\nenabled = false\n") { home in
            home.serveForecast()
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try await home.stormy("schedule")
            try await home.check()
            let storms = try await home.status()["storms"] as? [[String: Any]]
            #expect(storms?.count == 1)
            #expect(home.shown == [])
        }
    }
}
