import BackgroundScheduling
import Foundation
import GRDB

extension LedgerTransaction {
    /// Mends what a clock that was ahead has written: what was to be after a span is so again, counted from now, and nothing that has
    /// happened lies in the future. A ledger from such a time heals the same way.
    ///
    /// Changes nothing where no moment lies further ahead than clocks are mistaken by in passing.
    ///
    /// - Parameter limit: what was written later than this was written by a clock that was wrong; after a step back now itself,
    ///   otherwise some hours ahead.
    package func mendMoments(beyond limit: Date, now: Date) throws {
        let (limit, now) = (limit.timeIntervalSince1970, now.timeIntervalSince1970)
        for sql in Self.mending { try database.run(sql: sql, arguments: ["limit": limit, "now": now]) }
    }

    /// Nobody looked for so many seconds (asleep, switched off, a clock that was set forward): they are none without progress, and none of
    /// those for which the copy of a photo that failed is kept.
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
        // Nobody was served by it.
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
        // Begun before the mistake, and changed during it.
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

    /// A row's first moment is now, and what came after it comes as long after it. What lies before it was written by the clock that is right,
    /// since then, and stays.
    private static func shifted(_ columns: [String], with first: String) -> String {
        let moved = columns.map { "\($0) = CASE WHEN \($0) >= \(first) THEN \($0) - (\(first) - :now) ELSE \($0) END" }
        return (moved + ["\(first) = :now"]).joined(separator: ", ")
    }
}
