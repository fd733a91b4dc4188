import Foundation
import GRDB
import ProcessSupport

// The files of transfers: their names, their owners and their removal.
extension LedgerTransaction {
    /// Returns the transfers with files that are not needed any more:
    ///
    /// - transfers that no task has adopted and no process awaits, after the grace time
    /// - transfers whose events the app has received
    /// - cancelled transfers that still have a copy of the request's body
    /// - transfers whose partial files or copies have reached their retention time
    package func collectableTransfers(now: Date, limit: Int = 256) throws -> [TransferRecord] {
        let seconds = now.timeIntervalSince1970
        let queries: [(String, StatementArguments)] = [
            (
                """
                isAdopted = 0 AND adoptableUntil IS NOT NULL AND adoptableUntil <= ? AND id NOT IN (SELECT transfer FROM waiter)
                """, [seconds]
            ),
            ("state = 'cancelled' AND bodyFile IS NOT NULL", []),
            ("keptUntil IS NOT NULL AND keptUntil <= ?", [seconds]),
            (
                """
                id IN (SELECT transfer FROM sessionEvent WHERE deliveredAt IS NOT NULL AND isSettled = 0)
                AND id NOT IN (SELECT transfer FROM waiter)
                """, []
            ),
        ]
        return try queries.flatMap { condition, arguments in
            try TransferRecord.fetchRare(
                database.cachedStatement(sql: "SELECT * FROM transfer WHERE \(condition) LIMIT \(limit)"), arguments: arguments)
        }
    }

    /// Records that the files of a delivered transfer were removed.
    package func filesWereRemoved(_ transfer: Int64) throws {
        try database.cachedStatement(sql: "UPDATE sessionEvent SET isSettled = 1 WHERE transfer = ? AND deliveredAt IS NOT NULL")
            .execute(arguments: [transfer])
    }

    /// Returns the next time at which the grace time of a transfer is over. The grace time begins when no process awaits the
    /// transfer any more.
    package func nextCollection(after now: Date) throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT MIN(adoptableUntil) FROM transfer WHERE isAdopted = 0 AND adoptableUntil IS NOT NULL
                    AND adoptableUntil > ? AND id NOT IN (SELECT transfer FROM waiter)
                    """), arguments: [now.timeIntervalSince1970])
        return seconds.map { Date(timeIntervalSince1970: $0) }
    }

    /// Returns the names of the files in the spool that belong to a row, including partial files.
    package func spoolFiles() throws -> Set<String> {
        let names = try String.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT file FROM transfer WHERE file IS NOT NULL AND destination IS NULL
                    UNION SELECT bodyFile FROM transfer WHERE bodyFile IS NOT NULL
                    """))
        return try Set(names.flatMap { [$0, $0 + PartPlace.suffix, PartPlace.other($0) + PartPlace.suffix] } + noticeFiles())
    }

    /// Returns the places of partial files that must be removed: the partial files of ended downloads with a destination.
    package func partsBesideDestinations() throws -> [PartPlace] {
        let rows = try Row.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT file, destination FROM transfer WHERE state IN ('completed', 'failed', 'cancelled')
                    AND destination IS NOT NULL AND file IS NOT NULL AND keptUntil IS NULL
                    AND (isFinishing = 0 OR state = 'cancelled')
                    """))
        return rows.compactMap { row in
            guard let name = String.fromDatabaseValue(row[0]), let destination = String.fromDatabaseValue(row[1]),
                TransferRecord.isPlainName(name), name.hasSuffix(PartPlace.suffix)
            else { return nil }
            return PartPlace(name: name, spool: URL(fileURLWithPath: "/"), destination: destination)
        }
    }

    /// Deletes the oldest ended transfers beyond the limit, and returns the deleted transfers. The caller must remove their files
    /// after the commit.
    ///
    /// Transfers that are younger than ``endedTransferAge`` are kept, up to ``mostEndedTransfers``, because the user or an app
    /// may still read the result. If the copy of a transfer is kept for a retry, the transfer is also kept.
    package func pruneTransfers(now: Date) throws -> [TransferRecord] {
        let oldest = "SELECT id FROM transfer WHERE finishedAt IS NOT NULL ORDER BY finishedAt DESC, id DESC LIMIT -1 OFFSET"
        let old = try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE id IN (\(oldest) ?1)
                    AND (finishedAt <= ?2 OR id IN (\(oldest) ?4)) AND (bodyFile IS NULL OR keptUntil IS NULL OR keptUntil <= ?3)
                    AND NOT EXISTS (SELECT 1 FROM sessionEvent WHERE sessionEvent.transfer = transfer.id AND deliveredAt IS NULL)
                    AND id NOT IN (SELECT transfer FROM waiter)
                    LIMIT 1000
                    """),
            arguments: [
                Self.endedTransferLimit, now.timeIntervalSince1970 - Self.endedTransferAge, now.timeIntervalSince1970,
                Self.mostEndedTransfers,
            ])
        for transfer in old { try transfer.delete(database) }
        return old
    }
}

/// The place of a download's partial file.
///
/// A partial file has two alternating names. While the ledger describes the file with one name, the agent writes a new version to
/// a file with the other name.
package struct PartPlace: Sendable, Equatable {
    /// The suffix of a file's name until the file is complete.
    package static let suffix = ".part"
    private static let mark = ".new"

    /// The name of the partial file in the ledger.
    package let name: String
    private let folder: URL
    /// The final path of the file, or `nil` if the file stays in the spool.
    private let destination: URL?
    /// The identity of the destination's folder in the process that submitted the download. `nil` if any folder with this path is
    /// accepted.
    package let seenFolder: SeenFolder?

    init(name: String, spool: URL, destination: String?, seenFolder: SeenFolder? = nil) {
        (self.name, self.seenFolder) = (name, seenFolder)
        // `isDirectory` is given, because otherwise Foundation would check whether the path is a folder.
        self.destination = destination.map { URL(fileURLWithPath: $0, isDirectory: false) }
        folder = self.destination?.deletingLastPathComponent() ?? spool
    }

    /// The URL of the partial file.
    package var url: URL { folder.appendingPathComponent(destination == nil ? name + Self.suffix : name) }

    /// The URL of the complete file.
    package var whole: URL { destination ?? folder.appendingPathComponent(name) }

    /// The same place with the other alternating name.
    package var other: PartPlace {
        PartPlace(
            name: Self.other(name), spool: folder, destination: destination?.path, seenFolder: seenFolder)
    }

    static func other(_ name: String) -> String {
        let base = name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
        let toggled = base.hasSuffix(mark) ? String(base.dropLast(mark.count)) : base + mark
        return name.hasSuffix(suffix) ? toggled + suffix : toggled
    }

    /// The maximum length of a name in bytes. The alternating name is longer, and must also be a valid file name.
    static let longestName = 255 - mark.utf8.count
}
