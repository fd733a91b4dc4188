import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

extension LedgerTransaction {
    /// Rows kept after their end; older ones are dropped.
    static let historyLimit = 1_000

    package func insert(_ launch: LaunchRecord) throws -> LaunchRecord {
        var launch = launch
        try launch.insert(database)
        try database.run(
            sql: "DELETE FROM launch WHERE endedAt IS NOT NULL AND id <= ?", arguments: [launch.id! - Int64(Self.historyLimit)])
        return launch
    }

    package func launch(_ id: Int64) throws -> LaunchRecord? {
        try LaunchRecord.fetchRareOne(
            database.cachedStatement(sql: "SELECT * FROM launch WHERE id = ?"), arguments: [id])
    }

    package func liveLaunches() throws -> [LaunchRecord] {
        try memo.rows("live launches", database) {
            try LaunchRecord.fetchRare(database.cachedStatement(sql: "SELECT * FROM launch WHERE endedAt IS NULL ORDER BY id"))
        }
    }

    /// Continued processing that ended, whose progress may still stand on the screen.
    package func endedLaunchesStillShown() throws -> [LaunchRecord] {
        try LaunchRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM launch WHERE endedAt IS NOT NULL AND noticeID IS NOT NULL"))
    }

    package func forgetEndedProgressNotices() throws {
        try database.run(sql: "UPDATE launch SET noticeID = NULL WHERE endedAt IS NOT NULL AND noticeID IS NOT NULL")
    }

    package func forgetProgressNotices() throws {
        try database.run(sql: "UPDATE launch SET noticeID = NULL WHERE noticeID IS NOT NULL")
    }

    /// The number of the launch that began last.
    package func latestLaunch() throws -> Int64? {
        try Int64.fetchOne(database.cachedStatement(sql: "SELECT MAX(id) FROM launch"))
    }

    /// Newest last.
    package func history(limit: Int) throws -> [LaunchRecord] {
        try LaunchRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM launch ORDER BY id DESC LIMIT ?"), arguments: [limit]
        ).reversed()
    }

    /// Ended launches of one identifier, newest first.
    package func endedLaunches(_ kind: LaunchKind, _ identifier: String, limit: Int) throws -> [LaunchRecord] {
        try LaunchRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM launch WHERE kind = ? AND identifier = ? AND endedAt IS NOT NULL ORDER BY id DESC LIMIT ?"),
            arguments: [kind.rawValue, identifier, limit])
    }

    /// How many launches in a row, the last ones, ended without a result by the app's doing, whichever requests of the identifier they were for.
    /// One that an agent died before it had started counts for nothing.
    package func failedInARow(_ kind: LaunchKind, _ identifier: String) throws -> Int {
        let inARow = try endedLaunches(kind, identifier, limit: 60)
            .prefix { $0.outcome?.isBlamedOnApp == true || $0.outcome == .neverBegan }
        return inARow.filter { $0.outcome?.isBlamedOnApp == true }.count
    }

    /// The latest wall-clock moment that was served for an identifier, as far as it counts: `WallClockRule.servedAhead`. A launch that
    /// died without a result served none.
    package func lastServedOccurrence(_ identifier: String, now: Date) throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT MAX(servedOccurrence) FROM launch
                    WHERE identifier = ? AND outcome IN ('completed', 'failed', 'expired', 'skipped') AND servedOccurrence <= ?
                    """), arguments: [identifier, now.timeIntervalSince1970 + WallClockRule.servedAhead])
        return seconds.map { Date(timeIntervalSince1970: $0) }
    }

    /// When the last launch of a request began; one whose process never did does not count.
    package func lastRequestStart() throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT startedAt FROM launch
                    WHERE requestToken IS NOT NULL AND pid IS NOT NULL AND kind <> 'continuedProcessing' ORDER BY id DESC LIMIT 1
                    """))
        return seconds.map(Date.init(timeIntervalSince1970:))
    }

    /// How far continued processing got, as its process says; a launch that is over is left as it was.
    package func setProgress(_ done: Int64, of total: Int64, launch id: Int64, now: Date) throws {
        try database.run(
            sql: "UPDATE launch SET progressDone = ?, progressTotal = ?, progressAt = ? WHERE id = ? AND endedAt IS NULL",
            arguments: [done, total, now.timeIntervalSince1970, id])
    }

    package func setTitle(_ title: String, subtitle: String, launch id: Int64) throws {
        try database.run(
            sql: "UPDATE launch SET title = ?, subtitle = ? WHERE id = ? AND endedAt IS NULL",
            arguments: [title, subtitle, id])
    }

    /// The process of a launch has begun to run.
    package func launchDidBegin(_ id: Int64, _ process: ProcessIdentity) throws {
        try database.run(
            sql: "UPDATE launch SET pid = ?, hostStart = ? WHERE id = ?", arguments: [process.pid, process.start, id])
    }

    /// The number of the progress notification that the server shows; `nil` if it was closed.
    package func setProgressNotice(_ number: Int64?, launch id: Int64) throws {
        try database.run(sql: "UPDATE launch SET noticeID = ? WHERE id = ?", arguments: [number, id])
    }

    /// The app's own result of its launch. The first result counts.
    package func setResult(_ result: LaunchOutcome, detail: String?, ofLaunch id: Int64) throws {
        try handle(.resultRecorded(result, detail: detail), launch: id)
    }

    /// The app of a launch began a background transfer.
    package func noteTransfer(inLaunch id: Int64) throws {
        let known = try fact(.launchesWithTransfers) ?? []
        if !known.contains(id) { try setFact(.launchesWithTransfers, known + [id]) }
    }

    package func setPersonChoosing(_ isChoosing: Bool, launch id: Int64) throws {
        try database.run(sql: "UPDATE launch SET isPersonChoosing = ? WHERE id = ?", arguments: [isChoosing, id])
    }
}
