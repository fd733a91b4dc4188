import GRDB

/// The result of the upload of a photo.
struct PhotoEnd {
    let submission: String
    let state: PhotoRecord.State
    var message: String?
    var remoteURL: String?
}

// This extension stores the results of uploads of photos.
extension StormyStore {
    /// Stores the results of uploads in one transaction.
    ///
    /// - Parameters:
    ///   - isInBatch: A closure that returns `true` if a notification reports the result. If the closure returns `true`, the
    ///     photo is added to the batch in the same transaction, before the result counts as reported.
    /// - Returns: The photo of each result, or `nil` if there is nothing to report.
    func endPhotos(_ ends: [PhotoEnd], isInBatch: (PhotoRecord) -> Bool = { _ in false }) throws -> [PhotoRecord?] {
        try queue.write { database in
            try ends.map { end in
                guard var photo = try Self.photo(submittedAs: end.submission, in: database) else { return nil }
                switch photo.state {
                // A completed photo stays completed, because the server has the photo. A ledger that was restored from a backup
                // may report another result, because the backup contains neither the completion nor the agent's copy.
                case .completed where end.state != .completed: return nil
                case .awaitingPhoto, .held, .lost: return nil
                case .queued, .completed, .failed, .cancelled: break
                }
                (photo.state, photo.message, photo.remoteURL) = (end.state, end.message, end.remoteURL)
                try photo.save(database)
                if isInBatch(photo) { try PhotoBatch.add(photo, in: database) }
                return photo
            }
        }
    }

    /// Stores new states of photos in one transaction. A record is not changed if the record has another transfer now, or does
    /// not have the state `state` any more.
    func change(_ photos: [PhotoRecord], from state: PhotoRecord.State) throws {
        guard !photos.isEmpty else { return }
        try queue.write { database in
            let statement = try database.cachedStatement(
                sql: """
                    UPDATE photo SET state = ?1, message = ?2, remoteURL = ?3, changedAt = ?4,
                        submission = CASE WHEN ?1 = 'held' THEN NULL ELSE submission END
                    WHERE id = ?5 AND submission IS ?6 AND state = ?7
                    """)
            for photo in photos {
                try statement.execute(
                    arguments: [
                        photo.state.rawValue, photo.message, photo.remoteURL, photo.changedAt.timeIntervalSince1970, photo.id,
                        photo.submission, state.rawValue,
                    ])
            }
        }
    }
}
