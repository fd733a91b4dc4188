import BackgroundScheduling
import Foundation
import GRDB
import Testing
@testable import BackgroundLedger

/// Tests in which a newer program upgrades a ledger of the first version.
@Suite struct LedgerUpgradeTests {
    private let test: TestLedger

    init() throws {
        test = try TestLedger()
        try test.directories.createStateFolders()
        let queue = try DatabaseQueue(path: test.directories.ledger.path)
        try LedgerSchema.migrator.migrate(queue, upTo: "1: requests, launches, transfers, notifications")
        try queue.write { database in
            // The rows have the form that version 1 wrote.
            try database.execute(
                sql: """
                    INSERT INTO request (identifier, token, kind, earliestBegin, recurrence, occurrence, spread, missed,
                        requiresNetwork, requiresExternalPower, submittedAt, failures)
                    VALUES ('StormyNoon', 't', 'appRefresh', 1000, '{"daily":{"_0":{"hour":12,"minute":0,"second":0}}}', 940, 60,
                        'once', 0, 0, 500, 0);
                    INSERT INTO launch (kind, identifier, requestToken, generation, reason, simulated, startedAt,
                        isPersonChoosing, endedAt, outcome)
                    VALUES ('appRefresh', 'StormyNoon', 't', 1, 'due', 0, 400, 0, 410, 'completed');
                    INSERT INTO transfer (session, key, kind, method, url, headers, state, bytesDone, bytesOnWire, attempts,
                        fruitlessAttempts, attemptNumber, taskIdentifier, isAdopted, createdAt, lastProgressAt, idleTimeout,
                        resourceTimeout)
                    VALUES ('s', 'k', 'download', 'GET', 'http://127.0.0.1/', '[]', 'queued', 0, 0, 0, 0, 0, 1, 1, 400, 400, 60, 600);
                    INSERT INTO fact VALUES ('settings', '{"backoffBase":7,"grace":5,"notificationsEnabled":true,"processingBudget":600,"quietHours":"","refreshBudget":30}');
                    INSERT INTO fact VALUES ('conditions', '{"conditions":{"isNetworkAvailable":true,"isNetworkMetered":true,"isOnExternalPower":true},"networkSince":1,"powerSince":2}');
                    """)
        }
        try queue.close()
    }

    @Test func `an upgrade keeps the rows of the first version`() throws {
        try test.open().read { transaction throws -> Void in
            let request = try #require(try transaction.request("StormyNoon"))
            #expect(request.recurrence == .daily(.noon))
            #expect(request.runsInLowPowerMode == false)
            #expect(request.wakesSystem == false)
            let open = RequestNeeds(rawValue: 15).openClasses
            #expect(try transaction.firstDue(in: open, now: Date(timeIntervalSince1970: 1_000))?.identifier == "StormyNoon")
            #expect(
                try transaction.nextDueTime(in: open, after: Date(timeIntervalSince1970: 999))?.timeIntervalSince1970 == 1_000)
            let transfer = try #require(try transaction.transfer(1))
            #expect(transfer.destinationFolder == nil && transfer.hasDestination(of: transfer))
            #expect(try transaction.history(limit: 10).map(\.outcome) == [.completed])
            #expect(try transaction.fact(.settings)?.backoffBase == 7)
            #expect(try transaction.fact(.settings)?.launchSpacing == AgentSettings().launchSpacing)
            #expect(try transaction.fact(.conditions)?.conditions.isNetworkMetered == true)
            #expect(try transaction.fact(.conditions)?.conditions.isLowPowerMode == false)
        }
    }

    /// An agent of the first version is still running, and writes the columns of the first version. The computed columns stay
    /// correct.
    @Test func `a program of the first version can still write to the upgraded ledger`() throws {
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

    @Test func `a newer migration is detected while the ledger is open`() throws {
        let ledger = try test.open()
        #expect(try !ledger.read { try $0.isSuperseded() })
        let newer = try DatabaseQueue(path: test.directories.ledger.path)
        try newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
        #expect(try ledger.read { try $0.isSuperseded() })
    }
}
