import BackgroundScheduling
import Foundation
import GRDB

extension LedgerTransaction {
    /// Corrects times that were stored while the clock was ahead. Each delay keeps its length, and starts again now. If the
    /// stored time of a past event is in the future, the time is set to now. Times that an earlier version stored are corrected
    /// in the same way.
    ///
    /// If no stored time is after `limit`, the method changes nothing.
    ///
    /// - Parameter limit: The latest time that can be correct. A later time was stored while the clock was wrong. If the clock
    ///   was just set back, the limit is `now`. Otherwise the limit is some hours after `now`.
    package func correctFutureDates(beyond limit: Date, now: Date) throws {
        let (limit, now) = (limit.timeIntervalSince1970, now.timeIntervalSince1970)
        for sql in Self.mending { try database.run(sql: sql, arguments: ["limit": limit, "now": now]) }
    }

    /// Excludes a period in which no agent could work (sleep, power off, a clock that was set forward) from the time limits of
    /// transfers. The period does not count as time without progress, and does not shorten the time for which the copy of a
    /// failed upload is kept.
    package func creditTimeAway(_ seconds: Double, now: Date) throws {
        try database.run(
            sql: """
                UPDATE transfer SET lastProgressAt = max(lastProgressAt, min(lastProgressAt + :away, :now)),
                    triedSince = max(triedSince, min(triedSince + :away, :now))
                WHERE state IN ('queued', 'running', 'waiting', 'paused')
                """, arguments: ["away": seconds, "now": now.timeIntervalSince1970])
        try database.run(
            sql:
                "UPDATE transfer SET keptUntil = keptUntil + :away WHERE kind = 'upload' AND bodyFile IS NOT NULL AND keptUntil > 0",
            arguments: ["away": seconds])
    }

    private static let mending = [
        // The occurrence that the launch was for is removed. The launch at the wrong time does not replace the launch at the
        // right time.
        "UPDATE launch SET servedOccurrence = NULL WHERE servedOccurrence > :limit AND startedAt > :limit",
        "UPDATE launch SET startedAt = :now WHERE startedAt > :limit",
        "UPDATE launch SET endedAt = :now WHERE endedAt > :limit",
        "UPDATE request SET \(shifted(["earliestBegin", "beginAfterRetry"], with: "submittedAt")) "
            + "WHERE recurrence IS NULL AND submittedAt > :limit",
        "UPDATE request SET submittedAt = :now WHERE submittedAt > :limit",
        "UPDATE request SET lastFailureAt = :now WHERE lastFailureAt > :limit",
        "UPDATE transfer SET "
            + shifted(
                ["lastProgressAt", "triedSince", "nextAttemptAt", "earliestBegin", "adoptableUntil", "keptUntil"],
                with: "createdAt")
            + " WHERE createdAt > :limit",
        // The remaining transfers were created while the clock was correct, and were changed while the clock was wrong.
        """
        UPDATE transfer SET lastProgressAt = max(:now, coalesce(earliestBegin, 0))
        WHERE state IN ('queued', 'running', 'waiting', 'paused') AND lastProgressAt > max(:limit, coalesce(earliestBegin, 0))
        """,
        """
        UPDATE transfer SET triedSince = max(:now, coalesce(earliestBegin, 0))
        WHERE state IN ('queued', 'running', 'waiting', 'paused') AND triedSince > max(:limit, coalesce(earliestBegin, 0))
        """,
        "UPDATE transfer SET finishedAt = :now WHERE finishedAt > :limit",
        "UPDATE transfer SET adoptableUntil = :now + 60 WHERE isAdopted = 0 AND adoptableUntil > :limit + 86400",
        "UPDATE transfer SET keptUntil = :now + 2592000 WHERE keptUntil > :limit + 2592000 AND bodyFile IS NULL",
        "UPDATE sessionEvent SET createdAt = :now WHERE deliveredAt IS NULL AND createdAt > :limit",
        "UPDATE notification SET \(shifted(["dueAt"], with: "createdAt")) WHERE createdAt > :limit",
    ]

    /// Returns SQL assignments that set the first time of a row to now, and move later times by the same amount. If a later time
    /// is before the first time, it is not changed, because it was written after the clock was corrected.
    private static func shifted(_ columns: [String], with first: String) -> String {
        let moved = columns.map { "\($0) = CASE WHEN \($0) >= \(first) THEN \($0) - (\(first) - :now) ELSE \($0) END" }
        return (moved + ["\(first) = :now"]).joined(separator: ", ")
    }
}
