import BackgroundTransfer
import Foundation
import GRDB
import ProcessSupport
import Spool

/// A file of the user that was read, and the digest of its content. With this record, an audit does not read the file again while
/// the file is unchanged.
package struct PhotoOriginal: Equatable, Sendable {
    /// The version of a file. Each change of the file also changes the version, even if a program sets an old modification time.
    package struct Version: Equatable, Sendable {
        let device: Int64
        let inode: Int64
        let byteCount: Int64
        /// The times of the last change of the content and of the last change of the attributes, in nanoseconds since 1970.
        let modified: Int64
        let changed: Int64

        init(_ information: stat) {
            (device, inode) = (Int64(bitPattern: UInt64(information.st_dev)), Int64(bitPattern: UInt64(information.st_ino)))
            byteCount = Int64(information.st_size)
            (modified, changed) = (Self.nanoseconds(information.st_mtim), Self.nanoseconds(information.st_ctim))
        }

        init(_ row: Row) {
            (device, inode, byteCount) = (row["device"], row["inode"], row["byteCount"])
            (modified, changed) = (row["modified"], row["changed"])
        }

        private static func nanoseconds(_ time: timespec) -> Int64 {
            Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ Int64(time.tv_nsec)
        }

        /// The precision of the times in the least precise file system (vfat).
        private static let precision: Int64 = 2_000_000_000

        /// Returns whether a later change of the file certainly has another time. A file system can record two changes within
        /// its precision with the same time.
        func isDistinct(at now: Date) -> Bool {
            let latest = Int64(min(max(now.timeIntervalSince1970, 0), 4e9) * 1e9) - Self.precision
            return modified < latest && changed < latest
        }
    }

    let path: String
    let version: Version
    /// The SHA-256 of the file in hex. The text is empty if the file is not a photo, because such a file is not read.
    package let sha256: String

    init(path: String, version: Version, sha256: String) {
        (self.path, self.version, self.sha256) = (path, version, sha256)
    }

    /// Creates the record of a file that is not a photo.
    init(other path: String, _ version: Version) { self.init(path: path, version: version, sha256: "") }

    /// `true` if the file is not a photo.
    var isOther: Bool { sha256.isEmpty }

    /// Creates the tables `original` (the files by their paths) and `sentCopy` (the digests of the copies of each content).
    ///
    /// A copy has another digest than its file if the location was removed. Another version of the cleaner may make another copy,
    /// so a file can have several copies.
    static func createTables(_ database: Database) throws {
        try database.create(table: "original") { table in
            table.primaryKey("path", .text)
            for number in ["device", "inode", "byteCount", "modified", "changed"] { table.column(number, .integer).notNull() }
            table.column("sha256", .text).notNull()
        }
        try database.create(table: "sentCopy", options: .withoutRowID) { table in
            for digest in ["original", "copy"] { table.column(digest, .text).notNull() }
            table.primaryKey(["original", "copy"])
        }
    }

    /// Returns the SHA-256 of a file in hex. `nil` if the file does not exist or cannot be read.
    package static func digest(of path: String) -> String? { try? read(path).sha256 }

    /// Reads a file and returns its record.
    ///
    /// - Throws: ``Snapshot/Failure`` if the file cannot be read or changes while it is read.
    static func read(_ path: String) throws(Snapshot.Failure) -> PhotoOriginal {
        let before = PathStatus.at(path)
        let digest = try FileDigest.sha256(of: URL(exactPath: path)).digest
        guard let first = before.information.map(Version.init), let last = PathStatus.at(path).information.map(Version.init),
            first == last
        else { throw .changedWhileRead(path) }
        return PhotoOriginal(path: path, version: last, sha256: digest)
    }
}

extension StormyStore {
    /// Returns the recorded files by their paths.
    func originals() throws -> [PathName: PhotoOriginal] {
        try queue.read { database in
            var originals: [PathName: PhotoOriginal] = [:]
            let rows = try Row.fetchCursor(database, sql: "SELECT * FROM original")
            while let row = try rows.next() {
                let path: String = row["path"]
                originals[PathName(path)] = PhotoOriginal(path: path, version: .init(row), sha256: row["sha256"])
            }
            return originals
        }
    }

    /// Returns the digests of the copies of each content. The keys are the digests of the original files.
    func sentCopies() throws -> [String: [String]] {
        try queue.read { database in
            var copies: [String: [String]] = [:]
            let rows = try Row.fetchCursor(database, sql: "SELECT original, copy FROM sentCopy")
            while let row = try rows.next() { copies[row["original"], default: []].append(row["copy"]) }
            return copies
        }
    }

    /// Records files and their copies.
    ///
    /// - Parameter copies: Pairs of the digest of a file and the digest of its copy.
    func record(_ originals: [PhotoOriginal], copies: [(original: String, copy: String)] = [], now: Date) throws {
        if originals.isEmpty, copies.isEmpty { return }
        try queue.write { database in
            for original in originals where original.version.isDistinct(at: now) {
                let version = original.version
                try database.cachedStatement(sql: "INSERT OR REPLACE INTO original VALUES (?, ?, ?, ?, ?, ?, ?)").execute(
                    arguments: [
                        original.path, version.device, version.inode, version.byteCount, version.modified, version.changed,
                        original.sha256,
                    ])
            }
            for (original, copy) in copies where original != copy {
                try database.cachedStatement(sql: "INSERT OR IGNORE INTO sentCopy VALUES (?, ?)")
                    .execute(arguments: [original, copy])
            }
        }
    }

    /// Removes the records of files that do not exist any more.
    func removeOriginals(_ paths: [PathName]) throws {
        if paths.isEmpty { return }
        try queue.write { database in
            for path in paths {
                try database.cachedStatement(sql: "DELETE FROM original WHERE path = ?").execute(arguments: [path.text])
            }
        }
    }

    /// Records photos that a server has, although this store does not contain their uploads. These photos are not sent again.
    func recordFound(_ photos: [PhotoRecord]) throws {
        if photos.isEmpty { return }
        try queue.write { database in
            for var photo in photos {
                let isKnown = try Bool.fetchOne(
                    database,
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM photo WHERE digest = ? AND destination = ? AND state IN ('queued', 'completed'))
                        """, arguments: [photo.digest, photo.destination])
                if isKnown != true { try photo.insert(database) }
            }
        }
    }
}
