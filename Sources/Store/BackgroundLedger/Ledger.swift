import ProcessSupport
import BackgroundScheduling
import CLinux
import SQLiteFiles
import Foundation
import GRDB

/// The database that an app's processes and the agent share: one SQLite file per app id.
///
/// Every change that must outlive a process is one transaction. The transaction is synced to the disk before the call returns
/// (0.3 ms on the SSD of a laptop). Only one process at a time can write, but a reader never waits. ``ChangeListener`` notifies
/// the agent of a commit, and the agent then reads the change from the ledger.
package final class Ledger: Sendable {
    package let directories: AppDirectories
    private let queue: DatabaseQueue
    /// The closed connection that was used to check the file. The connection's object is kept, because releasing its dispatch
    /// queue would start a dispatch thread. After the start of the first such thread, a timer of the dispatch library wakes the
    /// process every second. An idle agent would then never sleep.
    private let look: DatabaseQueue?
    /// The files of the ledger, or `nil` for a ledger in memory.
    private let files: LedgerFiles?
    /// The state that all views of a ledger in memory share, or `nil` if the ledger is on the disk.
    let memory: LedgerMemory?
    private let role: Role
    private let wait: WriterWait
    /// The lock that shows other processes that this process is running, or `nil` for a ledger in memory.
    private let presence: ProcessPresence?
    let view = LedgerMemory.View()

    /// The role of the process that opens the ledger. The role decides which process copies the write-ahead log into the database
    /// file. The copy costs three syncs.
    package enum Role {
        /// The app copies the write-ahead log only if the log is so long that no agent seems to be running. A running agent
        /// copies shorter logs.
        case app
        /// The agent copies the write-ahead log soon after a commit, so that other processes do not have to copy the log.
        case agent

        /// The length at which the process copies the write-ahead log into the database file, in pages of 4 KiB.
        fileprivate var checkpointAt: Int {
            switch self {
            case .app: 4_000
            case .agent: 1_000
            }
        }
    }

    /// Opens the ledger. If the ledger and its folders do not exist, creates them.
    ///
    /// - Throws: ``StoreError``. If the ledger is damaged or a newer version wrote it, the ledger is not changed.
    package init(_ directories: AppDirectories, as role: Role = .app) throws(StoreError) {
        self.directories = directories
        try directories.createStateFolders()
        let wait = WriterWait(database: directories.ledger.path)
        (self.role, self.wait) = (role, wait)
        (queue, look, files) = try Self.openBesideTheAgent(directories, as: role, wait)
        if role == .agent { files?.hold() }
        memory = nil
        presence = ProcessPresence(in: directories)
        recordSpool()
    }

    /// Creates a view of a ledger in memory for one process.
    init(_ directories: AppDirectories, _ memory: LedgerMemory) {
        self.directories = directories
        self.memory = memory
        role = .app
        wait = WriterWait(database: directories.ledger.path)
        (queue, look, files) = (memory.queue, nil, nil)
        presence = nil
    }

    /// Creates a copy of the ledger in memory. Commands that only show data use the copy if the ledger cannot be written.
    package convenience init(copyOf directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do {
            guard let copy = try Ledger.file(path).copyInMemory() else { throw StoreError.newerVersion(path: path) }
            self.init(directories, LedgerMemory(copy))
        } catch {
            throw Ledger.translate(error, path: path)
        }
    }

    /// Throws an error if this version cannot use the existing ledger. The method writes nothing, but SQLite may roll back an
    /// unfinished change.
    package static func check(_ directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do { _ = try file(path).inspectKnownVersion() } catch { throw translate(error, path: path) }
    }

    /// The result of reading a ledger without changing it.
    package enum Inspection<Value> {
        case missing
        /// An earlier version of the app wrote the ledger. The next process that opens the ledger migrates the ledger.
        case ofAnEarlierVersion
        case found(Value)
    }

    /// Reads a ledger without opening it for writing. The method creates, repairs and migrates nothing, but SQLite may roll back
    /// an unfinished change.
    ///
    /// - Parameter body: a closure that reads the ledger. All pages of the ledger are checked before the call.
    package static func inspect<Value>(
        _ directories: AppDirectories, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Inspection<Value> {
        let path = directories.ledger.path
        do {
            switch try file(path).inspectKnownVersion().state {
            case .missing: return .missing
            case .ofAnEarlierVersion, .ofANewerVersion: return .ofAnEarlierVersion
            case .current: break
            }
            return try file(path).openToReadChecked().read { database in
                .found(try body(LedgerTransaction(database: database, foreignCommits: nil)))
            }
        } catch {
            throw translate(error, path: path)
        }
    }

    /// Opens the same files that a running agent has open. If one of these files was removed, this method waits until the agent
    /// has copied its content into the ledger and opened the new files.
    private static func openBesideTheAgent(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?, LedgerFiles) {
        let start = ContinuousClock.now
        func mayWrite(_ files: LedgerFiles) -> Bool { role == .agent || !files.areNotTheAgents }
        while true {
            // The files are compared with the agent's files before and after SQLite opens them. The first comparison is
            // necessary, because SQLite creates files that do not exist.
            if mayWrite(LedgerFiles(directories)) {
                do throws(StoreError) {
                    let (queue, look) = try openWithRoom(directories, as: role, wait)
                    // SQLite opens the write-ahead log and the index of the log at the first read.
                    _ = try? queue.inDatabase { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master") }
                    let files = LedgerFiles(directories)
                    if mayWrite(files) { return (queue, look, files) }
                } catch {
                    if mayWrite(LedgerFiles(directories)) { throw error }
                }
            }
            guard ContinuousClock.now - start < agentWaitLimit else { throw .unsaved(path: directories.ledger.path) }
            usleep(10_000)
        }
    }

    /// The maximum time to wait for the agent. A short time is sufficient, because the agent detects a removed file immediately.
    private static let agentWaitLimit = Duration.seconds(10)

    /// Opens the ledger. If the disk is full, the file that reserves disk space is removed.
    private static func openWithRoom(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        do throws(StoreError) {
            return try openPatiently(directories, as: role, wait)
        } catch {
            // A lock file can also cause this error. The error always contains the path of the ledger, because the user knows the
            // ledger.
            if case .readOnly = error { throw .readOnly(path: directories.ledger.path) }
            guard error.mayMeanFullDisk else { throw error }
            if role == .app, let queue = try? file(directories.ledger.path).openAlone(label: aloneLabel) { return (queue, nil) }
            guard DiskReserve.giveUp(directories) else { throw error }
            return try open(directories, as: role, wait)
        }
    }

    /// Opens the ledger again after an error that may disappear soon, for example because too many files are open. If the method
    /// gave up, the app would open the ledger in exclusive mode, and the agent could not open the ledger.
    private static func openPatiently(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        var pause: UInt32 = 10_000
        while true {
            do throws(StoreError) {
                return try open(directories, as: role, wait)
            } catch {
                guard case .troubled = error, role == .app, pause < 1_000_000 else { throw error }
                usleep(pause)
                pause *= 2
            }
        }
    }

    private static let aloneLabel = "ledger alone"

    /// `true` if this process opened the ledger in exclusive mode, because the disk was full. No other process can open the
    /// ledger before this process ends.
    package var isAlone: Bool { queue.configuration.label == Self.aloneLabel }

    private static func file(_ path: String) -> DatabaseFile { DatabaseFile(path: path, migrator: LedgerSchema.migrator) }

    private static func open(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        let path = directories.ledger.path
        let file = file(path)
        try file.makeIfMissing()
        if access(path, R_OK | W_OK) != 0 { throw .notOpened(path, errno) }
        do {
            return try file.open(
                label: "ledger", wait: wait, turn: directories.state.appendingPathComponent("open.lock"),
                mustWrite: role == .agent,
                pragmas: "PRAGMA wal_autocheckpoint = \(role.checkpointAt)")
        } catch {
            throw translate(error, path: path)
        }
    }

    /// `true` if the ledger is in memory and is lost when its process ends.
    package var isInMemory: Bool { memory != nil }

    /// `true` if the ledger, its write-ahead log or the index of the log was removed or replaced after this process opened the
    /// ledger. In this case other processes cannot read the data that this process writes.
    package var isReplaced: Bool { files?.areReplaced ?? false }

    /// Copies the content of the write-ahead log into the ledger, after the log or its index was removed while the agent had it
    /// open. Other processes can then open the ledger again. If the ledger itself was removed, nothing is copied. Only the agent
    /// calls this method.
    package func save() throws(StoreError) {
        guard let files else { return }
        if !files.areAnotherLedgers {
            do {
                _ = try queue.inDatabase { try $0.checkpoint(.full) }
            } catch {
                throw Self.translate(error, path: directories.ledger.path)
            }
        }
        files.releaseHold()
    }

    /// Allows other processes to open the ledger again, although the content of a removed log could not be copied into the
    /// ledger. Only the agent calls this method.
    package func releaseUnsaved() { files?.releaseHold() }

    /// Copies all commits into the database file and empties the write-ahead log, because the log can contain old versions of
    /// rows with removed secrets. If another process is reading or writing, the method does nothing. If the log is not empty, the
    /// cost is three syncs.
    package func checkpointLog() {
        var information = stat()
        guard memory == nil, stat(directories.ledger.path + "-wal", &information) == 0, information.st_size > 0 else { return }
        queue.inDatabase { database in
            wait.limit(to: .zero)
            defer { wait.limit(to: nil) }
            // A failure is ignored, because the agent calls this method again the next time that the agent is idle.
            _ = try? database.checkpoint(.truncate)
        }
    }

    /// Waits until every write that this process began has ended.
    package func waitForWrites() { queue.inDatabase { _ in } }

    /// Runs `body` in one `BEGIN IMMEDIATE` transaction. No other process can change the values that `body` reads before the
    /// commit.
    ///
    /// If the disk is full, the file that reserves disk space is removed. In a process of the app, `body` then runs a second
    /// time. The agent retries its writes later.
    @discardableResult
    package func write<Value>(
        usesReserve: Bool = true, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        guard usesReserve else { return try writeOnce(body) }
        do throws(StoreError) {
            return try writeOnce(body)
        } catch  where memory == nil && error.mayMeanFullDisk && DiskReserve.giveUp(directories) {
            if role == .agent { throw error }
            return try writeOnce(body)
        }
    }

    /// Writes only if no other process is writing, or if the other process ends its transaction within 50 ms.
    ///
    /// - Throws: ``StoreError/busy(path:)`` after 50 ms.
    package func writeIfFree<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        try writeOnce(patience: .milliseconds(50), body)
    }

    private func writeOnce<Value>(
        patience: Duration? = nil, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        presence?.show()
        // If a file of the ledger was removed, a commit would be lost.
        if isReplaced { throw .replaced(path: directories.ledger.path) }
        do {
            var result: Value?
            try queue.inDatabase { database in
                wait.limit(to: patience)
                defer { wait.limit(to: nil) }
                let before = database.totalChangesCount
                try database.inTransaction(.immediate) {
                    result = try body(transaction(database))
                    if memory != nil, database.totalChangesCount != before { try view.mayDie(.committing) }
                    return .commit
                }
                if let memory, database.totalChangesCount != before { memory.count(view) }
            }
            if let memory, view.mustNotify { try memory.notify(view) }
            // If a file of the ledger was removed just before the commit, the agent may have copied the file's content without
            // this commit. The commit may then be lost.
            if role == .app, isReplaced { throw StoreError.replaced(path: directories.ledger.path) }
            return result!
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    private func transaction(_ database: Database) -> LedgerTransaction {
        LedgerTransaction(database: database, foreignCommits: memory?.commits(besides: view))
    }

    /// Reads the ledger after a change notification. inotify reports a write before the commit is visible, so this method waits
    /// for the writer (`BEGIN IMMEDIATE`). The method ``read(_:)`` could read the state before the commit, and no other
    /// notification would follow.
    package func readAfterRing<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        try write(body)
    }

    /// Runs `body` in a read transaction, so that all values come from the same state of the ledger.
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

    /// Returns the value of a SQLite pragma on this connection. Tests use this method to check the durability settings.
    package func pragma(_ name: String) throws(StoreError) -> String? {
        do {
            return try queue.inDatabase { try String.fetchOne($0, sql: "PRAGMA \(name)") }
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    private static func translate(_ error: any Error, path: String) -> StoreError {
        if let error = error as? StoreError { return error }
        if error is DatabaseFile.NewerVersion { return .newerVersion(path: path) }
        guard let error = error as? DatabaseError else { return .failed(path: path, reason: "\(error)") }
        switch DatabaseTrouble(error, path: path) {
        case .damaged: return .notADatabase(path: path)
        case .notWritable: return .readOnly(path: path)
        case .busy: return .busy(path: path)
        case .noRoom: return .diskFull(path: path)
        case .passing(let reason): return .troubled(path: path, reason: reason)
        case .other(let reason): return .failed(path: path, reason: reason)
        }
    }
}

/// The ledger inside one transaction. The extensions of this type contain the functions that read and change the tables. Each
/// table has a separate source file.
package struct LedgerTransaction {
    let database: Database
    /// The number of commits by other views of a ledger in memory. All views share one connection, and SQLite cannot distinguish
    /// the commits of one connection.
    var foreignCommits: Int?
    let memo = TransactionMemo()

    /// Returns whether a newer version of the program has migrated this ledger after this process opened it. This version must
    /// not write to such a ledger.
    package func isSuperseded() throws -> Bool { try LedgerSchema.migrator.hasBeenSuperseded(database) }

    /// The number of rows that this connection has changed.
    package var changeCount: Int { database.totalChangesCount }

    /// Returns a number that changes whenever another connection commits. Commits of this connection do not change the number.
    /// The call is fast.
    package func foreignVersion() throws -> Int {
        if let foreignCommits { return foreignCommits }
        return try Int.fetchOne(database.cachedStatement(sql: "PRAGMA data_version")) ?? 0
    }

    /// Returns the distinct values of the column `needs`. The query steps from one value to the next in the index, so the cost
    /// does not depend on the number of rows.
    ///
    /// - Parameter rows: SQL text with a table, an index by `needs`, and a condition.
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

    /// Returns the number of migrations of the ledger. The number increases with each migration. The call is fast.
    package func migrationCount() throws -> Int {
        try Int.fetchOne(database.cachedStatement(sql: "SELECT COUNT(*) FROM grdb_migrations")) ?? 0
    }
}
