import BackgroundTransfer
import GRDB

// This extension handles photos that an earlier version of Stormy gave to the agent. The earlier version stored the number of a
// photo's transfer instead of the submission key.
extension PhotoRecord {
    /// Adds the column for submission keys. The columns `transfer`, `key` and `holders` are not removed, because a command of the
    /// earlier version may still be running.
    static func addSubmissions(_ database: Database) throws {
        try database.alter(table: "photo") { $0.add(column: "submission", .text) }
        try database.execute(sql: "CREATE UNIQUE INDEX photoSubmission ON photo (submission)")
        // If the ledger cannot be read now, a later call tries again.
        logged("the photos of an earlier version of Stormy") { try identifyEarlier(in: database) }
        // In earlier versions, the transfer number 0 meant that the server had lost the photo.
        try database.execute(sql: "UPDATE photo SET state = 'lost' WHERE \"transfer\" = 0 AND state = 'failed'")
    }

    /// The SQL text that selects the photos that an earlier version gave to the agent without a submission key.
    private static let unidentified = """
        FROM photo WHERE submission IS NULL AND state NOT IN ('held', 'awaitingPhoto')
            AND ("transfer" IS NOT NULL OR state = 'queued')
        """

    /// Returns whether photos of an earlier version have no submission key yet.
    static func lackSubmissions(_ database: Database) throws -> Bool {
        try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 \(unidentified))") ?? false
    }

    /// Finds the transfers of photos without a submission key, and stores the keys of these transfers in the rows of the photos.
    /// The digests must also match, because a new ledger numbers its transfers from 1, so an old number may belong to another
    /// transfer.
    static func identifyEarlier(in database: Database) throws {
        var earlier = try Row.fetchAll(database, sql: "SELECT * \(unidentified) ORDER BY id").map { row in
            (photo: try PhotoRecord(row: row), number: row["transfer"] as Int64? ?? 0)
        }
        if earlier.isEmpty { return }
        let known = try Set(String.fetchAll(database, sql: "SELECT submission FROM photo WHERE submission IS NOT NULL"))
        var transfers = try BackgroundTransfers.all().filter { transfer in
            transfer.session == PhotoUploads.sessionIdentifier && transfer.submission.map { !known.contains($0) } ?? false
        }
        // A photo is matched with a transfer by the number of the transfer. A photo has no number if the server lost the photo,
        // or if the command was killed. A photo without a number is matched with a transfer by the label of the transfer.
        for hasNumber in [true, false] {
            earlier = try earlier.filter { photo, number in
                let position = transfers.lastIndex { transfer in
                    photo.isSent(by: transfer)
                        && (hasNumber ? transfer.id == number : number == 0 && photo.isLabel(transfer.taskDescription))
                }
                guard let position else { return true }
                try photo.setSubmission(transfers.remove(at: position).submission, in: database)
                return false
            }
        }
        // The ledger does not contain the transfers of the photos that could not be matched. Photos with the state `queued` are
        // queued again later.
        for (photo, _) in earlier where photo.state != .queued {
            try photo.setSubmission("forgotten:\(photo.id ?? 0)", in: database)
        }
    }

    private func setSubmission(_ submission: String?, in database: Database) throws {
        try database.execute(sql: "UPDATE photo SET submission = ? WHERE id = ?", arguments: [submission, id])
    }

    /// Returns whether a label such as "photo-7" or "photo-7-tell" belongs to this photo.
    private func isLabel(_ text: String?) -> Bool {
        let parts = text?.split(separator: "-") ?? []
        return parts.count > 1 && parts[0] == "photo" && Int64(parts[1]) == id
    }

    private func isSent(by transfer: BackgroundTransferStatus) -> Bool {
        // Another transfer may have sent the same photo to another destination.
        if let name = transfer.serverName, StormySettings.current.destinations.contains(where: { $0.name == name }),
            isForDestination(name) == false
        {
            return false
        }
        return digest.map { [transfer.copySHA256, transfer.sourceSHA256].contains($0) } ?? (transfer.file == path)
    }
}
