import GRDB

// How uploads of photos end.
extension StormyStore {
    /// Its upload ended.
    ///
    /// - Parameters:
    ///   - isInBatch: whether a person hears of it by notification: it is in the batch then, before anybody can count it as told.
    ///   - unknown: makes the photo of which this store knows nothing; it was made anew, or comes from a backup.
    /// - Returns: `nil`: there is nothing to tell.
    func endPhoto(
        _ id: Int64, transfer: Int64, as state: PhotoRecord.State, message: String?, remoteURL: String? = nil,
        isInBatch: (PhotoRecord) -> Bool = { _ in false }, unknown: () throws -> PhotoRecord? = { nil }
    ) throws -> PhotoRecord? {
        try queue.write { database in
            // A transfer of another photo, from before this store was made anew, may have the label of one of today's.
            let photo = try PhotoRecord.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM photo WHERE id = ?"), arguments: [id])
            // One that its server lost is no transfer's any more.
            if photo?.transfer == Self.noTransfer { return nil }
            let isLabelled = photo.map { $0.transfer == transfer || $0.transfer == nil && $0.state == .queued } ?? false
            let known =
                try isLabelled
                ? photo
                : PhotoRecord.fetchOne(
                    database.cachedStatement(sql: "SELECT * FROM photo WHERE \"transfer\" = ?"), arguments: [transfer])
            guard var photo = try known ?? unknown() else { return nil }
            // The server has it: a ledger from a backup knows of that no more, and its copy is gone.
            if known != nil, photo.state == .completed, photo.transfer == transfer, state != .completed { return nil }
            photo.state = state
            photo.transfer = transfer
            photo.message = message
            photo.remoteURL = remoteURL
            photo.holders = nil
            try photo.save(database)
            if isInBatch(photo) { try PhotoBatch.add(photo, in: database) }
            return photo
        }
    }

    /// Writes the ends of queued photos, in one transaction. A record that has another transfer by now, or has ended, stays.
    func endPhotos(_ photos: [PhotoRecord]) throws {
        guard !photos.isEmpty else { return }
        try queue.write { database in
            let statement = try database.cachedStatement(
                sql: """
                    UPDATE photo SET state = ?, message = ?, remoteURL = ? WHERE id = ? AND "transfer" = ? AND state = 'queued'
                    """)
            for photo in photos {
                try statement.execute(
                    arguments: [photo.state.rawValue, photo.message, photo.remoteURL, photo.id, photo.transfer])
            }
        }
    }
}
