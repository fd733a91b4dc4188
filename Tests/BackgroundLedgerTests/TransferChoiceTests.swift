import BackgroundScheduling
import Foundation
import GRDB
import Testing

@testable import BackgroundLedger

/// Tests that the index chooses the same transfers as a search of the complete list.
@Suite struct TransferChoiceTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    private func record(_ host: String, _ change: (inout TransferRecord) -> Void = { _ in }) -> TransferRecord {
        var record = TransferRecord(
            session: "s", key: UUID().uuidString, kind: .download, method: "GET", url: "http://\(host)/x", headers: [], now: now)
        change(&record)
        return record
    }

    @Test(arguments: 1...60) func `the index chooses the same transfers as the sorted list`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        var rows: [TransferRecord] = []
        // Every second seed creates many rows that belong to only three classes. With these seeds, no class is read completely.
        let (most, classes) = seed.isMultiple(of: 2) ? (60, 16) : (400, 3)
        for _ in 0..<Int.random(in: 0...most, using: &random) {
            let host = ["a", "b", "c", "d"].randomElement(using: &random)!
            rows.append(
                record(host) {
                    // If there are many rows, all rows of one host have the same limit, like the transfers of one app.
                    $0.hostLimit = most > 60 ? 1 + Int(host.utf8.first!) % 4 : Int.random(in: 1...4, using: &random)
                    $0.priority = [0.25, 0.5, 0.75].randomElement(using: &random)!
                    $0.needs = TransferNeeds(rawValue: Int.random(in: 0..<classes, using: &random))
                    $0.isSuspended = Int.random(in: 0..<6, using: &random) == 0
                    $0.state = [.queued, .queued, .queued, .waiting, .paused, .completed].randomElement(using: &random)!
                })
        }
        let stored = try ledger.write { transaction in try rows.map { try transaction.insert($0) } }
        let met = TransferNeeds(rawValue: Int.random(in: 0..<16, using: &random))
        let running = (0..<Int.random(in: 0...14, using: &random)).map { _ in
            "http://" + ["a", "b", "x"].randomElement(using: &random)!
        }
        var room = TransferRoom(running: running)
        var wanted: [Int64] = []
        let eligible = stored.filter { $0.state == .queued && !$0.isSuspended && met.isSuperset(of: $0.needs) }
        for row in eligible.sorted(by: { ($1.priority, $0.id!) < ($0.priority, $1.id!) })
        where room.has(row.host, limit: row.hostLimit) {
            room.insert(row.host)
            wanted.append(row.id!)
        }
        let chosen = try ledger.read { try $0.nextTransfers(met: met, room: TransferRoom(running: running)).map(\.id) }
        #expect(chosen == wanted)
    }

    /// The busy host has 2,000 transfers at the front of the queue.
    @Test func `a busy host does not delay other hosts`() throws {
        let lone = try ledger.write { transaction -> Int64? in
            for _ in 0..<2_000 { _ = try transaction.insert(record("busy") { $0.priority = 0.9 }) }
            return try transaction.insert(record("lone")).id
        }
        let running = Array(repeating: "http://busy", count: 6)
        let chosen = try ledger.read { try $0.nextTransfers(met: [], room: TransferRoom(running: running)) }
        #expect(chosen.map(\.id) == [lone])
    }

    /// In the queue, the busy host is followed by more hosts than one query examines.
    @Test func `all of many hosts behind a busy host are served`() throws {
        try ledger.write { transaction in
            for _ in 0..<40 { _ = try transaction.insert(record("busy") { $0.priority = 0.9 }) }
            for number in 0..<300 { _ = try transaction.insert(record("host\(number)")) }
        }
        let running = Array(repeating: "http://busy", count: 6)
        var (served, last) = (Set<String>(), "")
        for _ in 0..<100 {
            try ledger.write { transaction in
                let chosen = try transaction.nextTransfers(met: [], room: TransferRoom(running: running), behind: last)
                for candidate in chosen {
                    served.insert(candidate.host)
                    last = candidate.host
                    // The transfer is queued again immediately, like a transfer that its host refused.
                    var again = try #require(try transaction.transfer(candidate.id))
                    (again.state, again.id) = (.queued, nil)
                    _ = try transaction.insert(again)
                    try transaction.database.execute(sql: "DELETE FROM transfer WHERE id = ?", arguments: [candidate.id])
                }
            }
        }
        #expect(served.count == 300)
    }

    /// No query of the agent scans the table.
    @Test func `every query of the agent uses an index`() throws {
        var plans: [String] = []
        try ledger.write { transaction in
            for _ in 0..<20 { _ = try transaction.insert(record("a")) }
            transaction.database.trace { event in
                if case .statement(let statement) = event { plans.append(statement.expandedSQL) }
            }
            let running = Array(repeating: "http://a", count: 6)
            _ = try transaction.nextTransfers(met: [.unmetered], room: TransferRoom(running: running))
            _ = try transaction.queueDueTransfers(now: now, limit: 16)
            _ = try transaction.transfersToGiveUp(tried: [1], now: now)
            _ = try transaction.collectableTransfers(now: now)
            _ = try transaction.nextCollection(after: now)
            _ = try transaction.hasActiveTransfers()
            _ = try transaction.waitingSessions()
            _ = try transaction.movingTransfers(session: "s")
            _ = try transaction.runningTransfers()
            _ = try transaction.uploadsWithOpenAnswer(to: "http://a/photos", except: 1)
            _ = try transaction.storedUploads(to: "http://a/photos", except: 1, beginning: "a")
            transaction.database.trace(nil)
        }
        #expect(plans.count > 10)
        try ledger.write { transaction in
            for sql in Set(plans) {
                let rows = try Row.fetchAll(transaction.database, sql: "EXPLAIN QUERY PLAN \(sql)")
                for row in rows {
                    let detail: String = row["detail"]
                    #expect(!detail.hasPrefix("SCAN transfer") || detail.contains("INDEX"), "\(detail): \(sql)")
                    #expect(!detail.contains("ORDER BY") || sql.contains("sessionEvent"), "\(detail): \(sql)")
                    #expect(!sql.contains("storedName") || detail.contains("storedName>?"), "\(detail): \(sql)")
                    #expect(!detail.hasPrefix("SCAN sessionEvent") || detail.contains("INDEX"), "\(detail): \(sql)")
                }
            }
        }
    }
}

/// A generator that returns the same numbers for the same seed.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
