import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

extension LedgerTransaction {
    /// The maximum number of ended launches that are kept in the ledger. Older rows are deleted.
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

    /// Returns the ended launches of continued processing whose progress notification may still be on the screen.
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

    /// Returns the id of the launch that began last.
    package func latestLaunch() throws -> Int64? {
        try Int64.fetchOne(database.cachedStatement(sql: "SELECT MAX(id) FROM launch"))
    }

    /// Returns the newest launches, in the order of their starts.
    package func history(limit: Int) throws -> [LaunchRecord] {
        try LaunchRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM launch ORDER BY id DESC LIMIT ?"), arguments: [limit]
        ).reversed()
    }

    /// Returns the ended launches of one identifier, newest first.
    package func endedLaunches(_ kind: LaunchKind, _ identifier: String, limit: Int) throws -> [LaunchRecord] {
        try LaunchRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM launch WHERE kind = ? AND identifier = ? AND endedAt IS NOT NULL ORDER BY id DESC LIMIT ?"),
            arguments: [kind.rawValue, identifier, limit])
    }

    /// Returns the number of the latest consecutive launches that ended without a result because of the app. The launches can
    /// belong to different requests with the same identifier. A launch is left out if the agent was killed before it started the
    /// process of the launch.
    package func failedInARow(_ kind: LaunchKind, _ identifier: String) throws -> Int {
        let inARow = try endedLaunches(kind, identifier, limit: 60)
            .prefix { $0.outcome?.isBlamedOnApp == true || $0.outcome == .neverBegan }
        return inARow.filter { $0.outcome?.isBlamedOnApp == true }.count
    }

    /// Returns the latest occurrence of a repeating request whose launch ended with a result. Occurrences more than
    /// `WallClockRule.servedAhead` in the future are ignored.
    package func lastServedOccurrence(_ identifier: String, now: Date) throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT MAX(servedOccurrence) FROM launch
                    WHERE identifier = ? AND outcome IN ('completed', 'failed', 'expired', 'skipped') AND servedOccurrence <= ?
                    """), arguments: [identifier, now.timeIntervalSince1970 + WallClockRule.servedAhead])
        return seconds.map { Date(timeIntervalSince1970: $0) }
    }

    /// Returns the time at which the last launch of a request began. Launches whose process never started are ignored.
    package func lastRequestStart() throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT startedAt FROM launch
                    WHERE requestToken IS NOT NULL AND pid IS NOT NULL AND kind <> 'continuedProcessing' ORDER BY id DESC LIMIT 1
                    """))
        return seconds.map(Date.init(timeIntervalSince1970:))
    }

    /// Records the progress of continued processing. If the launch has ended, nothing is changed.
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

    /// Records that the process of a launch has started.
    package func launchDidBegin(_ id: Int64, _ process: ProcessIdentity) throws {
        try database.run(
            sql: "UPDATE launch SET pid = ?, hostStart = ? WHERE id = ?", arguments: [process.pid, process.start, id])
    }

    /// Stores the number that the notification server assigned to the progress notification, or `nil` if the notification was
    /// closed.
    package func setProgressNotice(_ number: Int64?, launch id: Int64) throws {
        try database.run(sql: "UPDATE launch SET noticeID = ? WHERE id = ?", arguments: [number, id])
    }

    /// Records the result that the app reported for its launch. Later results are ignored.
    package func setResult(_ result: LaunchOutcome, detail: String?, ofLaunch id: Int64) throws {
        try handle(.resultRecorded(result, detail: detail), launch: id)
    }

    /// Records that the app of a launch began a background transfer.
    package func recordTransfer(inLaunch id: Int64) throws {
        let known = try fact(.launchesWithTransfers) ?? []
        if !known.contains(id) { try setFact(.launchesWithTransfers, known + [id]) }
    }

    package func setPersonChoosing(_ isChoosing: Bool, launch id: Int64) throws {
        try database.run(sql: "UPDATE launch SET isPersonChoosing = ? WHERE id = ?", arguments: [isChoosing, id])
    }
}
