import GRDB

// Queries that find transfers by the keys with which the transfers were submitted.
extension LedgerTransaction {
    /// Returns a dictionary with the transfer of each key. If several transfers have the same key, the dictionary contains the
    /// newest transfer. Keys without a transfer are ignored.
    package func transfers(ofKeys keys: [String], session: String) throws -> [String: TransferRecord] {
        let statement = try database.cachedStatement(
            sql: "SELECT * FROM transfer WHERE session = ? AND key = ? ORDER BY id DESC LIMIT 1")
        return try keys.reduce(into: [:]) { $0[$1] = try TransferRecord.fetchOne(statement, arguments: [session, $1]) }
    }

    /// Returns a dictionary with the state of the transfer of each key. The query reads only one column, because the app may pass
    /// thousands of keys.
    package func states(ofKeys keys: [String], session: String) throws -> [String: TransferRecord.State] {
        let statement = try database.cachedStatement(
            sql: "SELECT state FROM transfer WHERE session = ? AND key = ? ORDER BY id DESC LIMIT 1")
        return try keys.reduce(into: [:]) { states, key in
            states[key] = try String.fetchOne(statement, arguments: [session, key]).flatMap(TransferRecord.State.init)
        }
    }
}
