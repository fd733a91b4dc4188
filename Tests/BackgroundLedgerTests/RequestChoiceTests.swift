import BackgroundScheduling
import Foundation
import GRDB
import Testing

@testable import BackgroundLedger

/// Tests that the index chooses the requests whose conditions are met.
@Suite struct RequestChoiceTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    @Test(arguments: 1...40)
    func `the first due request is the longest waiting one whose verdicts are met`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        func chance() -> Bool { Bool.random(using: &random) }
        func moment() -> Date? { chance() ? now + Double(Int.random(in: -50...50, using: &random)) : nil }
        var requests: [RequestRecord] = []
        var delays: [String: Date] = [:]
        var live: Set<String> = []
        for number in 0..<Int.random(in: 0...12, using: &random) {
            let kind: LaunchKind = chance() ? .appRefresh : .processing
            let request = RequestRecord(
                identifier: "r\(number)", kind: kind, earliestBegin: moment(), requiresNetwork: kind == .processing && chance(),
                requiresExternalPower: kind == .processing && chance(), runsInLowPowerMode: chance(),
                submittedAt: now - Double(Int.random(in: 0...500, using: &random)))
            delays[request.identifier] = moment()
            requests.append(request)
            if Int.random(in: 0..<4, using: &random) == 0 { live.insert(request.identifier) }
        }
        try ledger.write { transaction in
            for request in requests { try transaction.save(request) }
            for (identifier, delay) in delays {
                try transaction.database.run(
                    sql: "UPDATE request SET backoffUntil = ? WHERE identifier = ?",
                    arguments: [delay.timeIntervalSince1970, identifier])
            }
            for request in requests where live.contains(request.identifier) {
                _ = try transaction.insert(
                    LaunchRecord(
                        kind: request.kind, identifier: request.identifier, requestToken: request.token, generation: 1,
                        reason: "due", simulated: false, servedOccurrence: nil, startedAt: now))
            }
        }
        let world = PlanningWorld(
            conditions: DesktopConditions(
                isNetworkAvailable: chance(), isNetworkMetered: false, isOnExternalPower: chance(), isLowPowerMode: chance()),
            resumedAt: chance() ? now - 10 : nil)
        let open = world.openClasses(now: now)
        let (lives, first, next) = try ledger.read { transaction in
            (
                try transaction.requests().map { ($0.identifier, $0.life(try transaction.phase(of: $0))) },
                try transaction.firstDue(in: open, now: now), try transaction.nextDueTime(in: open, after: now)
            )
        }
        let due = lives.filter { $0.1.verdicts(in: world, now: now).allSatisfy(\.met) }
            .sorted { ($0.1.dueAt, $0.1.submittedAt, $0.0) < ($1.1.dueAt, $1.1.submittedAt, $1.0) }
        #expect(first?.identifier == due.first?.0)
        // The index does not contain the delay that follows a sleep of the machine. The agent schedules a separate wake-up for
        // the end of this delay.
        let settling = NetworkWakeDelay.until(resumedAt: world.resumedAt, conditions: world.conditions, now: now)
        if settling == nil { #expect(next == lives.compactMap { $0.1.nextAttempt(in: world, now: now) }.min()) }
    }

    /// The column `needs` contains one bit for each condition that the verdicts of the request contain.
    @Test func `the needs column has the needs of the request`() throws {
        for kind in [LaunchKind.appRefresh, .processing] {
            for bits in 0..<8 {
                let request = RequestRecord(
                    identifier: "a", kind: kind, requiresNetwork: bits & 1 != 0, requiresExternalPower: bits & 2 != 0,
                    runsInLowPowerMode: bits & 4 != 0, submittedAt: now)
                let needs = try ledger.write { transaction in
                    try transaction.save(request)
                    return try Int.fetchOne(transaction.database, sql: "SELECT needs FROM request")
                }
                #expect(needs == request.life(.pending).terms.needs.rawValue)
            }
        }
    }

    /// If a query scans the complete table, it is slow with many requests. No other test would show that the query scans the
    /// table.
    @Test(arguments: [LedgerTransaction.firstDueQuery, LedgerTransaction.nextDueQuery])
    func `the queries for due requests use the index`(_ query: String) throws {
        let steps = try ledger.read { transaction in
            try Row.fetchAll(transaction.database, sql: "EXPLAIN QUERY PLAN " + query, arguments: [4, 1]).map {
                $0["detail"] as String
            }
        }
        #expect(steps.first?.contains("INDEX requestDue (needs=? AND dueAt") == true, "\(steps)")
        #expect(!steps.contains { $0.contains("SCAN request") || $0.contains("USE TEMP B-TREE") }, "\(steps)")
    }
}
