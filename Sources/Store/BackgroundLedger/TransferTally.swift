import Foundation
import GRDB

/// The combined progress of several transfers, for a progress bar.
package struct TransferTally: Sendable, Equatable {
    package var bytesDone: Int64
    /// The total size of the transfers whose size is known.
    package var bytesTotal: Int64
    /// The number of transfers that are running, or that will run even if the user and the app do nothing.
    package var unfinished: Int
    /// The reason why the first waiting transfer waits.
    package var waitingMessage: String?

    package init(bytesDone: Int64, bytesTotal: Int64, unfinished: Int, waitingMessage: String? = nil) {
        (self.bytesDone, self.bytesTotal, self.unfinished) = (bytesDone, bytesTotal, unfinished)
        self.waitingMessage = waitingMessage
    }
}

extension LedgerTransaction {
    /// Returns the number of transfers in each state. Only uploads, and downloads with a destination, are included.
    package func countsOfNamedTransfers() throws -> [TransferRecord.State: Int] {
        let rows = try Row.fetchAll(
            database,
            sql: "SELECT state, COUNT(*) FROM transfer WHERE kind = 'upload' OR destination IS NOT NULL GROUP BY state")
        let pairs = rows.compactMap { row -> (TransferRecord.State, Int)? in
            TransferRecord.State(rawValue: row[0]).map { ($0, row[1]) }
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Returns the number of a session's newest transfer. The transfer may have ended.
    package func newestTransfer(session: String) throws -> Int64? {
        try Int64.fetchOne(
            database.cachedStatement(sql: "SELECT id FROM transfer WHERE session = ? ORDER BY id DESC LIMIT 1"),
            arguments: [session])
    }

    /// Returns the combined progress of these transfers. The query reads only a few columns, because the query runs at every
    /// commit while progress is shown.
    package func tally(of transfers: [Int64]) throws -> TransferTally {
        let numbers = "[" + transfers.map(String.init).joined(separator: ",") + "]"
        let row = try Row.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT COALESCE(SUM(bytesDone), 0), COALESCE(SUM(bytesTotal), 0),
                        COALESCE(SUM(state IN ('queued', 'running', 'waiting') AND isSuspended = 0), 0),
                        MIN(CASE state WHEN 'waiting' THEN transfer.id END)
                    FROM json_each(?) JOIN transfer ON transfer.id = value
                    """), arguments: [numbers])
        guard let row else { return TransferTally(bytesDone: 0, bytesTotal: 0, unfinished: 0) }
        let first: Int64? = row[3]
        return TransferTally(
            bytesDone: row[0], bytesTotal: row[1], unfinished: row[2],
            waitingMessage: try first.flatMap { try transfer($0)?.errorMessage })
    }
}
