import Foundation
import GRDB

extension StormyStore {
    /// Seconds after which what only lists would still show is forgotten: as long as the agent keeps transfers that ended.
    private static let retention: Double = 30 * 86_400

    /// Forgets forecasts that are long over, feeds that are not requested any more and photo jobs that got no photo. Storms are kept, and so is every photo that was given: it
    /// would be uploaded again otherwise.
    ///
    /// What is dated in the future is left alone: a clock was ahead when it was written. A clock that is ahead now takes away what the
    /// next check brings back.
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
