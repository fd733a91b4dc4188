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
