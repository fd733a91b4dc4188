import BackgroundRuntime
import Foundation
import GRDB
import Glibc
import StormyWeather

/// What can be wrong with Stormy's own store.
package enum StormyStoreError: Error, CustomStringConvertible {
    case cannotOpen(path: String, reason: String)
    case newerVersion(path: String)
    case placeExists(String)
    case noSuchPlace(String)

    package var description: String {
        switch self {
        case .cannotOpen(let path, let reason): "\(path): \(reason)"
        case .newerVersion(let path):
            "\(path) was written by a newer version of Stormy: it was left untouched; install that version again"
        case .placeExists(let name): "a place named \(name) exists already; remove it first, or use another name"
        case .noSuchPlace(let name): "no place named \(name); `stormy place list` shows those there are"
        }
    }
}

/// Places, forecasts, storms and photos: Stormy's own SQLite file, apart from the agent's ledger.
package final class StormyStore: Sendable {
    let queue: DatabaseQueue

    package static func open() throws -> StormyStore { try StormyStore(folder: StormySettings.current.dataFolder) }

    /// Opens the store, making it when absent.
    package init(folder: URL) throws {
        let path = folder.appendingPathComponent("stormy.sqlite").path
        do {
            queue = try Self.open(path, in: folder)
        } catch StormyStoreError.cannotOpen where AppRuntime.shared.giveUpReserve() {
            // On a full disk a person still sees what there is, and ends it.
            queue = try Self.open(path, in: folder)
        }
    }

    /// One process at a time opens it: switching a file to write-ahead mode, looking at its version and making its tables do not wait
    /// for each other.
    ///
    /// - Returns: to be closed afterwards; -1: without, as the folder cannot be written, or somebody who was stopped holds it.
    private static func takeTurn(in folder: URL) -> Int32 {
        let descriptor = Glibc.open(folder.path + "/stormy.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return -1 }
        var round = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0, round < patience {
            usleep(useconds_t(pause))
            round += 1
        }
        return descriptor
    }

    /// While another process writes: asked again so often, a pause of so many microseconds in between. All get their turn: SQLite's own
    /// waiter sleeps longer each time, and the unlucky ones of hundreds would give up.
    private static let (patience, pause) = (15_000, 2_000)

    private static func open(_ path: String, in folder: URL) throws -> DatabaseQueue {
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            // It may have been there before, wider. One that is not ours to narrow is refused by SQLite, in its own words.
            try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
            let turn = takeTurn(in: folder)
            defer { if turn >= 0 { close(turn) } }
            if !FileManager.default.fileExists(atPath: path) {
                // Made narrow first: SQLite gives its side files the same mode.
                _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
            }
            var configuration = Configuration()
            configuration.journalMode = .wal
            configuration.busyMode = .callback { round in
                usleep(useconds_t(pause))
                return round < patience
            }
            try refuseNewer(path)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.inDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try migrator.migrate(queue)
            return queue
        } catch let error as StormyStoreError {
            throw error
        } catch let error as DatabaseError {
            throw StormyStoreError.cannotOpen(path: path, reason: sentence(for: error))
        } catch {
            throw StormyStoreError.cannotOpen(path: path, reason: (error as NSError).localizedDescription)
        }
    }

    private static func sentence(for error: DatabaseError) -> String {
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT:
            "damaged or not a store of Stormy: it was left untouched; move it away to start afresh"
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN:
            "cannot be written: check the permissions of the file and its folder"
        default: error.message ?? "\(error.resultCode)"
        }
    }

    /// Opening for writing alone changes the file (GRDB writes once to make the write-ahead log), so it is looked at before.
    private static func refuseNewer(_ path: String) throws {
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        guard (size?.intValue ?? 0) > 0 else { return }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let isNewer = try DatabaseQueue(path: path, configuration: configuration).read { try migrator.hasBeenSuperseded($0) }
        if isNewer { throw StormyStoreError.newerVersion(path: path) }
    }

    private static var migrator: DatabaseMigrator {
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
        return migrator
    }

    // MARK: Settings

    func setting(_ name: String) throws -> String? {
        try queue.read { try String.fetchOne($0, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) }
    }

    func set(_ name: String, _ value: String) throws {
        try queue.write { database in
            try database.execute(
                sql: "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                arguments: [name, value])
        }
    }
}

/// How rows look: dates as seconds since 1970, parts as JSON text.
protocol StoreRecord: Codable, FetchableRecord, MutablePersistableRecord, Sendable {}

extension StoreRecord {
    package static func databaseDateEncodingStrategy(for column: String) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    package static func databaseDateDecodingStrategy(for column: String) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }
}
