import Spool
@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Who goes first, who is held, and how a whole file gets its name.
@Suite struct TransferQueueTests {
    private let bench: Bench
    private let tag = HeaderField("ETag", "\"v1\"")

    init() throws { bench = try Bench() }

    private func started() -> [Int64] { bench.transport.started.map(\.id.transfer) }

    /// Bytes arrive and the attempt goes on.
    private func receive(_ id: Int64, _ text: String, of total: Int) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(
            status: 200, headers: [tag, HeaderField("Content-Length", "\(total)")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array(text.utf8).withUnsafeBytes { attempt.sink.write($0) })
        try bench.hear(.transport(.progress(attempt.id, sent: 0, received: Int64(text.utf8.count))))
    }

    // MARK: Order

    @Test func thePriorThenTheOlder() throws {
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

    @Test func hostsHaveLimitsOfTheirOwn() throws {
        for number in 0..<10 { try bench.download("k\(number)") { $0.hostLimit = 3 } }
        for number in 0..<2 { try bench.download("o\(number)") { $0.host = "http://other" } }
        try bench.turn()
        #expect(started().count == 5)
    }

    @Test func noMoreAtOnceThanThereIsRoomFor() throws {
        for number in 0..<40 { try bench.download("k\(number)") { $0.host = "http://h\(number)" } }
        try bench.turn()
        #expect(started().count == TransferRoom.limit)
        try bench.answer(started()[0])
        #expect(started().count == TransferRoom.limit + 1)
    }

    // MARK: Held

    /// What is guessed at the start is no promise; a desktop that never says anything is taken at its first look.
    @Test func needsAreNotMetByAGuess() throws {
        try bench.startAgent(turning: false, knowing: false)
        let plain = try bench.download("plain")
        let careful = try bench.download("careful") { $0.needs = .unmetered }
        try bench.turn()
        #expect(started() == [plain])
        try bench.pass(11)
        #expect(started() == [plain, careful])
    }

    @Test func whatItNeedsIsWaitedForAndLost() throws {
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
        #expect(try bench.transfer(id).partial?.durableBytes == 5, "what arrived is kept")
        #expect(try bench.transfer(id).fruitlessAttempts == 0)
        bench.conditions.set { $0.isNetworkMetered = false }
        try bench.hear(.conditions(bench.conditions.current))
        #expect(try bench.attempt(id).request.headers.contains(HeaderField("Range", "bytes=5-")))
    }

    /// A photo that waits for another of its name keeps nobody else's moment from coming.
    @Test func aBlockedOneKeepsNobodysMoment() throws {
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

    /// What is sent is the copy that was taken when it was queued, whatever became of the original, of the same size or not.
    @Test func theCopyIsSentAndNotTheOriginal() throws {
        let original = bench.ledger.directories.state.appendingPathComponent("S.jpg")
        try Data("later".utf8).write(to: original)
        try Data("sunny".utf8).write(to: bench.ledger.directories.spool.appendingPathComponent("upload-a"))
        let id = try bench.download(session: "photos") {
            ($0.kind, $0.method, $0.url, $0.sourceName) = (.upload, "PUT", "http://127.0.0.1/p/", original.path)
            $0.upload = UploadOrder(method: .put, fileName: "S.jpg", byteCount: 5, token: "a")
            $0.bodyFile = "upload-a"
        }
        try bench.turn()
        // First it asks whether the name is free.
        try bench.answer(id, "", status: 404)
        try bench.turn()
        let source = try #require(try bench.attempt(id).source)
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = try #require(bytes.withUnsafeMutableBytes { source.read(into: $0) })
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "sunny")
    }

    @Test func aSuspendedTransferIsHeldWithWhatArrived() throws {
        let id = try bench.download()
        try bench.turn()
        try receive(id, "sunny", of: 10)
        try bench.change(id) { $0.isSuspended = true }
        try bench.turn()
        #expect(bench.transport.cancelled.map(\.transfer) == [id])
        #expect(try bench.transfer(id).partial?.durableBytes == 5)
        // However long: it is not given up meanwhile.
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

    @Test func itBeginsWhenTheAppWants() throws {
        let id = try bench.download {
            $0.earliestBegin = bench.now + 3_600
            _ = $0.handle(.scheduled(for: bench.now + 3_600, now: bench.now))
        }
        try bench.turn()
        // A network that comes back is no reason to begin earlier, nor is a clock that was set.
        try bench.hear(.conditions(bench.conditions.current), .timeChanged)
        try bench.pass(3_599)
        #expect(started().isEmpty)
        try bench.pass(1)
        #expect(started() == [id])
    }

    /// A trouble of before is not what it waits for: the network's return begins nothing, and the app may take its date back.
    @Test func itBeginsWhenTheAppWantsAlsoAfterTrouble() throws {
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

    // MARK: A whole file gets its name

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

    /// As if the agent had died before it wrote down that the file has its name.
    private func forgetTheEnd(of id: Int64) throws {
        try bench.change(id) {
            $0.state = .running
            $0.isFinishing = true
            $0.finishedAt = nil
        }
    }

    @Test func itGrowsUnderAHiddenNameBesideItsPlace() throws {
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
            try String(contentsOf: place(), encoding: .utf8) == "earlier", "what stood there stands until the new one is whole")
        let attempt = try bench.attempt(id)
        #expect(Array("ny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        let head = ResponseHead(status: 200, headers: [], url: attempt.request.url)
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5))))
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
        #expect(!FileManager.default.fileExists(atPath: part.path))
    }

    @Test func aLongNameFindsAPart() throws {
        let name = String(repeating: "n", count: 255)
        let id = try bench.download { $0.destination = place(name).path }
        try bench.turn()
        try finish(id)
        #expect(try String(contentsOf: place(name), encoding: .utf8) == "sunny")
    }

    /// The agent died when the file was proven and had no name yet, or had it already.
    @Test(arguments: [false, true]) func anotherAgentGivesTheName(_ hasName: Bool) throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.turn()
        try finish(id)
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try forgetTheEnd(of: id)
        if !hasName { try FileManager.default.moveItem(at: place(), to: part) }
        try bench.startAgent()
        #expect(bench.transport.started.isEmpty, "no byte is asked for again")
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place(), encoding: .utf8) == "sunny")
    }

    /// It was named already; what the person made of it since is theirs.
    @Test func whatStandsThereSinceIsNotTouched() throws {
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

    /// Proven once is not proven for ever: somebody wrote into the part, or added to it.
    @Test(arguments: ["evily", "sunny and more"]) func aPartThatWasChangedIsFetchedAnew(_ text: String) throws {
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

    /// A whole file that cannot get its name is kept; another try needs no byte.
    @Test func aNameThatIsTakenByAFolder() throws {
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

    /// Made after it was asked for: it is nobody's to replace. The download has a numbered name, and says so; a crash before that is
    /// known, or after, changes nothing.
    @Test(arguments: [false, true]) func whatAppearedMeanwhileStays(_ dies: Bool) throws {
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

    @Test func whatItReplacesWasForNobodyElsesEyes() throws {
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

    /// What was named and is gone, part and all, is fetched anew.
    @Test func whatWasProvenAndIsGoneIsFetchedAnew() throws {
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

    @Test func cancelledWhileItGetsItsNameItDoesNotAppear() throws {
        let id = try bench.download { $0.destination = place().path }
        try bench.change(id) {
            $0.isFinishing = true
            $0.nameFile()
            $0.bytesTotal = 5
            $0.sha256 = FileDigest.sha256(of: Data("sunny".utf8))
        }
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try Data("sunny".utf8).write(to: part)
        // Its proof is looked at again, and nobody has heard of the finding yet.
        _ = try bench.agent.turn()
        try #require(bench.posted.hasAny)
        try bench.change(id) { $0.state = .cancelled }
        try bench.turn()
        #expect(!FileManager.default.fileExists(atPath: place().path))
    }

    // MARK: Races and bounds

    @Test func pausedAndResumedBeforeAnybodyLooked() throws {
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

    /// A thousand for a server that is off: one asks for all, ever more rarely; when it answers, or somebody says so, all go.
    @Test func oneProbesForAHostThatIsOff() throws {
        for number in 0..<100 { try bench.download("\(number)") }
        try bench.turn()
        let atOnce = bench.transport.started.count
        #expect((1...16).contains(atOnce))
        for attempt in bench.transport.started { try bench.fail(attempt.id.transfer, .couldNotConnect) }
        #expect(bench.transport.started.count == atOnce, "nobody else goes for now")
        var failed = atOnce
        for _ in 0..<720 {
            try bench.pass(5)
            for attempt in bench.transport.started.dropFirst(failed) { try bench.fail(attempt.id.transfer, .couldNotConnect) }
            failed = bench.transport.started.count
        }
        #expect((5...40).contains(failed - atOnce), "\(failed - atOnce) probes in an hour")
        // Somebody presses retry.
        try bench.ledger.write { try $0.setFact(.retriedAt, bench.now) }
        try bench.turn()
        #expect(bench.transport.started.count > failed)
        let probe = try #require(bench.transport.started.last?.id.transfer)
        try bench.answer(probe)
        #expect(bench.transport.started.count > failed + 3, "it answered: all go")
    }

    /// The host answers. Only the mirror that it leads one download to is down.
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

    /// The same bytes again and again are no progress, whatever validators come with them.
    @Test func bytesThatAreFetchedAgainAreNoProgress() throws {
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
        #expect(bench.now.timeIntervalSince(began) < 5_000, "given up in time")
        #expect(attempts < 120, "\(attempts) attempts in an hour")
    }

    /// The cancel comes while the file gets its name: the row says that it has it.
    @Test(arguments: [true, false]) func aCancelThatComesTooLateIsSaid(_ hasItsName: Bool) throws {
        let place = bench.folder.appendingPathComponent("late").path
        let id = try bench.download { $0.destination = place }
        try bench.turn()
        try bench.ledger.write { try $0.handle(.cancelled(message: nil, now: bench.now), transfer: id, now: bench.now) }
        try bench.hear(.filePlaced(id, hasItsName ? .given : nil))
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .cancelled)
        #expect(transfer.note == (hasItsName ? "its file had been saved by then: \(place)" : nil))
    }

    /// One byte and another, for ever: patience counts from the start, too.
    @Test func oneByteASecondIsNoEnd() throws {
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
        #expect(ended.errorMessage?.hasPrefix("Not done within 7200 s") == true, "\(ended.errorMessage ?? "")")
        // A person who tries it again has all the patience once more.
        try bench.change(id) { _ = $0.handle(.retried(now: bench.now)) }
        try bench.turn()
        #expect(try bench.transfer(id).state == .running)
    }

    @Test func aPostIsNotSentTwice() throws {
        let id = try bench.download { $0.method = "POST" }
        try bench.turn()
        try bench.startAgent()
        #expect(started().isEmpty)
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.transfer(id).errorCode == URLError.Code.networkConnectionLost.rawValue)
    }

    // MARK: Kept parts

    @Test func aFailedDownloadKeepsWhatItsResumeDataSpeaksOf() throws {
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
        #expect(FileManager.default.fileExists(atPath: part.path), "told, and still there")
        try bench.change(id) { $0.keptUntil = bench.now }
        try bench.turn()
        #expect(!FileManager.default.fileExists(atPath: part.path))
        #expect(try bench.transfer(id).resumeToken == nil)
    }

    @Test func aBadRowReachesNoFileElsewhere() throws {
        let outside = bench.folder.appendingPathComponent("outside")
        try Data("mine".utf8).write(to: outside)
        let id = try bench.download { $0.file = "../../../outside" }
        try bench.turn()
        #expect(try bench.transfer(id).state == .failed)
        #expect(try String(contentsOf: outside, encoding: .utf8) == "mine")
    }
}
