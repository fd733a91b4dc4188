import BackgroundRuntime
import SQLiteFiles
import Foundation
import GRDB
import Glibc
import ProcessSupport
import StormyWeather

/// An error of Stormy's store.
package enum StormyStoreError: Error, CustomStringConvertible {
    /// The store cannot be opened, read or written.
    case cannotOpen(path: String, reason: String)
    /// The file is not a valid store.
    case damaged(path: String)
    /// Another process is writing to the store, and did not finish within the time limit.
    case busy(path: String)
    case newerVersion(path: String)
    case placeExists(String)
    case noSuchPlace(String)

    package var description: String {
        switch self {
        case .cannotOpen(let path, let reason): "\(path): \(reason)"
        case .damaged(let path):
            "\(path) is damaged, or is not a store of Stormy. "
                + "The file was not changed. To start with an empty store, move the file away"
        case .busy(let path): "\(StoreError.busy(path: path))"
        case .newerVersion(let path):
            "\(path) was written by a newer version of Stormy. The file was not changed. Install the newer version again"
        case .placeExists(let name): "a place named \(name) exists already. Remove that place first, or use another name"
        case .noSuchPlace(let name): "no place is named \(name). To list the places: stormy place list"
        }
    }
}

extension StormyStoreError {
    init(_ error: DatabaseError, _ path: String) {
        self =
            switch DatabaseTrouble(error, path: path) {
            case .damaged: .damaged(path: path)
            case .notWritable:
                .cannotOpen(path: path, reason: "cannot be written: \(StoreError.adviceForUnwritable(path))")
            case .busy: .busy(path: path)
            case .noRoom:
                .cannotOpen(path: path, reason: "no space is left on the disk of the file, or in the quota of its owner")
            case .passing(let reason), .other(let reason): .cannotOpen(path: path, reason: reason)
            }
    }

    /// Converts an error that was thrown while the store was opened.
    fileprivate init(opening path: String, _ error: any Error) {
        self =
            switch error {
            case let error as StormyStoreError: error
            case let error as DatabaseError: Self(error, path)
            case is DatabaseFile.NewerVersion: .newerVersion(path: path)
            default: .cannotOpen(path: path, reason: (error as NSError).localizedDescription)
            }
    }

    /// Returns a message for the user about any error. The message explains errors of SQLite.
    static func words(for error: any Error) -> String { Self(explaining: error).map { "\($0)" } ?? "\(error)" }

    /// Creates the error for an SQLite error that occurred while the store was read or written. Returns `nil` for other errors.
    package init?(explaining error: any Error) {
        guard let error = error as? DatabaseError else { return nil }
        self.init(error, StormySettings.current.dataFolder.appendingPathComponent(StormyStore.fileName).path)
    }
}

/// The database of places, forecasts, storms and photos. The SQLite file is separate from the agent's database (ledger).
package final class StormyStore: Sendable {
    package static let fileName = "stormy.sqlite"
    let queue: StoreQueue
    /// `true` if the store is a copy in memory, because the file cannot be written.
    package let isCopy: Bool

    /// `true` if no other connection can read or write the file.
    let isExclusive: Bool

    /// Returns the store of the running command. If no command is running, opens a new connection.
    package static func open() throws -> StormyStore {
        try (SharedStore.ofCommand ?? SharedStore()).store(in: StormySettings.current.dataFolder)
    }

    /// Opens a store for reading. The store is not created, repaired or migrated. An unfinished transaction is rolled back. The
    /// method reads all pages of the file.
    ///
    /// - Returns: `nil` if the store does not exist, or if an earlier version of Stormy wrote the store.
    package static func inspect(in folder: URL) throws -> StormyStore? {
        let path = folder.appendingPathComponent(fileName).path
        do {
            guard try file(path).inspectKnownVersion().state == .current else { return nil }
            return StormyStore(try file(path).openToReadChecked())
        } catch {
            throw StormyStoreError(opening: path, error)
        }
    }

    /// Returns the store for commands that only show data. If the store or the ledger does not exist, an empty one in memory is
    /// used instead. If the store or the ledger cannot be written, a copy in memory is used instead.
    package static func toRead() throws -> StormyStore {
        let folder = StormySettings.current.dataFolder
        AppRuntime.shared.copyUnwritableLedger()
        let path = folder.appendingPathComponent(fileName).path
        // The store is opened, because opening also adds the daily check to the ledger if only the store contains the check.
        var information = stat()
        if lstat(path, &information) == 0 || FileFault(errno) != .missing {
            do { return try open() } catch let error as StormyStoreError {
                guard case .cannotOpen = error, let copy = try? file(path).copyInMemory() else { throw error }
                AppRuntime.shared.reportCopy(because: error)
                return StormyStore(copy, isCopy: true)
            }
        }
        AppRuntime.shared.replaceMissingLedger()
        let queue = try DatabaseQueue()
        try migrator.migrate(queue)
        return StormyStore(queue)
    }

    private init(_ queue: DatabaseQueue, isCopy: Bool = false) {
        (self.queue, self.isCopy, isExclusive) = (StoreQueue(queue), isCopy, false)
    }

    /// Opens the store. If the store does not exist, creates the store.
    package init(folder: URL) throws {
        isCopy = false
        let path = folder.appendingPathComponent(Self.fileName).path
        do {
            queue = StoreQueue(try Self.open(path, in: folder))
            isExclusive = false
        } catch let error as StormyStoreError {
            guard case .cannotOpen = error else { throw error }
            // If the disk is full, the store is first opened exclusively, because this requires no disk space. The reserved disk
            // space is used only if the exclusive opening fails.
            if let alone = try? Self.file(path).openAlone(label: "store") {
                (queue, isExclusive) = (StoreQueue(alone), true)
            } else if AppRuntime.shared.releaseDiskReserve() {
                (queue, isExclusive) = (StoreQueue(try Self.open(path, in: folder)), false)
            } else {
                throw error
            }
        }
    }

    private static func file(_ path: String) -> DatabaseFile { DatabaseFile(path: path, migrator: migrator) }

    private static func open(_ path: String, in folder: URL) throws -> DatabaseQueue {
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            // An existing folder may be accessible for other users. If this user cannot change the permissions, SQLite reports
            // the error. Correct permissions are not set again, because the agent treats each change of attributes in this folder
            // as a change of the app.
            if let mode = PathStatus.at(folder.path).information?.st_mode, mode & 0o777 != 0o700 { chmod(folder.path, 0o700) }
            let file = file(path)
            do { try file.makeIfMissing() } catch {
                // The folder may be, for example, a link to a disk that is not mounted.
                if case .cannotCreate(_, let reason) = error { throw StormyStoreError.cannotOpen(path: path, reason: reason) }
                throw DatabaseError(resultCode: .SQLITE_CANTOPEN, message: "\(error)")
            }
            // If the folder cannot be written, SQLite reports the reason.
            return try file.open(
                label: "store", wait: WriterWait(database: path), turn: folder.appendingPathComponent("stormy.lock"),
                requiresTurn: false
            ).queue
        } catch {
            throw StormyStoreError(opening: path, error)
        }
    }

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1: places, forecasts, storms, photos") { database in
            try database.create(table: "place") { table in
                table.autoIncrementedPrimaryKey("id")
                table.column("name", .text).notNull().unique().collate(.nocase)
                table.column("latitude", .double).notNull()
                table.column("longitude", .double).notNull()
                table.column("timeZone", .text)
            }
            try database.create(table: "forecast") { table in
                table.primaryKey("place", .integer).references("place", onDelete: .cascade)
                table.column("content", .text).notNull()
                table.column("fetchedAt", .double).notNull()
            }
            try database.create(table: "checkResult") { table in
                table.primaryKey("place", .integer).references("place", onDelete: .cascade)
                table.column("at", .double).notNull()
                table.column("assessment", .text)
                table.column("trouble", .text)
                table.column("source", .text).notNull()
                table.column("fetchedAt", .double)
            }
            try database.create(table: "storm") { table in
                table.autoIncrementedPrimaryKey("id")
                table.column("place", .integer).notNull().references("place", onDelete: .cascade)
                table.column("begins", .double).notNull()
                table.column("ends", .double).notNull()
                table.column("isTold", .boolean).notNull()
                table.column("isClosed", .boolean).notNull()
                table.column("reasons", .text).notNull()
            }
            try database.create(table: "photo") { table in
                table.autoIncrementedPrimaryKey("id")
                table.column("storm", .integer)
                table.column("state", .text).notNull()
                table.column("path", .text)
                table.column("transfer", .integer)
                table.column("message", .text)
                table.column("createdAt", .double).notNull()
            }
            try database.create(table: "setting") { table in
                table.primaryKey("name", .text)
                table.column("value", .text).notNull()
            }
        }
        migrator.registerMigration("2: photos can be given again") { database in
            try database.alter(table: "photo") { table in
                table.add(column: "changedAt", .double).notNull().defaults(to: 0)
                table.add(column: "digest", .text)
                table.add(column: "key", .text)
            }
            try database.execute(sql: "UPDATE photo SET changedAt = createdAt")
        }
        migrator.registerMigration("3: where photos went") { database in
            try database.alter(table: "photo") { table in
                for text in ["destination", "remoteURL"] { table.add(column: text, .text) }
                table.add(column: "tells", .boolean).notNull().defaults(to: false)
            }
            try database.create(index: "photoDigest", on: "photo", columns: ["digest"])
            try database.create(index: "photoState", on: "photo", columns: ["state", "path"])
        }
        migrator.registerMigration("4: no passwords in destinations") { database in
            let known = try String.fetchAll(database, sql: "SELECT DISTINCT destination FROM photo WHERE destination LIKE '%@%'")
            for identity in known {
                try database.execute(
                    sql: "UPDATE photo SET destination = ? WHERE destination = ?",
                    arguments: [PhotoDestination.withoutPassword(identity), identity])
            }
        }
        migrator.registerMigration("5: photos that wait for a good moment") { database in
            try database.alter(table: "photo") { table in
                table.add(column: "isForLater", .boolean).notNull().defaults(to: false)
            }
        }
        migrator.registerMigration("6: more than one weather service") { database in
            try database.alter(table: "place") { $0.add(column: "provider", .text) }
            try database.alter(table: "forecast") { table in
                for text in ["second", "provider", "lastModified"] { table.add(column: text, .text) }
                table.add(column: "expiresAt", .double)
            }
        }
        migrator.registerMigration("7: official warnings") { database in
            try database.create(table: "warning") { table in
                table.column("place", .integer).notNull().references("place", onDelete: .cascade)
                table.column("service", .text).notNull()
                table.column("messages", .text).notNull()
                table.column("askedAt", .double).notNull()
                table.column("trouble", .text)
                table.primaryKey(["place", "service"])
            }
            try database.create(table: "warningDocument") { table in
                table.primaryKey("link", .text)
                table.column("message", .text)
                table.column("seenAt", .double).notNull()
                table.column("updated", .text)
            }
            try database.alter(table: "storm") { $0.add(column: "isCancelled", .boolean).notNull().defaults(to: false) }
        }
        // An earlier version stored the warnings with other kinds and without texts. These warnings are deleted, because the next
        // response of each service contains the warnings again.
        migrator.registerMigration("8: kinds and texts of warnings") { database in
            try database.execute(sql: "DELETE FROM warning")
            try database.execute(sql: "DELETE FROM warningDocument")
        }
        migrator.registerMigration("9: times of warning data") { database in
            try database.alter(table: "warning") { table in
                table.add(column: "dataTime", .double)
                table.add(column: "isOutside", .boolean).notNull().defaults(to: false)
            }
        }
        migrator.registerMigration("10: one owner for a storm's life", migrate: StormRecord.migrate)
        migrator.registerMigration("11: unknown regions are reported once") { database in
            try database.create(table: "unknownRegion") { table in
                table.primaryKey("code", .text)
                table.column("isReported", .boolean).notNull().defaults(to: false)
            }
        }
        migrator.registerMigration("12: conditional requests of warning feeds") { database in
            try database.create(table: "warningFeed") { table in
                for text in ["service", "address", "parts"] { table.column(text, .text).notNull() }
                table.column("validator", .text)
                for time in ["receivedAt", "changedAt"] { table.column(time, .double).notNull() }
                for time in ["dataTime", "distrustedAt"] { table.column(time, .double) }
                table.primaryKey(["service", "address"])
            }
            // Documents of an earlier version are requested again at the next check.
            try database.alter(table: "warningDocument") { table in
                table.add(column: "validator", .text)
                table.add(column: "checkedAt", .double).notNull().defaults(to: 0)
            }
        }
        migrator.registerMigration("13: answers that are used in part") { database in
            try database.alter(table: "warning") { table in
                for flag in ["isPartial", "isLacking"] { table.add(column: flag, .boolean).notNull().defaults(to: false) }
            }
        }
        migrator.registerMigration("14: the location option of photos") { database in
            try database.alter(table: "photo") { $0.add(column: "keepsLocation", .boolean) }
        }
        migrator.registerMigration("15: each country of MeteoAlarm is a source", migrate: WarningRecord.divide)
        migrator.registerMigration("16: the processes that queue a photo") { database in
            try database.alter(table: "photo") { $0.add(column: "holders", .text) }
        }
        migrator.registerMigration("17: the daily check is one row", migrate: DailyCheck.migrate)
        migrator.registerMigration("18: photos are found by submission keys", migrate: PhotoRecord.addSubmissions)
        migrator.registerMigration("19: the files of photos", migrate: PhotoOriginal.createTables)
        migrator.registerMigration("20: watched folders", migrate: PhotoFolderRecord.createTables)
        migrator.registerMigration("21: files that belong to photos") { database in
            try database.alter(table: "photo") { table in
                for text in ["owner", "ownerDigest"] { table.add(column: text, .text) }
                table.add(column: "isSidecar", .boolean).notNull().defaults(to: false)
            }
        }
        return migrator
    }

    // MARK: Settings

    func setting(_ name: String) throws -> String? {
        try queue.read { try String.fetchOne($0, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) }
    }

    func removeSetting(_ name: String) throws {
        try queue.write { try $0.execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [name]) }
    }

    func set(_ name: String, _ value: String) throws {
        try queue.write { database in
            try database.execute(
                sql: "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                arguments: [name, value])
        }
    }
}

extension QueryInterfaceRequest where RowDecoder: StoreRecord {
    /// Fetches all readable rows. A damaged row, or a row of a later version, does not prevent the other rows from being read.
    /// The next response replaces such a row.
    func fetchReadable(_ database: Database) throws -> [RowDecoder] {
        try Row.fetchAll(database, asRequest(of: Row.self)).compactMap { row in
            do { return try RowDecoder(row: row) } catch {
                logError("a \(RowDecoder.databaseTableName) cannot be read: \(error)")
                return nil
            }
        }
    }
}

/// The format of rows: dates are stored as seconds since 1970, and nested values as JSON text.
protocol StoreRecord: Codable, FetchableRecord, MutablePersistableRecord, Sendable {}

extension StoreRecord {
    package static func databaseDateEncodingStrategy(for column: String) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    package static func databaseDateDecodingStrategy(for column: String) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }
}
