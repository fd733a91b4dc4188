import Foundation
import GRDB
import ProcessSupport

/// A folder whose new photos are uploaded.
package struct PhotoFolderRecord: Codable, Sendable, Equatable, Identifiable {
    package var id: Int64?
    /// The absolute path of the folder.
    package var path: String
    /// The name of the destination.
    package var destination: String
    package var isRecursive: Bool
    /// `true` if the photos wait for external power and an unmetered network (``HeldUploads``).
    package var isForLater: Bool
    package var createdAt: Date

    /// Creates the tables `folderWatch` (the folders) and `folderBaseline` (the files that are not uploaded, because they existed
    /// when the folder was added).
    static func createTables(_ database: Database) throws {
        try database.create(table: "folderWatch") { table in
            table.autoIncrementedPrimaryKey("id")
            for text in ["path", "destination"] { table.column(text, .text).notNull() }
            for flag in ["isRecursive", "isForLater"] { table.column(flag, .boolean).notNull() }
            table.column("createdAt", .double).notNull()
        }
        try database.create(table: "folderBaseline", options: .withoutRowID) { table in
            table.column("watch", .integer).notNull().references("folderWatch", onDelete: .cascade)
            table.column("path", .text).notNull()
            for number in ["inode", "byteCount", "modified"] { table.column(number, .integer).notNull() }
            table.primaryKey(["watch", "path"])
        }
    }
}

extension PhotoFolderRecord: StoreRecord {
    package static let databaseTableName = "folderWatch"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension StormyStore {
    package func folderWatches() throws -> [PhotoFolderRecord] {
        try queue.read { try PhotoFolderRecord.fetchAll($0, sql: "SELECT * FROM folderWatch ORDER BY path, id") }
    }

    /// - Parameter existing: The files that are not uploaded.
    func addFolderWatch(
        _ watch: PhotoFolderRecord, ignoring existing: [(path: String, version: PhotoOriginal.Version)]
    ) throws -> PhotoFolderRecord {
        try queue.write { database in
            var watch = watch
            try watch.insert(database)
            try Self.ignore(existing, watch, in: database)
            return watch
        }
    }

    /// - Parameter existing: More files that are not uploaded. `nil` to upload all files that the folder contained before.
    func changeFolderWatch(
        _ watch: PhotoFolderRecord, ignoring existing: [(path: String, version: PhotoOriginal.Version)]?
    ) throws {
        try queue.write { database in
            try watch.update(database)
            if existing == nil {
                try database.execute(sql: "DELETE FROM folderBaseline WHERE watch = ?", arguments: [watch.id])
            }
            try Self.ignore(existing ?? [], watch, in: database)
        }
    }

    private static func ignore(
        _ files: [(path: String, version: PhotoOriginal.Version)], _ watch: PhotoFolderRecord, in database: Database
    ) throws {
        for (path, version) in files {
            try database.cachedStatement(
                sql: "INSERT OR REPLACE INTO folderBaseline (watch, path, inode, byteCount, modified) VALUES (?, ?, ?, ?, ?)"
            ).execute(arguments: [watch.id, path, version.inode, version.byteCount, version.modified])
        }
    }

    func removeFolderWatch(_ id: Int64) throws { _ = try queue.write { try PhotoFolderRecord.deleteOne($0, key: id) } }

    /// Returns the files that are not in the baseline, and that were not examined before in their current version. The baseline
    /// contains the files that existed when the folder was added.
    ///
    /// A file of the baseline is recognized by its path, size and modification time, or by its number in the file system, size and
    /// modification time. A renamed file is therefore recognized. On vfat, a file has another number after each mount, but the
    /// same path. The rows are read one by one, because a folder can contain a million files.
    ///
    /// - Parameters:
    ///   - files: Files in the order of ``PathName``.
    ///   - hasRecord: A closure that returns whether a photo with this digest was given to the destination before.
    func newFiles(
        among files: [FolderFiles.Entry], of watch: PhotoFolderRecord, hasRecord: (String) -> Bool
    ) throws -> [FolderFiles.Entry] {
        try queue.read { database in
            let baseline = "FROM folderBaseline WHERE watch = ? ORDER BY path"
            var rest = try Self.files(
                files, without: Row.fetchCursor(database, sql: "SELECT * \(baseline)", arguments: [watch.id])
            ) { file, row in
                row["byteCount"] == file.version.byteCount && row["modified"] == file.version.modified
            }
            rest = try Self.files(rest, without: Row.fetchCursor(database, sql: "SELECT * FROM original ORDER BY path")) {
                file, row in
                guard PhotoOriginal.Version(row) == file.version else { return false }
                let sha256: String = row["sha256"]
                return sha256.isEmpty || hasRecord(sha256)
            }
            if rest.isEmpty { return [] }
            // The files that are left are few, except in the first launch for a folder.
            var wanted = Dictionary(grouping: rest.indices) { rest[$0].version.inode }
            var renamed: Set<Int> = []
            let rows = try Row.fetchCursor(
                database, sql: "SELECT inode, byteCount, modified FROM folderBaseline WHERE watch = ?", arguments: [watch.id])
            while !wanted.isEmpty, let row = try rows.next() {
                guard let places = wanted[row["inode"]] else { continue }
                let equal = places.filter { place in
                    row["byteCount"] == rest[place].version.byteCount && row["modified"] == rest[place].version.modified
                }
                if equal.isEmpty { continue }
                renamed.formUnion(equal)
                wanted[row["inode"]] = nil
            }
            return rest.indices.filter { !renamed.contains($0) }.map { rest[$0] }
        }
    }

    /// Returns the files without the files whose row fulfils a condition. Files and rows are in the order of their paths.
    private static func files(
        _ files: [FolderFiles.Entry], without rows: RowCursor, isKnown: (FolderFiles.Entry, Row) -> Bool
    ) throws -> [FolderFiles.Entry] {
        var rest: [FolderFiles.Entry] = []
        var row = try rows.next()
        for file in files {
            while let current = row, (current["path"] as String).utf8.lexicographicallyPrecedes(file.path.utf8) {
                row = try rows.next()
            }
            if let current = row, (current["path"] as String).utf8.elementsEqual(file.path.utf8), isKnown(file, current) {
                continue
            }
            rest.append(file)
        }
        return rest
    }
}
