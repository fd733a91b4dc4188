import Foundation
import GRDB
import GRDBSQLite
import Glibc
import ProcessSupport

/// A SQLite file with a write-ahead log that several processes share. This type inspects and opens the file. Other types (a
/// ledger or a store) define the tables of the file.
///
/// When the last process closes the file, the empty write-ahead log and the index of the log are kept. So the database can be
/// opened later, even if no new file can be created on the disk.
package struct DatabaseFile: Sendable {
    package enum State: Sendable {
        case missing
        /// The file does not contain all tables of this version of the app. Or the file has no write-ahead log, for example
        /// because it was restored from an SQL backup.
        case ofAnEarlierVersion
        case current
        case ofANewerVersion
    }

    package let path: String
    private let migrator: DatabaseMigrator

    package init(path: String, migrator: DatabaseMigrator) {
        Self.opensFilesAsWanted
        (self.path, self.migrator) = (path, migrator)
    }

    /// Replaces system calls that SQLite uses. The replacement applies to every connection of this process, because all
    /// connections of a process share SQLite's table of system calls.
    private static let opensFilesAsWanted: Void = {
        guard let system = sqlite3_vfs_find(nil), let replace = system.pointee.xSetSystemCall else { return }
        _ = replace(system, "open", unsafeBitCast(SQLiteOpening.call, to: sqlite3_syscall_ptr.self))
        // Both names are replaced, because SQLite uses one of these two functions.
        for name in ["pread", "pread64"] {
            _ = replace(system, name, unsafeBitCast(SQLiteOpening.readCall, to: sqlite3_syscall_ptr.self))
        }
    }()

    // MARK: Making

    /// If the path does not exist, creates an empty file that only this user can read. SQLite gives the write-ahead log and the
    /// index of the log the permissions of the file.
    ///
    /// This method does not open an existing file, because closing the file would release the locks of other connections of this
    /// process. An existing file is never replaced, even if it cannot be inspected.
    ///
    /// - Throws: ``StoreError`` if the path is not a regular file after the call, for example if the path is a link without a
    ///   target.
    package func makeIfMissing() throws(StoreError) {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            // The mode is set again, because the umask may have removed permissions.
            fchmod(descriptor, 0o600)
            close(descriptor)
            return
        }
        var information = stat()
        guard FileFault(errno) == .exists, stat(path, &information) == 0 else { throw .notOpened(path, errno) }
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw .cannotCreate(path: path, reason: "something that is not a file has that name")
        }
    }

    // MARK: Reading

    /// Opens a read-only connection.
    package func openToRead() throws -> DatabaseQueue {
        Self.forgetEarlierFault()
        var information = stat()
        // Only files and folders are opened. If the path were a named pipe, SQLite would wait until another process opens the
        // pipe.
        if stat(path, &information) == 0, ![S_IFREG, S_IFDIR].contains(information.st_mode & S_IFMT) {
            throw DatabaseError(resultCode: .SQLITE_NOTADB)
        }
        var configuration = Configuration()
        configuration.readonly = true
        let wait = WriterWait(database: path)
        configuration.busyMode = .callback { wait.wait($0) }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Discards the last read error of this thread. Otherwise an error of another file could be reported as the reason for an
    /// error of this file.
    private static func forgetEarlierFault() { _ = SQLiteOpening.consumeReadFault() }

    /// Opens a read-only connection and checks all pages. The check is necessary, because a file that was damaged, for example by
    /// a mixture of two files, can have readable tables with wrong content.
    ///
    /// Cost: all pages are read.
    /// - Throws: `SQLITE_CORRUPT` if the pages are not consistent.
    package func openToReadChecked() throws -> DatabaseQueue {
        let queue = try openToRead()
        let answer = try queue.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        guard answer == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: answer) }
        return queue
    }

    /// Inspects the file before it is opened for writing, because opening for writing changes the file (GRDB writes once to
    /// create the write-ahead log). If another process did not complete a change, the change is rolled back first, because
    /// otherwise no connection could read the file.
    ///
    /// - Returns: the state of the file, and the closed connection with which the state was read.
    private func inspect() throws -> (state: State, closed: DatabaseQueue?) {
        var information = stat()
        guard stat(path, &information) == 0 else {
            // If `stat` fails, the state is `missing` only if the path does not exist. A file that cannot be inspected now may
            // still exist.
            guard FileFault(errno).isAbsence else {
                throw DatabaseError(resultCode: .SQLITE_CANTOPEN, message: String(cString: strerror(errno)))
            }
            return (.missing, nil)
        }
        guard information.st_size > 0 else { return (.missing, nil) }
        let look: DatabaseQueue
        do {
            look = try openToRead()
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK {
            look = try openToRollBack()
        }
        let state = try look.read { database -> State in
            if try migrator.hasBeenSuperseded(database) { return .ofANewerVersion }
            let hasLog = try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
            return try hasLog && migrator.hasCompletedMigrations(database) ? .current : .ofAnEarlierVersion
        }
        try look.close()
        return (state, look)
    }

    /// The error for a file that a newer version has written.
    package struct NewerVersion: Error {}

    /// Inspects the file, and throws an error if a newer version has written the file.
    ///
    /// - Throws: ``NewerVersion``.
    package func inspectKnownVersion() throws -> (state: State, closed: DatabaseQueue?) {
        let look = try inspect()
        if look.state == .ofANewerVersion { throw NewerVersion() }
        return look
    }

    /// Opens a connection with write access. SQLite then rolls back the change that another process did not complete.
    private func openToRollBack() throws -> DatabaseQueue {
        var configuration = Configuration()
        let wait = WriterWait(database: path)
        configuration.busyMode = .callback { wait.wait($0) }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    // MARK: Copying

    /// Returns a copy of the file in memory. The copy is migrated to this version. Commands that only show data use the copy if
    /// the file cannot be written.
    ///
    /// - Returns: `nil` if a newer version has written the file.
    package func copyInMemory() throws -> DatabaseQueue? {
        let copy = try anyCopyInMemory()
        if try copy.read({ try migrator.hasBeenSuperseded($0) }) { return nil }
        try migrator.migrate(copy)
        return copy
    }

    private func anyCopyInMemory() throws -> DatabaseQueue {
        do {
            let copy = try DatabaseQueue()
            try openToRead().backup(to: copy)
            return copy
        } catch let error as DatabaseError where [.SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode) {
            // SQLite cannot open the file, because the index of the write-ahead log does not exist and cannot be created. If the
            // log is empty, the database file contains all rows and is read directly.
            let log = PathStatus.at(path + "-wal")
            guard log.isAbsent || log.information?.st_size == 0,
                let content = FileManager.default.contents(atPath: path), content.count >= Self.headerSize
            else { throw error }
            return try Self.inMemory(content)
        }
    }

    private static let headerSize = 100
    /// The offsets of the two bytes in the file that show whether the database uses a write-ahead log.
    private static let formatBytes = [18, 19]

    private static func inMemory(_ file: Data) throws -> DatabaseQueue {
        var content = [UInt8](file)
        for offset in formatBytes { content[offset] = 1 }
        let queue = try DatabaseQueue()
        try queue.inDatabase { database in
            guard let bytes = sqlite3_malloc64(sqlite3_uint64(content.count)) else {
                throw DatabaseError(resultCode: .SQLITE_NOMEM)
            }
            UnsafeMutableRawBufferPointer(start: bytes, count: content.count).copyBytes(from: content)
            // `sqlite3_deserialize` frees the bytes even if it returns an error.
            let code = sqlite3_deserialize(
                database.sqliteConnection, "main", bytes.assumingMemoryBound(to: UInt8.self), sqlite3_int64(content.count),
                sqlite3_int64(content.count), UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
            if code != SQLITE_OK { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        }
        return queue
    }

    // MARK: Opening

    /// The settings of every connection with write access. With these settings, committed data is not lost in a power cut, and
    /// deleted data is overwritten.
    private static let durability = "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; "

    /// Opens the file and migrates it to this version.
    ///
    /// - Parameters:
    ///   - label: the name of the connection's queue.
    ///   - wait: the object that waits while other processes use the file.
    ///   - turn: the lock file. A process locks this file while it creates the tables, because SQLite does not wait for a process
    ///     that switches the database to write-ahead mode.
    ///   - requiresTurn: `true` to throw if the lock file cannot be opened.
    ///   - mustWrite: `true` to throw if SQLite opened the file read-only, because the connection would stay read-only.
    ///   - pragmas: additional pragmas.
    /// - Returns: the open connection, and the closed connection with which the file was inspected.
    /// - Throws: ``NewerVersion`` if a newer version has written the file (the file is not changed), or an error of SQLite.
    package func open(
        label: String, wait: WriterWait, turn: URL, requiresTurn: Bool = true, mustWrite: Bool = false, pragmas: String = ""
    ) throws -> (queue: DatabaseQueue, look: DatabaseQueue?) {
        func connect(makesLog: Bool = false) throws -> DatabaseQueue {
            try self.connect(label, wait, mustWrite: mustWrite, makesLog: makesLog, pragmas)
        }
        // A complete file is opened without the lock, because a stopped process may hold the lock. While another process creates
        // the tables, the inspection fails, and is repeated with the lock.
        if let (state, look) = try? inspect(), state == .current { return (try connect(), look) }
        return try FileLock.whileHolding(turn, besides: path, isRequired: requiresTurn) {
            let (state, look) = try inspectKnownVersion()
            // The process that held the lock before may have created the tables.
            if state == .current { return (try connect(), look) }
            let queue = try connect(makesLog: true)
            try migrator.migrate(queue)
            return (queue, look)
        }
    }

    /// - Parameter makesLog: `true` to write to the file once, so that SQLite creates a write-ahead log.
    private func connect(
        _ label: String, _ wait: WriterWait, mustWrite: Bool, makesLog: Bool, _ pragmas: String
    ) throws -> DatabaseQueue {
        Self.forgetEarlierFault()
        var configuration = Configuration()
        configuration.journalMode = makesLog ? .wal : .default
        configuration.busyMode = .callback { wait.wait($0) }
        configuration.label = label
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        // GRDB sets `synchronous` to NORMAL for WAL after `prepareDatabase`. With NORMAL, a commit would not be lost in a crash,
        // but could be lost in a power cut.
        try queue.inDatabase { database in
            if mustWrite, sqlite3_db_readonly(database.sqliteConnection, "main") != 0 {
                throw DatabaseError(resultCode: .SQLITE_READONLY)
            }
            try database.execute(sql: Self.durability + pragmas)
            try Self.makeLogPersistent(database)
        }
        return queue
    }

    /// Opens the file in exclusive mode, without the index of the write-ahead log, because the index needs disk space. No other
    /// connection can open the file until this connection is closed. Use this method only in processes that run for a short time,
    /// for example commands.
    ///
    /// - Returns: the connection, or `nil` if the file does not contain all tables of this version.
    /// - Throws: an error if another connection has the file open, or if the file cannot be opened.
    package func openAlone(label: String) throws -> DatabaseQueue? {
        var configuration = Configuration()
        configuration.busyMode = .timeout(2)
        configuration.label = label
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; " + Self.durability)
            try Self.makeLogPersistent(database)
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let isCurrent = try queue.read {
            try !migrator.hasBeenSuperseded($0) && migrator.hasCompletedMigrations($0)
        }
        return isCurrent ? queue : nil
    }

    /// Keeps the log file after the last connection is closed. SQLite then empties the log file, because the log can contain old
    /// versions of rows.
    private static func makeLogPersistent(_ database: Database) throws {
        try database.execute(sql: "PRAGMA journal_size_limit = 0")
        var isKept: CInt = 1
        let code = sqlite3_file_control(database.sqliteConnection, nil, SQLITE_FCNTL_PERSIST_WAL, &isKept)
        if code != SQLITE_OK { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}
