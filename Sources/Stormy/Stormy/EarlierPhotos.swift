import BackgroundTransfer
import GRDB

// Photos that an earlier version gave to the agent. An earlier version stored the number of the transfer, and not the key.
extension PhotoRecord {
    /// The columns `transfer`, `key` and `holders` stay, because a command of the earlier version may be running.
    static func addSubmissions(_ database: Database) throws {
        try database.alter(table: "photo") { $0.add(column: "submission", .text) }
        try database.execute(sql: "CREATE UNIQUE INDEX photoSubmission ON photo (submission)")
        // Without a key a photo that is on its way is found at the next look, and a failed one is a new upload if it is given again.
        logged("the photos of an earlier version") { try identifyEarlier(in: database) }
        // The number 0 meant that a server had lost the photo.
        try database.execute(sql: "UPDATE photo SET state = 'lost' WHERE \"transfer\" = 0 AND state = 'failed'")
    }

    /// Gives photos without a key the key of their transfer. The digest must match as well, because the numbers of a new ledger begin at one.
    static func identifyEarlier(in database: Database) throws {
        let earlier = try Row.fetchAll(
            database,
            sql: """
                SELECT * FROM photo WHERE submission IS NULL AND ("transfer" IS NOT NULL OR state = 'queued') ORDER BY id DESC
                """)
        if earlier.isEmpty { return }
        var transfers = try BackgroundTransfers.all().filter { $0.session == PhotoUploads.sessionIdentifier }
        for row in earlier {
            let (photo, number) = (try PhotoRecord(row: row), row["transfer"] as Int64? ?? 0)
            // The number is not known if the server lost the photo, or if the command was killed.
            let position = transfers.lastIndex { [0, $0.id].contains(number) && photo.isSent(by: $0) }
            guard let position else { continue }
            try database.execute(
                sql: "UPDATE OR IGNORE photo SET submission = ? WHERE id = ?",
                arguments: [transfers.remove(at: position).submission, photo.id])
        }
    }

    private func isSent(by transfer: BackgroundTransferStatus) -> Bool {
        // Another transfer may have sent the same photo to another destination.
        if let name = transfer.serverName, StormySettings.current.destinations.contains(where: { $0.name == name }),
            goesTo(name) == false
        {
            return false
        }
        return digest.map { [transfer.copySHA256, transfer.sourceSHA256].contains($0) } ?? (transfer.file == path)
    }
}
