import Foundation
import GRDB

/// A folder whose changes launch a request.
package struct WatchedFolder: Codable, Hashable, Sendable {
    /// The absolute path. The folder may not exist.
    package let path: String
    /// `true` if the folders inside the folder are also watched.
    package let isRecursive: Bool

    package init(path: String, isRecursive: Bool) { (self.path, self.isRecursive) = (path, isRecursive) }
}

/// A row of the ledger: a folder that a request waits for.
package struct FolderWatchRecord: Equatable, Sendable {
    /// The identifier of the request.
    package let request: String
    package let folder: WatchedFolder
    /// The content of the folder at the last launch for the folder (``FolderSignature``). `nil` before the first launch.
    package let signature: String?

    static func createTable(_ database: Database) throws {
        try database.create(table: "watchedFolder") { table in
            table.column("request", .text).notNull().references("request", onDelete: .cascade)
            table.column("path", .text).notNull()
            table.column("isRecursive", .boolean).notNull()
            table.column("signature", .text)
            table.primaryKey(["request", "path"])
        }
    }

    fileprivate init(_ row: Row) {
        (request, signature) = (row["request"], row["signature"])
        folder = WatchedFolder(path: row["path"], isRecursive: row["isRecursive"])
    }
}

extension LedgerTransaction {
    /// Returns the folders that pending requests wait for.
    package func watchedFolders() throws -> [FolderWatchRecord] {
        try Row.fetchAll(database.cachedStatement(sql: "SELECT * FROM watchedFolder ORDER BY request, path"))
            .map(FolderWatchRecord.init)
    }

    /// Sets the folders that a request waits for. A folder that the request already waited for keeps its signature, so that the
    /// request is launched only if the folder changed after the last launch.
    package func setWatchedFolders(_ folders: [WatchedFolder], of request: String) throws {
        let known = try watchedFolders().filter { $0.request == request }
        // If a folder is given twice, the watch that includes the folders inside is sufficient.
        let wanted = Dictionary(folders.map { ($0.path, $0.isRecursive) }) { $0 || $1 }
            .map { WatchedFolder(path: $0, isRecursive: $1) }
        guard Set(known.map(\.folder)) != Set(wanted) else { return }
        try database.run(sql: "DELETE FROM watchedFolder WHERE request = ?", arguments: [request])
        for folder in wanted {
            let signature = known.first { $0.folder == folder }?.signature
            try database.run(
                sql: "INSERT INTO watchedFolder (request, path, isRecursive, signature) VALUES (?, ?, ?, ?)",
                arguments: [request, folder.path, folder.isRecursive, signature])
        }
    }

    /// Records the content of a folder, because a launch for this content is due.
    package func setSignature(_ signature: String, of watch: FolderWatchRecord) throws {
        try database.run(
            sql: "UPDATE watchedFolder SET signature = ? WHERE request = ? AND path = ?",
            arguments: [signature, watch.request, watch.folder.path])
    }
}
