import ProcessSupport
import BackgroundScheduling
import CLinux
import Foundation
import GRDB

/// The durable contract between an app's processes and its agent: one SQLite file per app id.
///
/// Every change that must outlive a process is one transaction, synced to the disk before the call returns
/// (0.3 ms on a laptop SSD). Writers of all processes take turns; a reader never waits. The agent hears of a
/// commit through ``Bell``, which carries no data: what counts is what it then reads here.
package final class Ledger: Sendable {
    package let directories: AppDirectories
    private let queue: DatabaseQueue
    /// The closed connection of the look before. Freeing a dispatch queue is work for a dispatch thread, and from the
    /// first of those on a timer of theirs wakes the process every second: an idle agent would never sleep.
    private let look: DatabaseQueue?
    private let inode: UInt64
    /// What the views of a ledger in memory share; `nil`: it lies on disk.
    let memory: LedgerMemory?
    private let role: Role
    let view = LedgerMemory.View()

    /// Who opens it: whose commits copy the write-ahead log into the file, which costs three syncs.
    package enum Role {
        /// Only when the log has grown beyond what an agent leaves: without an agent, or beside one that is stopped.
        case app
        /// As soon as it is worth it. It comes behind the commit, so that no other writer waits for it.
        case agent

        /// In pages of 4 KiB.
        fileprivate var checkpointAt: Int {
            switch self {
            case .app: 4_000
            case .agent: 1_000
            }
        }
    }

    /// Opens the ledger, making it and its folders when absent.
    ///
    /// - Throws: ``StoreError``; a ledger of a newer version or a damaged one is left untouched.
    package init(_ directories: AppDirectories, as role: Role = .app) throws(StoreError) {
        self.directories = directories
        try directories.createStateFolders()
        // One at a time: switching a new file to write-ahead mode and making its tables do not wait for each other.
        let lock = directories.state.appendingPathComponent("open.lock")
        let path = directories.ledger.path
        self.role = role
        do {
            (queue, look) = try FileLock.whileHolding(lock) { () throws(StoreError) in
                do throws(StoreError) {
                    return try Self.open(path, as: role)
                } catch  where error.maySayFull && DiskReserve.giveUp(directories) {
                    return try Self.open(path, as: role)
                }
            }
        } catch .readOnly {
            throw .readOnly(path: path)
        }
        var information = stat()
        inode = stat(path, &information) == 0 ? UInt64(information.st_ino) : 0
        memory = nil
    }

    /// A view of a ledger in memory.
    init(_ directories: AppDirectories, _ memory: LedgerMemory) {
        self.directories = directories
        self.memory = memory
        role = .app
        (queue, look, inode) = (memory.queue, nil, 0)
    }

    private static func open(_ path: String, as role: Role) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        try makeFile(path)

        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .callback(waitForWriter)
        configuration.label = "ledger"
        do {
            let (look, isComplete) = try refuseNewer(path)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            // GRDB sets NORMAL for WAL after `prepareDatabase`: a commit would survive a crash but not a power cut.
            try queue.inDatabase {
                try $0.execute(sql: "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = \(role.checkpointAt)")
            }
            // Where all tables are there nothing is written, and who holds the ledger is not waited for.
            if !isComplete { try LedgerSchema.migrator.migrate(queue) }
            return (queue, look)
        } catch {
            throw translate(error, path: path)
        }
    }

    /// While another process writes: asked again every 0.1 ms at first, then every millisecond, for five seconds. SQLite's own waiter
    /// sleeps longer each time, up to 100 ms: agent and app meet at every hand-over, and would wait for that rather than for each other.
    private static func waitForWriter(_ round: Int) -> Bool {
        usleep(round < 100 ? 100 : 1_000)
        return round < 5_000
    }

    /// Another file, or none, lies where this ledger was opened: what is written here nobody else will read.
    package var isReplaced: Bool {
        if memory != nil { return false }
        var information = stat()
        return stat(directories.ledger.path, &information) != 0 || UInt64(information.st_ino) != inode
    }

    /// Made by us first, so that SQLite gives its side files the same narrow mode. An existing file is not opened here:
    /// closing it again would let go of the locks that another connection of this process holds on it.
    private static func makeFile(_ path: String) throws(StoreError) {
        let descriptor = clinux_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
        } else if errno != EEXIST {
            throw .notOpened(path, errno)
        } else if access(path, R_OK | W_OK) != 0 {
            throw .readOnly(path: path)
        } else {
            var information = stat()
            guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
                throw .cannotCreate(path: path, reason: "something that is not a file has that name")
            }
        }
    }

    /// Opening for writing alone changes the file (GRDB writes once to make the write-ahead log), so it is looked at before.
    /// - Returns: the connection it looked through, closed, and whether all tables of this version are there.
    private static func refuseNewer(_ path: String) throws -> (look: DatabaseQueue?, isComplete: Bool) {
        var information = stat()
        guard stat(path, &information) == 0, information.st_size > 0 else { return (nil, false) }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let look = try DatabaseQueue(path: path, configuration: configuration)
        let (isNewer, isComplete) = try look.read { database in
            let migrator = LedgerSchema.migrator
            return (try migrator.hasBeenSuperseded(database), try migrator.hasCompletedMigrations(database))
        }
        try look.close()
        if isNewer { throw StoreError.newerVersion(path: path) }
        return (look, isComplete)
    }

    /// Returns when every write of this process that has begun is over.
    package func waitForWrites() { queue.inDatabase { _ in } }

    /// Runs `body` in one `BEGIN IMMEDIATE` transaction: what it reads is current and stays so until it commits.
    ///
    /// On a full disk the reserve is given up. An app's `body` then runs a second time; the agent tries again by itself.
    @discardableResult
    package func write<Value>(
        usesReserve: Bool = true, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        guard usesReserve else { return try writeOnce(body) }
        do throws(StoreError) {
            return try writeOnce(body)
        } catch  where memory == nil && error.maySayFull && DiskReserve.giveUp(directories) {
            if role == .agent { throw error }
            return try writeOnce(body)
        }
    }

    private func writeOnce<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        do {
            var result: Value?
            try queue.inDatabase { database in
                let before = database.totalChangesCount
                try database.inTransaction(.immediate) {
                    result = try body(transaction(database))
                    if memory != nil, database.totalChangesCount != before { try view.mayDie(.committing) }
                    return .commit
                }
                if let memory, database.totalChangesCount != before { memory.count(view) }
            }
            if let memory, view.mustTell { try memory.tell(view) }
            return result!
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    private func transaction(_ database: Database) -> LedgerTransaction {
        LedgerTransaction(database: database, foreignCommits: memory?.commits(besides: view))
    }

    /// Reads what a ring of the bell was about. inotify tells of the write before the commit is visible, so this waits
    /// for the writer (`BEGIN IMMEDIATE`), where ``read(_:)`` could see the state before and never be rung for again.
    package func readAfterRing<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        try write(body)
    }

    /// Runs `body` on one consistent snapshot.
    package func read<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        do {
            var result: Value?
            try queue.inDatabase { database in
                try database.inTransaction(.deferred) {
                    result = try body(transaction(database))
                    return .commit
                }
            }
            return result!
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    /// The value of a pragma on this connection, for tests of the durability settings.
    package func pragma(_ name: String) throws(StoreError) -> String? {
        do {
            return try queue.inDatabase { try String.fetchOne($0, sql: "PRAGMA \(name)") }
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    private static func translate(_ error: any Error, path: String) -> StoreError {
        if let error = error as? StoreError { return error }
        guard let error = error as? DatabaseError else { return .failed(path: path, reason: "\(error)") }
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT: return .notADatabase(path: path)
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN: return .readOnly(path: path)
        case .SQLITE_BUSY, .SQLITE_LOCKED: return .busy(path: path)
        case .SQLITE_FULL: return .diskFull(path: path)
        // Also a quota that is used up, which SQLite does not tell apart.
        case .SQLITE_IOERR, .SQLITE_NOMEM: return .troubled(path: path, reason: error.message ?? "\(error.resultCode)")
        default: return .failed(path: path, reason: error.message ?? "\(error.resultCode)")
        }
    }
}

/// The ledger inside one transaction. What can be read and changed is in the extensions, one file per table.
package struct LedgerTransaction {
    let database: Database
    /// In memory all views share one connection, which then cannot tell whose commits were others'.
    var foreignCommits: Int?
    let memo = TransactionMemo()

    /// A newer version of the program has migrated this ledger since it was opened: its rules are not ours.
    package func isSuperseded() throws -> Bool { try LedgerSchema.migrator.hasBeenSuperseded(database) }

    /// Rows changed so far through this connection.
    package var changeCount: Int { database.totalChangesCount }

    /// Another number whenever another connection has committed; our own commits leave it. Cheap to ask.
    package func foreignVersion() throws -> Int {
        if let foreignCommits { return foreignCommits }
        return try Int.fetchOne(database.cachedStatement(sql: "PRAGMA data_version")) ?? 0
    }

    /// The different values of `needs` among rows, from one to the next by their index, however many rows each has.
    ///
    /// - Parameter rows: a table, its index by `needs`, and a condition.
    func needs(in rows: String) throws -> [Int] {
        try Int.fetchAll(
            database.cachedStatement(
                sql: """
                    WITH RECURSIVE class (needs) AS (
                        SELECT MIN(needs) FROM \(rows)
                        UNION ALL
                        SELECT (SELECT MIN(needs) FROM \(rows) AND needs > class.needs) FROM class WHERE needs IS NOT NULL)
                    SELECT needs FROM class WHERE needs IS NOT NULL
                    """))
    }

    /// How many migrations it has seen: cheap to ask, and it grows with each.
    package func migrationCount() throws -> Int {
        try Int.fetchOne(database.cachedStatement(sql: "SELECT COUNT(*) FROM grdb_migrations")) ?? 0
    }
}
