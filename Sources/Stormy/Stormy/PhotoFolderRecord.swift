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

/// The files that existed when a folder was added.
///
/// A file is recognized by its path, size and modification time, or by its number in the file system, size and modification
/// time. A renamed file is therefore recognized. On vfat, a file has another number after each mount, but the same path.
struct FolderBaseline {
    private struct Key: Hashable {
        let place: Place
        let byteCount: Int64
        let modified: Int64
    }

    private enum Place: Hashable {
        case path(PathName)
        case inode(Int64)
    }

    private var keys: Set<Key> = []

    init(_ rows: [Row]) {
        for row in rows {
            let (size, time): (Int64, Int64) = (row["byteCount"], row["modified"])
            keys.insert(Key(place: .path(PathName(row["path"] as String)), byteCount: size, modified: time))
            keys.insert(Key(place: .inode(row["inode"]), byteCount: size, modified: time))
        }
    }

    func contains(_ path: String, _ version: PhotoOriginal.Version) -> Bool {
        [Place.path(PathName(path)), .inode(version.inode)].contains {
            keys.contains(Key(place: $0, byteCount: version.byteCount, modified: version.modified))
        }
    }
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

    func baseline(of watch: PhotoFolderRecord) throws -> FolderBaseline {
        try queue.read { database in
            FolderBaseline(
                try Row.fetchAll(database, sql: "SELECT * FROM folderBaseline WHERE watch = ?", arguments: [watch.id]))
        }
    }
}
