import BackgroundScheduling
import Foundation
import GRDB
import Testing

@testable import BackgroundLedger

/// The index chooses as the planner does.
@Suite struct RequestChoiceTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    @Test(arguments: 1...40)
    func itIsThePlannersChoice(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        func chance() -> Bool { Bool.random(using: &random) }
        func moment() -> Date? { chance() ? now + Double(Int.random(in: -50...50, using: &random)) : nil }
        var requests: [RequestRecord] = []
        var live: Set<String> = []
        for number in 0..<Int.random(in: 0...12, using: &random) {
            let kind: LaunchKind = chance() ? .appRefresh : .processing
            var request = RequestRecord(
                identifier: "r\(number)", kind: kind, earliestBegin: moment(), requiresNetwork: kind == .processing && chance(),
                requiresExternalPower: kind == .processing && chance(),
                submittedAt: now - Double(Int.random(in: 0...500, using: &random)))
            request.runsInLowPowerMode = chance()
            request.backoffUntil = moment()
            requests.append(request)
            if Int.random(in: 0..<4, using: &random) == 0 { live.insert(request.identifier) }
        }
        try ledger.write { transaction in
            for request in requests { try transaction.save(request) }
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
        let plan = RequestPlanner.plan(
            requests.map { $0.plannable(hasLiveLaunch: live.contains($0.identifier)) }, in: world, now: now)
        let open = world.openClasses(now: now)
        let (first, next) = try ledger.read {
            (try $0.firstDue(in: open, now: now), try $0.nextDueTime(in: open, after: now))
        }
        #expect(first?.identifier == plan.due.first)
        // The patience after a sleep is the agent's own wake, beside the index.
        let settling = NetworkSettling.until(resumedAt: world.resumedAt, conditions: world.conditions, now: now)
        if settling == nil { #expect(next == plan.nextWake) }
    }

    /// Bit for bit the set that the planner opens and shuts.
    @Test func theColumnIsTheSet() throws {
        for kind in [LaunchKind.appRefresh, .processing] {
            for bits in 0..<8 {
                var request = RequestRecord(
                    identifier: "a", kind: kind, earliestBegin: nil, requiresNetwork: bits & 1 != 0,
                    requiresExternalPower: bits & 2 != 0, submittedAt: now)
                request.runsInLowPowerMode = bits & 4 != 0
                let needs = try ledger.write { transaction in
                    try transaction.save(request)
                    return try Int.fetchOne(transaction.database, sql: "SELECT needs FROM request")
                }
                #expect(needs == RequestNeeds(of: request.plannable(hasLiveLaunch: false)).rawValue)
            }
        }
    }

    /// The index is used: a query that scans would be slow with many requests, and nobody would see why.
    @Test(arguments: [LedgerTransaction.firstDueQuery, LedgerTransaction.nextDueQuery])
    func theIndexIsUsed(_ query: String) throws {
        let steps = try ledger.read { transaction in
            try Row.fetchAll(transaction.database, sql: "EXPLAIN QUERY PLAN " + query, arguments: [4, 1]).map {
                $0["detail"] as String
            }
        }
        #expect(steps.first?.contains("INDEX requestDue (needs=? AND dueAt") == true, "\(steps)")
        #expect(!steps.contains { $0.contains("SCAN request") || $0.contains("USE TEMP B-TREE") }, "\(steps)")
    }
}

/// A ledger of the first version, brought up by a newer program.
@Suite struct LedgerUpgradeTests {
    private let test: TestLedger

    init() throws {
        test = try TestLedger()
        try test.directories.createStateFolders()
        let queue = try DatabaseQueue(path: test.directories.ledger.path)
        try LedgerSchema.migrator.migrate(queue, upTo: "1: requests, launches, transfers, notifications")
        try queue.write { database in
            // As version 1 wrote them.
            try database.execute(
                sql: """
                    INSERT INTO request (identifier, token, kind, earliestBegin, recurrence, occurrence, spread, missed,
                        requiresNetwork, requiresExternalPower, submittedAt, failures)
                    VALUES ('StormyNoon', 't', 'appRefresh', 1000, '{"daily":{"_0":{"hour":12,"minute":0,"second":0}}}', 940, 60,
                        'once', 0, 0, 500, 0);
                    INSERT INTO launch (kind, identifier, requestToken, generation, reason, simulated, startedAt,
                        isPersonChoosing, endedAt, outcome)
                    VALUES ('appRefresh', 'StormyNoon', 't', 1, 'due', 0, 400, 0, 410, 'completed');
                    INSERT INTO fact VALUES ('settings', '{"backoffBase":7,"grace":5,"notificationsEnabled":true,"processingBudget":600,"quietHours":"","refreshBudget":30}');
                    INSERT INTO fact VALUES ('conditions', '{"conditions":{"isNetworkAvailable":true,"isNetworkMetered":true,"isOnExternalPower":true},"networkSince":1,"powerSince":2}');
                    """)
        }
        try queue.close()
    }

    @Test func nothingOfItIsLost() throws {
        try test.open().read { transaction throws -> Void in
            let request = try #require(try transaction.request("StormyNoon"))
            #expect(request.recurrence == .daily(.noon))
            #expect(request.runsInLowPowerMode == false)
            let open = RequestNeeds(rawValue: 15).openClasses
            #expect(try transaction.firstDue(in: open, now: Date(timeIntervalSince1970: 1_000))?.identifier == "StormyNoon")
            #expect(
                try transaction.nextDueTime(in: open, after: Date(timeIntervalSince1970: 999))?.timeIntervalSince1970 == 1_000)
            #expect(try transaction.history(limit: 10).map(\.outcome) == [.completed])
            #expect(try transaction.fact(.settings)?.backoffBase == 7)
            #expect(try transaction.fact(.settings)?.launchSpacing == AgentSettings().launchSpacing)
            #expect(try transaction.fact(.conditions)?.conditions.isNetworkMetered == true)
            #expect(try transaction.fact(.conditions)?.conditions.isLowPowerMode == false)
        }
    }

    /// An agent of the first version still runs and writes as it knows: what is computed stays right.
    @Test func theEarlierProgramGoesOnWriting() throws {
        let ledger = try test.open()
        let old = try DatabaseQueue(path: test.directories.ledger.path)
        try old.write { try $0.execute(sql: "UPDATE request SET earliestBegin = 2000") }
        try old.write {
            try $0.execute(
                sql: """
                    INSERT INTO launch (kind, identifier, requestToken, generation, reason, simulated, startedAt, isPersonChoosing)
                    VALUES ('urlSession', 's', NULL, 1, 'x', 0, 1, 0)
                    """)
        }
        try ledger.read { transaction throws -> Void in
            let open = RequestNeeds(rawValue: 15).openClasses
            #expect(try transaction.firstDue(in: open, now: Date(timeIntervalSince1970: 1_999)) == nil)
            #expect(try transaction.liveLaunches().map(\.identifier) == ["s"])
        }
    }

    @Test func aNewerMigrationIsNoticedWhileItIsOpen() throws {
        let ledger = try test.open()
        #expect(try !ledger.read { try $0.isSuperseded() })
        let newer = try DatabaseQueue(path: test.directories.ledger.path)
        try newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
        #expect(try ledger.read { try $0.isSuperseded() })
    }
}
