import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB
import TransferMachines

/// Functions for the fuzzer, which creates rows with arbitrary values in their columns.
package enum LedgerFuzzing {
    private static let ledger: Ledger = {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-ledger-\(getpid())")
        do {
            return try Ledger(inMemory: AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path]))
        } catch {
            fatalError("\(error)")
        }
    }()

    private static let tables = ["transfer", "request", "launch", "notification", "fact", "sessionEvent", "control"]

    /// Runs one input of the fuzzer. The first byte selects the table, and the second byte is not used. The other bytes contain
    /// the columns. A column is one byte for the type, followed by the value and a zero byte.
    package static func read(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 2 else { return }
        let table = tables[Int(bytes[0]) % tables.count]
        var fields = bytes.dropFirst(2).split(separator: 0, maxSplits: 80, omittingEmptySubsequences: false)[...]
        // The transaction is rolled back, so that each input starts with an unchanged ledger.
        _ = try? ledger.write { transaction -> Void in
            let database = transaction.database
            let columns = try Row.fetchAll(
                database, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", arguments: [table]
            )
            .map { $0[0] as String }
            let values = columns.map { _ in fields.popFirst().map(value) ?? .null }
            let marks = Array(repeating: "?", count: columns.count).joined(separator: ", ")
            try database.execute(
                sql: "INSERT OR REPLACE INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(marks))",
                arguments: StatementArguments(values))
            runQueries(transaction)
            throw CancellationError()
        }
    }

    private static func value(_ bytes: Slice<UnsafeRawBufferPointer>) -> DatabaseValue {
        guard let kind = bytes.first else { return .null }
        let rest = bytes.dropFirst()
        let text = String(decoding: rest, as: UTF8.self)
        switch kind % 5 {
        case 0: return .null
        case 1: return (Int64(text) ?? Int64(rest.count)).databaseValue
        case 2: return (Double(text) ?? 1_750_000_000).databaseValue
        case 3: return Data(rest).databaseValue
        default: return text.databaseValue
        }
    }

    /// Runs the queries that an agent and an app make in one pass.
    private static func runQueries(_ transaction: LedgerTransaction) {
        let now = Date(timeIntervalSince1970: 1_750_000_000)
        _ = try? transaction.liveLaunches()
        _ = try? transaction.waiters()
        _ = try? transaction.transfers()
        _ = try? transaction.nextTransfers(met: [], room: TransferRoom(running: []))
        _ = try? transaction.transfersToGiveUp(tried: [], now: now)
        _ = try? transaction.collectableTransfers(now: now)
        _ = try? transaction.requests()
        _ = try? transaction.firstDue(in: [], now: now)
        _ = try? transaction.history(limit: 10)
        _ = try? transaction.notifications()
        _ = try? transaction.undeliveredEvents()
        _ = try? transaction.openQuestions()
        _ = try? transaction.hasUnfinishedWork()
        _ = try? transaction.fact(.settings)
        _ = try? transaction.fact(.conditions)
        _ = try? transaction.fact(.app)
    }
}
