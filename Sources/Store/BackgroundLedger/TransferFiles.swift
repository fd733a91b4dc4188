import Foundation
import GRDB
import ProcessSupport

// The files of transfers: what they are called, who still needs them, and what can go.
extension LedgerTransaction {
    /// Rows that hold something nobody wants any more: not adopted, not awaited and past the grace time; delivered; cancelled
    /// with their copy of a body; parts that nobody came back for.
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

    /// Nothing of this transfer's is left to tidy away.
    package func settle(_ transfer: Int64) throws {
        try database.cachedStatement(sql: "UPDATE sessionEvent SET isSettled = 1 WHERE transfer = ? AND deliveredAt IS NOT NULL")
            .execute(arguments: [transfer])
    }

    /// When the next transfer becomes collectable by time alone.
    package func nextCollection(after now: Date) throws -> Date? {
        let seconds = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT MIN(adoptableUntil) FROM transfer WHERE isAdopted = 0 AND adoptableUntil IS NOT NULL
                    AND adoptableUntil > ? AND id NOT IN (SELECT transfer FROM waiter)
                    """), arguments: [now.timeIntervalSince1970])
        return seconds.map { Date(timeIntervalSince1970: $0) }
    }

    /// Names in the spool that some row knows, finished or in part.
    package func spoolFiles() throws -> Set<String> {
        let names = try String.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT file FROM transfer WHERE file IS NOT NULL AND destination IS NULL
                    UNION SELECT bodyFile FROM transfer WHERE bodyFile IS NOT NULL
                    """))
        return try Set(names.flatMap { [$0, $0 + PartPlace.suffix, PartPlace.other($0) + PartPlace.suffix] } + noticeFiles())
    }

    /// Where ended downloads with a destination had their parts, none of which is kept.
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

    /// Drops the oldest ended transfers beyond the limit; returns them, for their files to be removed after the commit.
    ///
    /// Not those of the last days, however many: somebody may look for what became of them, or follow them still. Nor those
    /// whose copy is kept for another try.
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

/// Where the bytes of a download collect.
///
/// A part has two names in turn: while the ledger speaks of the bytes under one, a new version of the file begins under the other.
package struct PartPlace: Sendable, Equatable {
    /// What a file is called until it is whole.
    package static let suffix = ".part"
    private static let mark = ".new"

    /// The name in the ledger.
    package let name: String
    private let folder: URL
    /// `nil`: it waits in the spool.
    private let destination: URL?
    /// The folder that is meant; `nil`: any folder of this path.
    package let seenFolder: SeenFolder?

    init(name: String, spool: URL, destination: String?, seenFolder: SeenFolder? = nil) {
        (self.name, self.seenFolder) = (name, seenFolder)
        // Said, or Foundation looks whether a folder stands there.
        self.destination = destination.map { URL(fileURLWithPath: $0, isDirectory: false) }
        folder = self.destination?.deletingLastPathComponent() ?? spool
    }

    /// Where its bytes are.
    package var url: URL { folder.appendingPathComponent(destination == nil ? name + Self.suffix : name) }

    /// Where the whole file stands in the end.
    package var whole: URL { destination ?? folder.appendingPathComponent(name) }

    /// Under its other name.
    package var other: PartPlace {
        PartPlace(
            name: Self.other(name), spool: folder, destination: destination?.path, seenFolder: seenFolder)
    }

    static func other(_ name: String) -> String {
        let base = name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
        let toggled = base.hasSuffix(mark) ? String(base.dropLast(mark.count)) : base + mark
        return name.hasSuffix(suffix) ? toggled + suffix : toggled
    }

    /// The longest name whose other one is a name, too.
    static let longestName = 255 - mark.utf8.count
}
