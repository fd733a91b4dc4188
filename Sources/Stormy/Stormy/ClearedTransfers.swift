extension StormyStore {
    private static let cleared = "clearedTransfers"

    /// Returns the ended transfers that the command `transfers` no longer shows, because the user removed them with `transfers
    /// clear`.
    package func clearedTransfers() throws -> Set<String> {
        Set(try setting(Self.cleared)?.split(separator: " ").map(String.init) ?? [])
    }

    /// Removes ended transfers from the output of `transfers`. The records, receipts and files of these transfers are kept.
    ///
    /// - Parameter ended: All transfers that have ended. The store keeps only these ids, because the ledger does not contain
    ///   other removed transfers any more.
    /// - Returns: The number of transfers that this call removes from the output.
    package func clearTransfers(_ ended: [String]) throws -> Int {
        let before = try clearedTransfers()
        try set(Self.cleared, ended.joined(separator: " "))
        return ended.count { !before.contains($0) }
    }

    /// Lets the command `transfers` show removed transfers again, because these transfers continue.
    ///
    /// - Parameter ids: The ids of the transfers, or `nil` for all transfers.
    package func listAgain(_ ids: [String]?) throws {
        guard let ids else { return try removeSetting(Self.cleared) }
        let left = try clearedTransfers().subtracting(ids)
        try set(Self.cleared, left.sorted().joined(separator: " "))
    }
}
