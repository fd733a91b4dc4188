import GRDB

// Transfers by the keys under which they were submitted.
extension LedgerTransaction {
    /// Returns the transfer of each key. The keys of the dictionary are these keys. If several transfers have the same key, the
    /// newest transfer is returned. Keys without a transfer are ignored.
    package func transfers(ofKeys keys: [String], session: String) throws -> [String: TransferRecord] {
        let statement = try database.cachedStatement(
            sql: "SELECT * FROM transfer WHERE session = ? AND key = ? ORDER BY id DESC LIMIT 1")
        return try keys.reduce(into: [:]) { $0[$1] = try TransferRecord.fetchOne(statement, arguments: [session, $1]) }
    }

    /// Returns the state of the transfer of each key. The keys of the dictionary are these keys. No other column is read, because
    /// there may be thousands of keys.
    package func states(ofKeys keys: [String], session: String) throws -> [String: TransferRecord.State] {
        let statement = try database.cachedStatement(
            sql: "SELECT state FROM transfer WHERE session = ? AND key = ? ORDER BY id DESC LIMIT 1")
        return try keys.reduce(into: [:]) { states, key in
            states[key] = try String.fetchOne(statement, arguments: [session, key]).flatMap(TransferRecord.State.init)
        }
    }
}
