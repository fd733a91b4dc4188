import Spool
@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of the order of transfers, of transfers that wait, and of the name of a complete file.
@Suite struct TransferQueueTests {
    private let bench: Bench
    private let tag = HeaderField("ETag", "\"v1\"")

    init() throws { bench = try Bench() }

    private func started() -> [Int64] { bench.transport.started.map(\.id.transfer) }

    /// Delivers bytes to the running attempt of a transfer.
    private func receive(_ id: Int64, _ text: String, of total: Int) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(
            status: 200, headers: [tag, HeaderField("Content-Length", "\(total)")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array(text.utf8).withUnsafeBytes { attempt.sink.write($0) })
        try bench.hear(.transport(.progress(attempt.id, sent: 0, received: Int64(text.utf8.count))))
    }

    // MARK: Order

    @Test func `transfers start by priority and then by age`() throws {
        let ids = try (0..<4).map { number in
            try bench.download("k\(number)") {
                $0.hostLimit = 1
                $0.priority = number == 2 ? 0.75 : 0.5
            }
        }
        try bench.turn()
        #expect(started() == [ids[2]])
        for _ in 0..<3 { try bench.answer(started().last!) }
        #expect(started() == [ids[2], ids[0], ids[1], ids[3]])
    }

    @Test func `each host has a separate limit`() throws {
        for number in 0..<10 { try bench.download("k\(number)") { $0.hostLimit = 3 } }
        for number in 0..<2 { try bench.download("o\(number)") { $0.host = "http://other" } }
        try bench.turn()
        #expect(started().count == 5)
    }

    @Test func `the number of running transfers is limited`() throws {
        for number in 0..<40 { try bench.download("k\(number)") { $0.host = "http://h\(number)" } }
        try bench.turn()
        #expect(started().count == TransferRoom.limit)
        try bench.answer(started()[0])
        #expect(started().count == TransferRoom.limit + 1)
    }

    // MARK: Waiting

    /// After its start, the agent waits some seconds for the desktop to report its conditions. If the desktop reports no
    /// conditions in this time, the agent uses the conditions that it read at its start.
    @Test func `a transfer with conditions waits for the first report of the conditions`() throws {
        try bench.startAgent(turning: false, knowing: false)
        let plain = try bench.download("plain")
        let careful = try bench.download("careful") { $0.needs = .unmetered }
        try bench.turn()
        #expect(started() == [plain])
        try bench.pass(11)
        #expect(started() == [plain, careful])
    }

    @Test func `a transfer waits for its conditions and is interrupted when they are lost`() throws {
        bench.conditions.set { $0.isNetworkMetered = true }
        let id = try bench.download { $0.needs = .unmetered }
        let other = try bench.download("other")
        try bench.turn()
        #expect(started() == [other])
        bench.conditions.set { $0.isNetworkMetered = false }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(started() == [other, id])
        try receive(id, "sunny", of: 10)
        bench.conditions.set { $0.isNetworkMetered = true }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(bench.transport.cancelled.map(\.transfer) == [id])
        #expect(try bench.transfer(id).state == .queued)
        #expect(try bench.transfer(id).partial?.durableBytes == 5, "the received bytes are kept")
        #expect(try bench.transfer(id).fruitlessAttempts == 0)
        bench.conditions.set { $0.isNetworkMetered = false }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(try bench.attempt(id).request.headers.contains(HeaderField("Range", "bytes=5-")))
    }

    /// A photo waits for another photo with the same name. The wait of the photo does not delay other transfers.
    @Test func `a blocked upload does not delay the retry of another transfer`() throws {
        func photo(_ key: String) throws -> Int64 {
            try Data("sunny".utf8).write(to: bench.ledger.directories.spool.appendingPathComponent("upload-\(key)"))
            return try bench.download(key, session: "photos") {
                ($0.kind, $0.method, $0.url) = (.upload, "PUT", "http://127.0.0.1/p/")
                $0.upload = UploadOrder(method: .put, fileName: "S.jpg", byteCount: 5, token: key)
                $0.bodyFile = "upload-\(key)"
            }
        }
        let first = try photo("a")
        _ = try photo("b")
        let other = try bench.download("other")
        try bench.turn()
        #expect(started() == [first, other])
        try bench.fail(other, .connectionLost)
        let moment = try #require(try bench.transfer(other).nextAttemptAt)
        let wake = try #require(try bench.turn())
        #expect(wake <= moment)
        try bench.pass(moment.timeIntervalSince(bench.now))
        #expect(started() == [first, other, other])
    }

    /// The file was copied when the upload was queued. A later change of the original file has no effect on the copy.
    @Test func `an upload sends the queued copy and not the original`() throws {
        let original = bench.ledger.directories.state.appendingPathComponent("S.jpg")
        try Data("later".utf8).write(to: original)
        try Data("sunny".utf8).write(to: bench.ledger.directories.spool.appendingPathComponent("upload-a"))
        let id = try bench.download(session: "photos") {
            ($0.kind, $0.method, $0.url, $0.sourceName) = (.upload, "PUT", "http://127.0.0.1/p/", original.path)
            $0.upload = UploadOrder(method: .put, fileName: "S.jpg", byteCount: 5, token: "a")
            $0.bodyFile = "upload-a"
        }
        try bench.turn()
        // The first request checks whether the name is free.
        try bench.answer(id, "", status: 404)
        try bench.turn()
        let source = try #require(try bench.attempt(id).source)
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = try #require(bytes.withUnsafeMutableBytes { source.read(into: $0) })
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "sunny")
    }

    @Test func `a suspended transfer keeps its bytes and does not time out`() throws {
        let id = try bench.download()
        try bench.turn()
        try receive(id, "sunny", of: 10)
        try bench.change(id) { $0.isSuspended = true }
        try bench.turn()
        #expect(bench.transport.cancelled.map(\.transfer) == [id])
        #expect(try bench.transfer(id).partial?.durableBytes == 5)
        // A suspended transfer does not time out.
        try bench.pass(8 * 86_400)
        #expect(try bench.transfer(id).state == .queued)
        try bench.startAgent()
        try bench.change(id) {
            $0.isSuspended = false
            $0.lastProgressAt = bench.now
        }
        try bench.turn()
        #expect(try bench.attempt(id).request.headers.contains(HeaderField("Range", "bytes=5-")))
    }

    @Test func `a transfer starts at the time that the app requested`() throws {
        let id = try bench.download {
            $0.earliestBegin = bench.now + 3_600
            _ = $0.handle(.scheduled(for: bench.now + 3_600, now: bench.now))
        }
        try bench.turn()
        // The transfer does not start earlier when the network returns or when the clock is changed.
        try bench.hear(.conditions(bench.conditions.current), .timeChanged)
        try bench.pass(3_599)
        #expect(started().isEmpty)
        try bench.pass(1)
        #expect(started() == [id])
    }

    /// The app requested a start date. The transfer waits for this date, and not only for the pause after the failure. The
    /// transfer does not start when the network returns. The app can remove the start date of the transfer.
    @Test func `a transfer starts at the requested time also after a failed attempt`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.fail(id, .connectionLost)
        let before = started().count
        func schedule(_ date: Date?) throws {
            try bench.ledger.write { transaction in
                var transfer = try #require(try transaction.transfer(id))
                try transaction.handle(.scheduled(for: date, now: bench.now), &transfer, now: bench.now)
            }
        }
        #expect(try bench.transfer(id).state == .waiting)
        try schedule(bench.now + 86_400)
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.hear(.conditions(bench.conditions.current))
        bench.conditions.set { $0.isNetworkAvailable = true }
        try bench.hear(.conditions(bench.conditions.current), .timeChanged)
        try bench.pass(3_600)
        #expect(started().count == before)
        try schedule(nil)
        try bench.turn()
        #expect(started().count == before + 1)
    }

    // MARK: The name of a complete file

    private func place(_ name: String = "file.bin") -> URL { bench.folder.appendingPathComponent(name) }

    private func finish(_ id: Int64, _ text: String = "sunny") throws {
        let attempt = try bench.attempt(id)
        let bytes = Array(text.utf8)
        let head = ResponseHead(
            status: 200, headers: [tag, HeaderField("Content-Length", "\(bytes.count)")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(bytes.withUnsafeBytes { attempt.sink.write($0) })
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: Int64(bytes.count)))))
    }

    /// Resets the row to the state before the agent recorded that the file has its final name.
    private func forgetTheEnd(of id: Int64) throws {
        try bench.change(id) {
            $0.state = .running
            $0.isFinishing = true
            $0.finishedAt = nil
        }
    }

    @Test func `a download is written to a hidden file in the destination folder`() throws {
        let id = try bench.download {
            $0.destination = place().path
            $0.mayReplace = true
        }
        try Data("earlier".utf8).write(to: place())
        try bench.turn()
        try receive(id, "sun", of: 5)
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        #expect(part.deletingLastPathComponent().path == bench.folder.path && part.lastPathComponent.hasPrefix(".file.bin."))
        #expect(
            try String(contentsOf: place(), encoding: .utf8) == "earlier",
            "the earlier file is kept until the new file is complete")
        let attempt = try bench.attempt(id)
        #expect(Array("ny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        let head = ResponseHead(status: 200, headers: [], url: attempt.request.url)
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5))))
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
        #expect(!FileManager.default.fileExists(atPath: part.path))
    }

    @Test func `a download may have a file name of maximum length`() throws {
        let name = String(repeating: "n", count: 255)
        let id = try bench.download { $0.destination = place(name).path }
        try bench.turn()
        try finish(id)
        #expect(try String(contentsOf: place(name), encoding: .utf8) == "sunny")
    }

    /// The agent died after it had verified the file, either before or after the file got its final name.
    @Test(arguments: [false, true]) func `a new agent gives a complete file its name`(_ hasName: Bool) throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try finish(id)
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try forgetTheEnd(of: id)
        if !hasName { try FileManager.default.moveItem(at: place(), to: part) }
        try bench.startAgent()
        #expect(bench.transport.started.isEmpty, "no byte is requested again")
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
    }

    /// The file already had its final name. Changes that the user made to the file later are kept.
    @Test func `a new agent does not replace a file that the user has changed`() throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try finish(id)
        try Data("my notes".utf8).write(to: place())
        try forgetTheEnd(of: id)
        try bench.startAgent()
        #expect(bench.transport.started.isEmpty)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "my notes")
    }

    /// Another program wrote into the partial file after it was verified, or appended to it.
    @Test(arguments: ["evily", "sunny and more"])
    func `a complete part that was changed is fetched again`(_ text: String) throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try finish(id)
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try FileManager.default.removeItem(at: place())
        try Data(text.utf8).write(to: part)
        try forgetTheEnd(of: id)
        try bench.startAgent()
        #expect(started() == [id])
        try finish(id)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
    }

    /// A folder already has the name that the downloaded file has to get. The complete file is kept, and the next attempt
    /// downloads no bytes.
    @Test func `a download is kept while a folder has its name`() throws {
        let id = try bench.download {
            $0.destination = place().path
            $0.mayReplace = true
        }
        try bench.turn()
        try FileManager.default.createDirectory(at: place(), withIntermediateDirectories: false)
        try finish(id)
        #expect(try bench.transfer(id).state == .failed)
        try FileManager.default.removeItem(at: place())
        try bench.change(id) { _ = $0.handle(.retried(now: bench.now)) }
        try bench.turn()
        #expect(bench.transport.started.count == 1)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
    }

    /// The file was created after the download was requested, so the download does not replace this file. The downloaded file
    /// gets a numbered name, and the transfer gets a note. A crash of the agent changes neither the name nor the note.
    @Test(arguments: [false, true])
    func `a file that appears during a download is kept and the download gets another name`(_ dies: Bool) throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try Data("my notes".utf8).write(to: place())
        try Data("mine, too".utf8).write(to: place("file (1).bin"))
        if dies {
            try receive(id, "sunny", of: 5)
            let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
            try bench.change(id) {
                $0.isFinishing = true
                $0.bytesTotal = 5
                $0.sha256 = FileDigest.sha256(of: Data("sunny".utf8))
                $0.destination = place("file (1).bin").path
            }
            #expect(FileManager.default.fileExists(atPath: part.path))
            try bench.startAgent()
        } else {
            try finish(id)
        }
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "my notes")
        #expect(try String(contentsOf: place("file (1).bin"), encoding: .utf8) == "mine, too")
        let name = dies ? "file (2).bin" : "file (2).bin"
        #expect(try String(contentsOf: place(name), encoding: .utf8) == "sunny")
        #expect(try bench.transfer(id).destination == place(name).path)
        #expect(try bench.transfer(id).note?.contains("saved as \(name)") == true)
    }

    @Test func `a download keeps the permissions of the file that it replaces`() throws {
        let id = try bench.download {
            $0.destination = place().path
            $0.mayReplace = true
        }
        try Data("secret".utf8).write(to: place())
        chmod(place().path, 0o600)
        try bench.turn()
        try finish(id)
        var found = stat()
        #expect(stat(place().path, &found) == 0 && found.st_mode & 0o777 == 0o600)
    }

    /// Both the file with the final name and the partial file are missing.
    @Test func `a complete file that was removed is fetched again`() throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try finish(id)
        try FileManager.default.removeItem(at: place())
        try forgetTheEnd(of: id)
        try bench.startAgent()
        #expect(started() == [id])
        try finish(id)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
    }

    @Test func `a download that is cancelled before it gets its name does not appear`() throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.change(id) {
            $0.isFinishing = true
            $0.nameFile()
            $0.bytesTotal = 5
            $0.sha256 = FileDigest.sha256(of: Data("sunny".utf8))
        }
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try Data("sunny".utf8).write(to: part)
        // The file is being verified again. The agent has not received the result yet.
        _ = try bench.agent.turn()
        try #require(bench.posted.hasAny)
        try bench.change(id) { $0.state = .cancelled }
        try bench.turn()
        #expect(!FileManager.default.fileExists(atPath: place().path))
    }

    // MARK: Races and limits

    @Test func `a transfer that is paused and resumed at once starts a new attempt`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.change(id) { _ = $0.handle(.paused) }
        try bench.change(id) { _ = $0.handle(.resumed(now: bench.now)) }
        try bench.turn()
        #expect(bench.transport.cancelled.map(\.number) == [1])
        #expect(try bench.attempt(id).id.number == 2)
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
    }

    /// Many transfers wait for a server that is switched off. Only one of these transfers makes attempts, with growing pauses.
    /// All transfers continue when the server responds or the user retries.
    @Test func `one transfer probes an unavailable host for all others`() throws {
        for number in 0..<100 { try bench.download("\(number)") }
        try bench.turn()
        let atOnce = bench.transport.started.count
        #expect((1...16).contains(atOnce))
        for attempt in bench.transport.started { try bench.fail(attempt.id.transfer, .couldNotConnect) }
        #expect(bench.transport.started.count == atOnce, "no other transfer to this host starts for now")
        var failed = atOnce
        for _ in 0..<720 {
            try bench.pass(5)
            for attempt in bench.transport.started.dropFirst(failed) { try bench.fail(attempt.id.transfer, .couldNotConnect) }
            failed = bench.transport.started.count
        }
        #expect((5...40).contains(failed - atOnce), "\(failed - atOnce) probes in an hour")
        // The user retries all transfers.
        try bench.ledger.write { try $0.setFact(.retriedAt, bench.now) }
        try bench.turn()
        #expect(bench.transport.started.count > failed)
        let probe = try #require(bench.transport.started.last?.id.transfer)
        try bench.answer(probe)
        #expect(bench.transport.started.count > failed + 3, "the host responded, so the waiting transfers start")
    }

    /// The host of the downloads responds. The host redirects one download to a mirror, and only this mirror cannot be reached.
    @Test func `a mirror that is down does not hold up the other transfers of the host`() throws {
        let ids = try (0..<3).map { number in try bench.download("\(number)") { $0.hostLimit = 1 } }
        try bench.turn()
        #expect(started() == [ids[0]])
        let attempt = try bench.attempt(ids[0])
        var end = WireEnd(head: nil, failure: .couldNotConnect, bytesSent: 0, bytesReceived: 0)
        end.wasRedirected = true
        try bench.hear(.transport(.ended(attempt.id, end)))
        #expect(started() == [ids[0], ids[1]])
    }

    /// Bytes that arrive a second time do not count as progress, even if the validators changed.
    @Test func `bytes that are fetched again do not count as progress`() throws {
        let id = try bench.download { $0.resourceTimeout = 3_600 }
        try bench.turn()
        var attempts = 0
        let began = bench.now
        while try bench.transfer(id).state != .failed, attempts < 500 {
            if try bench.transfer(id).state == .running {
                attempts += 1
                let attempt = try bench.attempt(id)
                let isRange = attempt.request.headers.contains { $0.name == "Range" }
                let head = ResponseHead(
                    status: isRange ? 416 : 200,
                    headers: isRange ? [] : [HeaderField("ETag", "\"v\(attempts)\""), HeaderField("Content-Length", "10")],
                    url: attempt.request.url)
                if attempt.sink.receive(head: head), !isRange {
                    _ = Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) }
                }
                try bench.hear(
                    .transport(
                        .ended(
                            attempt.id,
                            WireEnd(head: head, failure: isRange ? nil : .connectionLost, bytesSent: 0, bytesReceived: 5))))
            }
            try bench.pass(5)
        }
        #expect(bench.now.timeIntervalSince(began) < 5_000, "the transfer fails at its time limit")
        #expect(attempts < 120, "\(attempts) attempts in an hour")
    }

    /// The download is cancelled while the file gets its final name. The note states whether the file has its final name.
    @Test(arguments: [true, false]) func `a cancelled download notes that its file was already saved`(_ hasItsName: Bool) throws {
        let place = bench.folder.appendingPathComponent("late").path
        let id = try bench.download { $0.destination = place }
        try bench.turn()
        try bench.ledger.write { try $0.handle(.cancelled(message: nil, now: bench.now), transfer: id, now: bench.now) }
        try bench.hear(.filePlaced(id, hasItsName ? .given : nil))
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .cancelled)
        let note = "the transfer was cancelled too late, because the file was already complete: \(place)"
        #expect(transfer.note == (hasItsName ? note : nil))
    }

    /// The server sends a few bytes forever. The time limit of a transfer begins with the transfer. Arriving bytes do not extend
    /// the limit.
    @Test func `a slow transfer that never ends fails at its time limit`() throws {
        let id = try bench.download { $0.patience = 7_200 }
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 200, headers: [HeaderField("ETag", "\"v\"")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        let began = bench.now
        while try bench.transfer(id).state == .running, bench.now.timeIntervalSince(began) < 100_000 {
            #expect([UInt8](repeating: 1, count: 60).withUnsafeBytes { attempt.sink.write($0) })
            try bench.hear(.transport(.progress(attempt.id, sent: 0, received: 60)))
            try bench.pass(60)
        }
        #expect(bench.now.timeIntervalSince(began) == 7_200)
        let ended = try bench.transfer(id)
        #expect(ended.state == .failed && ended.errorCode == URLError.Code.timedOut.rawValue)
        #expect(
            ended.errorMessage?.hasPrefix("The transfer was not complete within 7200 s") == true, "\(ended.errorMessage ?? "")")
        // If the user retries the transfer, its time limit begins again.
        try bench.change(id) { _ = $0.handle(.retried(now: bench.now)) }
        try bench.turn()
        #expect(try bench.transfer(id).state == .running)
    }

    @Test func `a POST is not sent twice`() throws {
        let id = try bench.download { $0.method = "POST" }
        try bench.turn()
        try bench.startAgent()
        #expect(started().isEmpty)
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.transfer(id).errorCode == URLError.Code.networkConnectionLost.rawValue)
    }

    // MARK: Kept parts

    @Test func `a failed download keeps its part for the resume data`() throws {
        let id = try bench.download { $0.resourceTimeout = 100 }
        try bench.turn()
        try receive(id, "sunny", of: 10)
        try bench.fail(id, .connectionLost)
        while try bench.transfer(id).state != .failed {
            try bench.pass(30)
            if try bench.transfer(id).state == .running { try bench.fail(id, .couldNotConnect) }
        }
        let failed = try bench.transfer(id)
        let part = try #require(failed.partFile(in: bench.ledger.directories.spool))
        #expect(failed.resumeToken != nil && failed.keptUntil != nil)
        try bench.deliver()
        try bench.turn()
        #expect(FileManager.default.fileExists(atPath: part.path), "the end was delivered, and the partial file still exists")
        try bench.change(id) { $0.keptUntil = bench.now }
        try bench.turn()
        #expect(!FileManager.default.fileExists(atPath: part.path))
        #expect(try bench.transfer(id).resumeToken == nil)
    }

    @Test func `a damaged row cannot reach a file outside the spool`() throws {
        let outside = bench.folder.appendingPathComponent("outside")
        try Data("mine".utf8).write(to: outside)
        let id = try bench.download { $0.file = "../../../outside" }
        try bench.turn()
        #expect(try bench.transfer(id).state == .failed)
        #expect(try String(contentsOf: outside, encoding: .utf8) == "mine")
    }
}
