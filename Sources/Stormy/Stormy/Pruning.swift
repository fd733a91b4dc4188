import Foundation
import GRDB

extension StormyStore {
    /// The number of seconds after which old records are deleted. The agent keeps ended transfers for the same number of seconds.
    private static let retention: Double = 30 * 86_400

    /// Deletes old forecasts, feeds that are no longer requested, and photo requests without a photo. Storms are kept. Photos are
    /// also kept, because a photo whose record is deleted would be uploaded again.
    ///
    /// Records with a date in the future are kept, because the clock was ahead when these records were written. If the clock is
    /// ahead now, the next check restores the records that are deleted.
    func prune(now: Date) throws {
        let before = now.timeIntervalSince1970 - Self.retention
        try queue.write { database in
            try database.execute(sql: "DELETE FROM forecast WHERE fetchedAt < ?", arguments: [before])
            try database.execute(sql: "DELETE FROM warningFeed WHERE receivedAt < ?", arguments: [before])
            try database.execute(
                sql: "DELETE FROM photo WHERE state = 'cancelled' AND path IS NULL AND submission IS NULL AND changedAt < ?",
                arguments: [before])
        }
    }
}
