import Spool
@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of transfers that start, end, wait, time out and are removed.
@Suite struct TransferTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `an adopted transfer is fetched and delivered`() throws {
        let id = try bench.download()
        try bench.turn()
        #expect(try bench.transfer(id).state == .running)
        #expect(try bench.attempt(id).request.url == "http://127.0.0.1/k")
        try bench.answer(id, "stormy")
        let record = try bench.transfer(id)
        #expect(record.state == .completed)
        #expect(record.sha256 == FileDigest.sha256(of: Data("stormy".utf8)))
        #expect(try bench.spooled(id) == "stormy")
        let launch = try bench.launch(bench.onlyLive())
        #expect(launch.kind == .urlSession)
        #expect(launch.identifier == "isStormy")
        try bench.deliver()
        try bench.end(bench.onlyLive(), .completed)
        #expect(try bench.spooled(id) == nil, "the file of a delivered response is removed")
        #expect(try bench.transfer(id).file == nil)
        #expect(bench.launcher.started.count == 1)
    }

    @Test func `an awaited transfer does not launch the app`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(bench.launcher.started.isEmpty)
        #expect(bench.watched == [Bench.waiter])
    }

    // MARK: Without a waiting process

    @Test func `a transfer can be adopted for a grace time after its waiting process ended`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        try bench.hear(.processEnded(Bench.waiter))
        #expect(try bench.transfer(id).adoptableUntil == bench.now + 5)
        #expect(try bench.transfer(id).state == .running, "the connection stays")
        try bench.pass(4.9)
        #expect(bench.transport.cancelled.isEmpty)
        try bench.pass(0.1)
        #expect(try bench.transfer(id).state == .cancelled)
        #expect(bench.transport.cancelled.map(\.transfer) == [id])
    }

    @Test func `a transfer that is adopted in the grace time keeps its connection`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        try bench.hear(.processEnded(Bench.waiter))
        try bench.pass(3)
        try bench.change(id) {
            $0.isAdopted = true
            $0.adoptableUntil = nil
        }
        try bench.pass(60)
        #expect(bench.transport.started.count == 1)
        #expect(bench.transport.cancelled.isEmpty)
        try bench.answer(id)
        #expect(try bench.launch(bench.onlyLive()).kind == .urlSession)
        #expect(try bench.transfer(id).note == "all bytes were received on the first connection")
    }

    @Test func `a waiting process that already ended is detected`() throws {
        bench.gone = [Bench.waiter]
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        #expect(try bench.transfer(id).adoptableUntil == bench.now + 5)
    }

    @Test func `a response that no process takes is removed after the grace time`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        try bench.answer(id)
        try bench.hear(.processEnded(Bench.waiter))
        #expect(try bench.spooled(id) == "sunny", "still adoptable")
        try bench.pass(5)
        #expect(try bench.spooled(id) == nil)
        #expect(try bench.transfer(id).state == .completed)
    }

    @Test func `a cancelled transfer stops its attempt`() throws {
        let id = try bench.download()
        try bench.turn()
        let attempt = try bench.attempt(id)
        try bench.change(id) { $0.state = .cancelled }
        try bench.turn()
        #expect(bench.transport.cancelled == [attempt.id])
        // The transport reports the end of the attempt late. The agent ignores this late report.
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: nil, failure: .cancelled, bytesSent: 0, bytesReceived: 0))))
        #expect(try bench.transfer(id).state == .cancelled)
    }

    // MARK: Failures

    @Test func `a transfer is retried after a lost connection`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.fail(id, .connectionLost)
        let record = try bench.transfer(id)
        #expect([.waiting, .running].contains(record.state))
        try bench.pass(900)
        #expect(bench.transport.started.count == 2)
        #expect(try bench.attempt(id).id.number == 2)
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try bench.transfer(id).attempts == 2)
    }

    @Test func `a response to an old attempt is ignored`() throws {
        let id = try bench.download()
        try bench.turn()
        let old = try bench.attempt(id).id
        try bench.fail(id, .connectionLost)
        try bench.pass(900)
        let head = ResponseHead(status: 200, headers: [], url: "u")
        try bench.hear(.transport(.ended(old, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5))))
        #expect(try bench.transfer(id).state == .running)
    }

    @Test func `a transfer is retried at once when the network returns`() throws {
        let id = try bench.download()
        try bench.turn()
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.fail(id, .couldNotConnect)
        #expect(try bench.transfer(id).state == .waiting)
        bench.conditions.set { $0.isNetworkAvailable = true }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(bench.transport.started.count == 2)
    }

    @Test func `a transfer fails at its resource timeout`() throws {
        let id = try bench.download { $0.resourceTimeout = 7_200 }
        try bench.turn()
        for _ in 0..<10_000 where try bench.transfer(id).state != .failed {
            if try bench.transfer(id).state == .running { try bench.fail(id, .couldNotResolveHost) }
            try bench.pass(60)
        }
        let record = try bench.transfer(id)
        #expect(record.state == .failed)
        #expect(record.errorCode == URLError.Code.timedOut.rawValue)
        #expect(bench.now.timeIntervalSince(record.createdAt) >= 7_200)
        #expect(bench.now.timeIntervalSince(record.createdAt) < 7_400)
        #expect(try bench.launch(bench.onlyLive()).kind == .urlSession, "the failure is also delivered to the app")
    }

    /// The agent's own commit does not wake the agent again. Therefore, if a transfer ends while transfers are planned, its end
    /// is delivered in the same run of the loop.
    @Test func `a transfer that times out is delivered in the same turn`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.fail(id, .couldNotResolveHost)
        try bench.ledger.write { transaction in
            var record = try #require(try transaction.transfer(id))
            record.resourceTimeout = 1
            record.lastProgressAt = bench.now.addingTimeInterval(-10)
            try transaction.update(record)
        }
        try bench.turn()
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.launch(bench.onlyLive()).kind == .urlSession)
    }

    @Test func `a running transfer without progress fails at its resource timeout`() throws {
        let id = try bench.download { $0.resourceTimeout = 100 }
        try bench.pass(99)
        #expect(try bench.transfer(id).state == .running)
        try bench.pass(1)
        #expect(try bench.transfer(id).state == .failed)
        #expect(bench.transport.cancelled.map(\.transfer) == [id])
    }

    /// The machine was asleep or off, or the clock was set forward. No attempt was possible in this time, so the transfer does
    /// not fail and gets another attempt.
    @Test(arguments: ["asleep", "off", "clock"])
    func `a sleep, an absence and a clock change do not use up the timeout`(_ how: String) throws {
        let id = try bench.download { $0.resourceTimeout = 7 * 86_400 }
        try bench.turn()
        try bench.fail(id, .couldNotResolveHost)
        switch how {
        case "asleep": try bench.suspend(40 * 86_400)
        case "clock": try bench.step(40 * 86_400)
        default:
            try bench.stepUnseen(40 * 86_400)
            try bench.startAgent()
        }
        #expect(try bench.transfer(id).errorCode != URLError.Code.timedOut.rawValue)
        try bench.pass(3_600)
        #expect(!bench.transport.started.isEmpty)
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// The conditions of the transfer were not met for longer than its time limit. When the conditions are met, the transfer
    /// gets an attempt before it can fail.
    @Test func `a transfer that waited longer than its timeout still gets an attempt`() throws {
        bench.conditions.set { $0.isNetworkMetered = true }
        let id = try bench.download {
            $0.needs = .unmetered
            $0.resourceTimeout = 3_600
            $0.patience = 7_200
        }
        try bench.turn()
        try bench.pass(8 * 3_600)
        #expect(bench.transport.started.isEmpty)
        #expect(try bench.transfer(id).state == .queued)
        bench.conditions.set { $0.isNetworkMetered = false }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(try bench.transfer(id).state == .running)
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// The time before the sleep and the time after the sleep count toward one timeout. The sleep itself does not count.
    @Test func `the timeout of a transfer continues after a sleep`() throws {
        let id = try bench.download { $0.resourceTimeout = 7_200 }
        try bench.turn()
        try bench.pass(3_600)
        try bench.suspend(8 * 86_400)
        #expect(try bench.transfer(id).state == .running)
        try bench.pass(3_500)
        #expect(try bench.transfer(id).state == .running)
        try bench.pass(200)
        #expect(try bench.transfer(id).state == .failed)
    }

    /// The file was complete and verified before the timeout. Only the last step, which gives the file its final name, was not
    /// done yet.
    @Test func `a complete file does not time out`() throws {
        let text = Data("sunny".utf8)
        let part = bench.ledger.directories.spool.appendingPathComponent("transfer-whole")
        try text.write(to: part)
        let id = try bench.download {
            $0.resourceTimeout = 100
            $0.lastProgressAt = bench.now.addingTimeInterval(-1_000)
            $0.isFinishing = true
            $0.file = part.lastPathComponent
            $0.bytesTotal = 5
            $0.sha256 = FileDigest.sha256(of: text)
        }
        try bench.turn()
        #expect(try bench.transfer(id).errorMessage == nil)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// The response arrives while the user pauses the upload. After the pause, the agent checks the file on the server before it
    /// sends the body again.
    @Test func `an upload whose response arrives during a pause checks the server when it resumes`() throws {
        let (id, _) = try upload(.put)
        try bench.turn()
        var end: (FakeTransport.Attempt, WireEnd)?
        for _ in 0..<5 {
            let attempt = try bench.attempt(id)
            let isBody = attempt.request.method == "PUT"
            let head = ResponseHead(status: isBody ? 201 : 404, headers: [], url: attempt.request.url)
            let wireEnd = WireEnd(head: head, failure: nil, bytesSent: isBody ? 3 : 0, bytesReceived: 0)
            if isBody {
                end = (attempt, wireEnd)
                break
            }
            try bench.hear(.transport(.ended(attempt.id, wireEnd)))
        }
        let (attempt, wireEnd) = try #require(end)
        try bench.ledger.write { try $0.handle(.paused, transfer: id, now: bench.now) }
        try bench.hear(.transport(.ended(attempt.id, wireEnd)))
        #expect(try bench.transfer(id).state == .paused)
        let before = bench.transport.started.count
        try bench.ledger.write { try $0.handle(.resumed(now: bench.now), transfer: id, now: bench.now) }
        try bench.turn()
        #expect(bench.transport.started.count == before + 1)
        #expect(try bench.attempt(id).request.method == "HEAD")
    }

    @Test func `a paused transfer does not time out`() throws {
        let id = try bench.download {
            $0.state = .paused
            $0.resourceTimeout = 100
        }
        try bench.pass(1_000)
        #expect(try bench.transfer(id).state == .paused)
        #expect(bench.transport.started.isEmpty)
    }

    @Test func `a host has at most six transfers at a time`() throws {
        let ids = try (0..<9).map { try bench.download("k\($0)") }
        try bench.turn()
        #expect(bench.transport.started.map(\.id.transfer) == Array(ids.prefix(6)), "oldest first")
        try bench.answer(ids[2])
        #expect(bench.transport.started.map(\.id.transfer) == Array(ids.prefix(7)))
    }

    @Test func `an upload whose copy is missing fails`() throws {
        let id = try bench.download {
            $0.kind = .upload
            $0.method = "PUT"
            $0.bodyFile = "upload-gone"
            $0.upload = UploadOrder(method: .plain, fileName: "a.jpg", byteCount: 3, token: "t")
        }
        try bench.turn()
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.transfer(id).errorCode == URLError.Code.fileDoesNotExist.rawValue)
    }

    /// Queues an upload of three bytes, and stores the agent's copy of the file.
    private func upload(
        _ kind: UploadKind, _ method: String = "PUT", change: (inout TransferRecord) -> Void = { _ in }
    ) throws -> (id: Int64, body: URL) {
        let body = bench.ledger.directories.spool.appendingPathComponent("upload-1")
        try Data("abc".utf8).write(to: body)
        let id = try bench.download("photos/") {
            $0.kind = .upload
            $0.method = method
            $0.bodyFile = "upload-1"
            $0.bytesTotal = 3
            $0.sourceSHA256 = FileDigest.sha256(of: Data("abc".utf8))
            $0.upload = UploadOrder(method: kind, fileName: "a.jpg", byteCount: 3, token: "t")
            change(&$0)
        }
        return (id, body)
    }

    // MARK: Captive portals and certificates

    /// Ends the running attempt of a transfer.
    private func end(_ id: Int64, _ failure: WireFailure?, status: Int = 200, _ headers: [HeaderField] = []) throws {
        let attempt = try bench.attempt(id)
        let head = failure == nil ? ResponseHead(status: status, headers: headers, url: attempt.request.url) : nil
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: failure, bytesSent: 0, bytesReceived: 0))))
    }

    private func agentsNotices() throws -> [String] {
        try bench.ledger.read { try $0.notifications() }.filter { $0.identifier.hasPrefix("background-agent.notice.") }.map(
            \.content.title)
    }

    /// The transfer waits while the server's certificate is not trusted, or while the network has a captive portal. After a
    /// change of the network or the clock, the transfer is tried immediately. The user is notified once.
    @Test(arguments: ["portal", "certificate", "clock"])
    func `a transfer waits out a captive portal, an untrusted certificate and a wrong clock`(_ what: String) throws {
        let (id, _) = try upload(.webdav)
        try bench.turn()
        for _ in 0..<3 {
            switch what {
            case "portal": try end(id, nil, status: 307, [HeaderField("Location", "http://login.hotel.example/")])
            case "certificate": try end(id, .tlsUntrusted("self-signed certificate"))
            default: try end(id, .tlsUntrusted("certificate is not yet valid"))
            }
            let transfer = try bench.transfer(id)
            #expect(transfer.state == .waiting)
            #expect(try #require(transfer.nextAttemptAt) >= bench.now + 900)
            switch what {
            case "clock": try bench.step(3_600)
            default:
                try bench.hear(
                    .conditions(
                        DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)))
            }
            #expect(try bench.transfer(id).state == .running, "tried at once")
        }
        let titles = [
            "portal": "This network requires a login", "certificate": "The server 127.0.0.1 cannot be trusted",
            "clock": "The clock of this computer may be wrong",
        ]
        #expect(try agentsNotices() == [titles[what]])
    }

    /// The notification that asks the user to log in is removed when no transfer waits. The notification is shown again when a
    /// transfer waits again.
    @Test(arguments: ["cancelled", "held"])
    func `the login notification is removed when no transfer waits for the login`(_ what: String) throws {
        func meetsAPortal() throws -> Int64 {
            let (id, _) = try upload(.webdav)
            try bench.turn()
            try end(id, nil, status: 307, [HeaderField("Location", "http://login.hotel.example/")])
            return id
        }
        func isShown() throws -> Bool {
            try bench.turn()
            return try bench.ledger.read { try $0.notifications() }.contains { !$0.life.isWithdrawn }
        }
        let (first, second) = (try meetsAPortal(), try meetsAPortal())
        #expect(try isShown())
        for id in [first, second] {
            #expect(try isShown(), "the other transfer still waits")
            try bench.change(id) {
                _ = what == "held" ? $0.handle(.suspended) : $0.handle(.ended(.cancelled, nil, now: bench.now))
            }
        }
        #expect(try !isShown())
        _ = try meetsAPortal()
        #expect(try isShown())
    }

    /// The process that awaits the transfer receives the error immediately.
    @Test func `an awaited transfer fails at once if the certificate is not trusted`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        try end(id, .tlsUntrusted("self-signed certificate"))
        #expect(try bench.transfer(id).state == .failed)
        #expect(try agentsNotices() == [])
    }

    @Test func `a plain upload sends its copy`() throws {
        let (id, body) = try upload(.plain, "PUT")
        try bench.turn()
        let source = try #require(try bench.attempt(id).source)
        #expect(source.byteCount == 3)
        try bench.answer(id, "", status: 201)
        #expect(try bench.transfer(id).state == .completed)
        #expect(!FileManager.default.fileExists(atPath: body.path), "the snapshot is not needed any more")
    }

    /// The server confirms the upload before the server has received the complete body. The server cannot have stored the missing
    /// bytes.
    @Test func `a confirmation of a body that was not sent completely does not count`() throws {
        let (id, body) = try upload(.plain, "PUT")
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 200, headers: [], url: attempt.request.url)
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0))))
        #expect(try bench.transfer(id).state == .waiting)
        #expect(FileManager.default.fileExists(atPath: body.path))
        let next = try #require(try bench.transfer(id).nextAttemptAt)
        try bench.pass(next.timeIntervalSince(bench.now))
        try bench.answer(id, "", status: 200)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// The agent cannot determine whether the server processed the request. The agent does not repeat the request automatically,
    /// but the user can retry it.
    @Test func `a POST that an agent crash interrupted can be retried manually`() throws {
        let (id, body) = try upload(.plain, "POST")
        try bench.turn()
        try bench.startAgent()
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.ledger.read { try $0.undeliveredEvents() }.count == 1)
        try bench.deliver()
        try bench.pass(86_400)
        #expect(FileManager.default.fileExists(atPath: body.path))
        try bench.change(id) { _ = $0.handle(.retried(now: bench.now)) }
        try bench.turn()
        try bench.answer(id, "", status: 201)
        #expect(try bench.transfer(id).state == .completed)
        #expect(bench.transport.started.count == 1, "the new agent sent one request")
    }

    /// If a request must not be repeated, the agent completes it, even if the app suspends its task.
    @Test func `a suspended POST is not interrupted`() throws {
        let id = try bench.download { $0.method = "POST" }
        try bench.turn()
        try bench.change(id) { _ = $0.handle(.suspended) }
        try bench.turn()
        #expect(bench.transport.cancelled.isEmpty)
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// One step of the upload always fails. The agent retries this step with growing pauses, and sends the body only once. At the
    /// end the transfer fails.
    @Test func `a step that the server always refuses does not count as progress`() throws {
        let (id, _) = try upload(.webdav) { $0.resourceTimeout = 86_400 }
        var methods: [String] = []
        while try bench.transfer(id).state != .failed {
            try #require(methods.count < 2_000, "asked without end: \(methods.prefix(30))")
            try bench.turn()
            guard try bench.transfer(id).state == .running else {
                try bench.pass(300)
                continue
            }
            let attempt = try bench.attempt(id)
            methods.append(attempt.request.method)
            let isTemporary = attempt.request.url.hasSuffix(".part")
            let (status, headers): (Int, [HeaderField]) =
                switch attempt.request.method {
                case "PUT": (201, [])
                case "HEAD" where isTemporary: (200, [HeaderField("Content-Length", "3")])
                case "HEAD": (404, [])
                default: (500, [])
                }
            let sent = attempt.drainBody()
            let head = ResponseHead(status: status, headers: headers, url: attempt.request.url)
            try bench.hear(
                .transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: sent, bytesReceived: 0))))
        }
        #expect(methods.filter { $0 == "PUT" }.count == 1)
        #expect(methods.filter { $0 == "MOVE" }.count > 5)
        #expect(methods.filter { $0 == "MOVE" }.count < 150, "in a day")
        #expect(try bench.transfer(id).errorCode == URLError.Code.timedOut.rawValue)
        #expect(try bench.transfer(id).bytesDone == 3)
    }

    /// The end of this transfer causes no launch and no removal of a file. After this end, the agent still has to check whether
    /// it can exit.
    @Test func `the agent exits after the end of the last transfer`() throws {
        let (id, _) = try upload(.webdav) { $0.launchesApp = false }
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 401, headers: [], url: attempt.request.url)
        let end = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0)
        bench.agent.receive(.transport(.ended(attempt.id, end)))
        let wake = try #require(try bench.turn())
        #expect(try bench.transfer(id).state == .failed)
        #expect(wake <= bench.now + Lifetime.linger)
        try bench.pass(Lifetime.linger)
        #expect(bench.host.hasFinished)
    }
}
