import ProcessSupport
@testable import BackgroundLedger
import Foundation
import Testing

/// Tests of waiters, adopted transfers, and the removal of transfers.
@Suite struct TransferRowsTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now
    private let somebody = ProcessIdentity(pid: 4_000_001, start: 1)
    private let another = ProcessIdentity(pid: 4_000_002, start: 1)

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    private func insert(
        _ key: String = "k", session: String = "s", _ change: (inout TransferRecord) -> Void = { _ in }
    ) throws -> Int64 {
        try ledger.write { transaction in
            var record = TransferRecord(
                session: session, key: key, kind: .download, method: "GET", url: "http://127.0.0.1/", headers: [], now: now)
            change(&record)
            return try #require(try transaction.insert(record).id)
        }
    }

    @Test func `transfers are found by key, and the newest transfer of a key is returned`() throws {
        let first = try insert("a") { $0.state = .failed }
        let (second, other) = (try insert("a") { $0.state = .running }, try insert("b") { $0.state = .completed })
        _ = try insert("c", session: "another")
        let keys = ["a", "b", "c", "none"]
        let found = try ledger.read { try $0.transfers(ofKeys: keys, session: "s") }
        #expect(found.mapValues(\.id) == ["a": second, "b": other] && first < second)
        #expect(try ledger.read { try $0.states(ofKeys: keys, session: "s") } == ["a": .running, "b": .completed])
    }

    /// A progress bar needs the sums over its own transfers only.
    @Test func `a tally includes only the given transfers`() throws {
        let running = try insert("a") { ($0.state, $0.bytesDone, $0.bytesTotal) = (.running, 30, 100) }
        let waiting = try insert("b") { ($0.state, $0.bytesDone, $0.errorMessage) = (.waiting, 5, "The server is full.") }
        let later = try insert("c") { ($0.state, $0.errorMessage) = (.waiting, "Another.") }
        let done = try insert("d") { ($0.state, $0.bytesDone, $0.bytesTotal) = (.completed, 7, 7) }
        let paused = try insert("e") { $0.state = .paused }
        let held = try insert("f") { $0.isSuspended = true }
        _ = try insert("another's") { ($0.state, $0.bytesTotal) = (.running, 1_000) }
        let all = try ledger.read { try $0.tally(of: [done, paused, later, held, waiting, running, 999]) }
        #expect(all == TransferTally(bytesDone: 42, bytesTotal: 107, unfinished: 3, waitingMessage: "The server is full."))
        let ended = try ledger.read { try $0.tally(of: [done, paused, held]) }
        #expect(ended == TransferTally(bytesDone: 7, bytesTotal: 7, unfinished: 0, waitingMessage: nil))
        #expect(try ledger.read { try $0.tally(of: []) }.unfinished == 0)
    }

    /// Only names that a new upload could conflict with are returned. A damaged receipt does not block other uploads.
    @Test func `stored uploads are found by the beginning of their file names`() throws {
        func stored(_ key: String, in folder: String, at url: String, _ state: TransferRecord.State = .completed) throws -> Int64
        {
            try insert(key) { record in
                (record.kind, record.url, record.state) = (.upload, folder, state)
                record.receipt = UploadReceipt(
                    url: url, byteCount: 1, sha256: "", storedAt: now, proof: .answer, checkedAt: nil)
            }
        }
        let folder = "http://nas/photos"
        let first = try stored("1", in: folder, at: "\(folder)/IMG_1.jpg")
        _ = try stored("2", in: folder + "/", at: "\(folder)/img_1-1.jpg")
        _ = try stored("3", in: folder, at: "\(folder)/IMG_2.jpg")
        _ = try stored("4", in: "http://nas/other", at: "http://nas/other/IMG_1.jpg")
        _ = try stored("5", in: folder, at: "\(folder)/IMG_1-3.jpg", .failed)
        let damaged = try stored("6", in: folder, at: "\(folder)/IMG_1-4.jpg")
        try ledger.write { try $0.database.execute(sql: "UPDATE transfer SET receipt = '{' WHERE id = ?", arguments: [damaged]) }
        func names(_ beginning: String, except id: Int64 = 0) throws -> Set<String> {
            try ledger.read { try $0.storedUploads(to: folder, except: id, beginning: beginning) }
        }
        #expect(try names("IMG_1") == ["\(folder)/IMG_1.jpg", "\(folder)/img_1-1.jpg"])
        #expect(try names("IMG_1", except: first) == ["\(folder)/img_1-1.jpg"])
        #expect(try names("MG_1").isEmpty)
        #expect(try names("").count == 3)
    }

    private func change(_ id: Int64, _ body: (inout TransferRecord) -> Void) throws {
        try ledger.write { transaction in
            var record = try #require(try transaction.transfer(id))
            body(&record)
            try transaction.update(record)
        }
    }

    private func transfer(_ id: Int64) throws -> TransferRecord {
        try #require(try ledger.read { try $0.transfer(id) })
    }

    private func adoptable(at date: Date, key: String = "k", session: String = "s") throws -> Int64? {
        try ledger.read { try $0.joinableTransfer(session: session, key: key, now: date) { _ in false }?.id }
    }

    private func collectable(at date: Date) throws -> [Int64] {
        try ledger.read { try $0.collectableTransfers(now: date).compactMap(\.id) }
    }

    @Test func `each transfer has a new task identifier`() throws {
        let ids = try (0..<5).map { try transfer(insert("k\($0)")).taskIdentifier }
        #expect(ids == [1, 2, 3, 4, 5])
    }

    // MARK: Waiters

    @Test func `a transfer can be joined for a grace period after its last waiter was removed`() throws {
        let id = try insert()
        let (first, second) = try ledger.write { transaction in
            (try transaction.addWaiter(to: id, process: somebody), try transaction.addWaiter(to: id, process: another))
        }
        try ledger.write { try $0.removeWaiter(first, grace: 5, now: now) }
        #expect(try transfer(id).adoptableUntil == nil, "another still waits")
        try ledger.write { try $0.removeWaiter(second, grace: 5, now: now) }
        #expect(try transfer(id).adoptableUntil == now + 5)
        #expect(try ledger.read { try $0.waiters(of: id).isEmpty })
        // A second removal of the same waiter changes nothing.
        try ledger.write { try $0.removeWaiter(second, grace: 5, now: now + 60) }
        #expect(try transfer(id).adoptableUntil == now + 5)
    }

    @Test func `an adopted transfer has no grace period after its last waiter was removed`() throws {
        let id = try insert { $0.isAdopted = true }
        let waiter = try ledger.write { try $0.addWaiter(to: id, process: somebody) }
        try ledger.write { try $0.removeWaiter(waiter, grace: 5, now: now) }
        #expect(try transfer(id).adoptableUntil == nil)
    }

    // MARK: Joining

    @Test(arguments: [TransferRecord.State.queued, .running, .waiting, .paused])
    func `an equal request joins an unfinished transfer`(_ state: TransferRecord.State) throws {
        let id = try insert { $0.state = state }
        #expect(try adoptable(at: now) == id)
        #expect(try adoptable(at: now, key: "other") == nil)
        #expect(try adoptable(at: now, session: "other") == nil)
    }

    /// For example, today's daily check does not wait for an unfinished transfer of yesterday's check.
    @Test func `a transfer that has used half of its patience is not joined`() throws {
        let id = try insert { $0.patience = 7_200 }
        #expect(try adoptable(at: now + 3_599) == id)
        #expect(try adoptable(at: now + 3_601) == nil)
    }

    @Test func `a completed transfer is joined only within the grace period`() throws {
        let id = try insert {
            $0.state = .completed
            $0.adoptableUntil = now + 5
        }
        #expect(try adoptable(at: now + 4.9) == id)
        #expect(try adoptable(at: now + 5) == nil)
    }

    @Test(arguments: [TransferRecord.State.failed, .cancelled])
    func `a failed or cancelled transfer is not joined`(_ state: TransferRecord.State) throws {
        _ = try insert {
            $0.state = state
            $0.adoptableUntil = now + 5
        }
        #expect(try adoptable(at: now) == nil)
    }

    @Test func `an adopted transfer that is complete is not joined`() throws {
        _ = try insert {
            $0.state = .completed
            $0.isAdopted = true
            $0.adoptableUntil = now + 5
        }
        #expect(try adoptable(at: now) == nil)
    }

    // MARK: Collecting

    @Test func `a transfer without waiters is collected after the grace period`() throws {
        let id = try insert {
            $0.state = .running
            $0.adoptableUntil = now + 5
        }
        #expect(try collectable(at: now + 4.9) == [])
        #expect(try collectable(at: now + 5) == [id])
        #expect(try ledger.read { try $0.nextCollection(after: now) } == now + 5)
        #expect(try ledger.read { try $0.nextCollection(after: now + 5) } == nil)
    }

    @Test func `an awaited or adopted transfer is not collected`() throws {
        let awaited = try insert("a") { $0.adoptableUntil = now }
        _ = try ledger.write { try $0.addWaiter(to: awaited, process: somebody) }
        _ = try insert("b") { $0.isAdopted = true }
        _ = try insert("c")  // No date is set, because the waiter is added in the same transaction as the row.
        #expect(try collectable(at: now + 1_000) == [])
        #expect(try ledger.read { try $0.nextCollection(after: now - 1) } == nil)
    }

    @Test func `the file of a delivered transfer is collected once`() throws {
        let id = try insert {
            $0.state = .completed
            $0.isAdopted = true
            $0.file = "transfer-1"
        }
        try ledger.write { try $0.addEvent(for: #require(try $0.transfer(id)), now: now) }
        #expect(try collectable(at: now + 1_000) == [], "not delivered yet")
        let event = try #require(try ledger.read { try $0.undeliveredEvents().first?.id })
        try ledger.write { try $0.eventWasDelivered(event, now: now) }
        #expect(try collectable(at: now) == [id])
        try ledger.write { try $0.filesWereRemoved(id) }
        #expect(try collectable(at: now) == [])
    }

    // MARK: Events

    @Test func `each end of a transfer has one event`() throws {
        let id = try insert("a") { $0.isAdopted = true }
        _ = try insert("b", session: "other") { $0.isAdopted = true }
        for _ in 0..<3 { try ledger.write { try $0.addEvent(for: #require(try $0.transfer(id)), now: now) } }
        #expect(try ledger.read { try $0.undeliveredEvents(session: "s") }.map(\.transfer) == [id])
        #expect(try ledger.read { try $0.undeliveredEvents(session: "other") }.isEmpty)
        let event = try #require(try ledger.read { try $0.undeliveredEvents().first?.id })
        try ledger.write { try $0.eventWasDelivered(event, now: now) }
        try ledger.write { try $0.addEvent(for: #require(try $0.transfer(id)), now: now) }
        #expect(try ledger.read { try $0.undeliveredEvents() }.isEmpty, "told already")
        #expect(try ledger.read { try $0.deliveredTransfers(session: "s", since: now) }.map(\.id) == [id])
        #expect(try ledger.read { try $0.deliveredTransfers(session: "s", since: now + 1) }.isEmpty)
        try ledger.write { transaction in
            try transaction.forgetEvents(of: id)
            try transaction.addEvent(for: #require(try transaction.transfer(id)), now: now)
        }
        #expect(try ledger.read { try $0.undeliveredEvents() }.count == 1, "the end of a retried transfer is delivered again")
    }

    @Test func `repeated attachments of a process to a session count once`() throws {
        try ledger.write { transaction in
            try transaction.attach(session: "s", process: somebody)
            try transaction.attach(session: "s", process: somebody)
            try transaction.attach(session: "s", process: another)
            try transaction.attach(session: "t", process: somebody)
            try transaction.detach(session: "s", process: somebody)
        }
        let left = try ledger.read { (try $0.attachedSessions(), try $0.attachedProcesses()) }
        #expect(left == (["s", "t"], [somebody, another]))
        try ledger.write { try $0.detach(somebody) }
        #expect(try ledger.read { try $0.attachedSessions() } == ["s"])
    }

    /// The process does not claim the events of other transfers, so that other processes still receive these events.
    @Test func `a process that waits for one transfer claims only the event of this transfer`() throws {
        let ids = try ["a", "b"].map { try insert($0) { $0.isAdopted = true } }
        try ledger.write { transaction in
            try transaction.attach(session: "s", transfer: ids[0], process: somebody)
            for id in ids { try transaction.addEvent(for: #require(try transaction.transfer(id)), now: now + Double(id)) }
        }
        let isAlive: (ProcessIdentity) -> Bool = { _ in true }
        #expect(try ledger.read { try $0.waitingSessions() }.map(\.oldest) == [now + Double(ids[1])])
        let others = try ledger.write { try $0.claimEvents(session: "s", process: another, isAlive: isAlive) }
        #expect(others.map(\.transfer) == [ids[1]])
        let own = try ledger.write { try $0.claimEvents(session: "s", process: somebody, isAlive: isAlive) }
        #expect(own.map(\.transfer) == [ids[0]])
        try ledger.write { try $0.eventWasDelivered(#require(own[0].id), now: now) }
        #expect(try ledger.read { try $0.attachedProcesses() } == [])
    }

    // MARK: Bounds

    @Test func `old ended transfers are removed with their files`() throws {
        try ledger.write { transaction in
            for number in 1...2_010 {
                var record = TransferRecord(
                    session: "s", key: "k\(number)", kind: .download, method: "GET", url: "u", headers: [], now: now)
                record.state = .completed
                record.finishedAt = now
                record.file = "transfer-\(number)"
                record = try transaction.insert(record)
                if number == 3 { try transaction.addEvent(for: record, now: now) }
                if number == 4 {
                    (record.state, record.bodyFile, record.keptUntil) = (.failed, "upload-4", now + 90 * 86_400)
                    try transaction.update(record)
                }
            }
        }
        // Transfers of the last days are kept, because an app may still observe these transfers.
        #expect(try ledger.write { try $0.pruneTransfers(now: now + 29 * 86_400) }.isEmpty)
        let later = now + 31 * 86_400
        let dropped = try ledger.write { try $0.pruneTransfers(now: later) }.flatMap { [$0.file, $0.bodyFile] }.compactMap { $0 }
        #expect(dropped.count == 8, "10 of 2010 transfers are too many, and 2 of these 10 are still needed")
        #expect(!dropped.contains("transfer-3") && !dropped.contains("transfer-4"))
        #expect(dropped.contains("transfer-1"))
        #expect(try ledger.read { try $0.transfers() }.count == 2_002)
        #expect(try ledger.write { try $0.pruneTransfers(now: later) }.isEmpty)
        #expect(try ledger.read { try $0.spoolFiles() }.count == 3 * 2_003, "the complete file and both partial files")
    }

    /// If a process dies while it calls its delegate, the delivery is not certain.
    @Test func `events that a dead process claimed are claimed again`() throws {
        let id = try insert { ($0.state, $0.isAdopted) = (.completed, true) }
        func claim(_ process: ProcessIdentity, othersLive: Bool) throws -> [Int64] {
            try ledger.write { transaction in
                try transaction.claimEvents(session: "s", process: process, isAlive: { _ in othersLive }).map(\.transfer)
            }
        }
        try ledger.write { transaction in
            try transaction.addEvent(for: #require(try transaction.transfer(id)), now: now)
        }
        #expect(try claim(somebody, othersLive: true) == [id])
        #expect(try claim(another, othersLive: true).isEmpty)
        #expect(try claim(another, othersLive: false) == [id])
    }

    /// The same event kills every process that receives it. At the latest, the third process delivers the other events.
    @Test func `an event that crashes every process does not block other events`() throws {
        let ids = try (1...6).map { number in try insert("\(number)") { ($0.state, $0.isAdopted) = (.completed, true) } }
        try ledger.write { transaction in
            for id in ids { try transaction.addEvent(for: #require(try transaction.transfer(id)), now: now) }
        }
        func claimUntilDeath(_ number: Int32) throws -> [[Int64]] {
            let process = ProcessIdentity(pid: number, start: Int64(number))
            var told: [[Int64]] = []
            while told.last?.contains(ids[2]) != true {
                let claimed = try ledger.write { try $0.claimEvents(session: "s", process: process, isAlive: { _ in false }) }
                guard !claimed.isEmpty else { break }
                told.append(claimed.map(\.transfer))
            }
            return told
        }
        let batches = try (1...3).map { try claimUntilDeath($0) }
        #expect(batches[0] == [ids], "no event has been claimed before")
        #expect(batches[1] == ids[...2].map { [$0] })
        #expect(batches[2] == ids[3...].map { [$0] } + ids[...2].map { [$0] })
    }

    /// If a row of the ledger names a file, the file is never treated as a file without an owner.
    @Test(arguments: ["queued", "running", "waiting", "paused", "completed", "failed", "cancelled"])
    func `the files of a transfer in any state are known`(_ state: String) throws {
        _ = try insert { record in
            record.state = TransferRecord.State(rawValue: state)!
            (record.file, record.bodyFile) = ("part-\(state)", "body-\(state)")
        }
        #expect(Set(try ledger.read { try $0.spoolFiles() }).isSuperset(of: ["part-\(state)", "body-\(state)"]))
    }
}
