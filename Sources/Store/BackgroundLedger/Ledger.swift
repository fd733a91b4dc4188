import ProcessSupport
import BackgroundScheduling
import CLinux
import SQLiteFiles
import Foundation
import GRDB

/// The durable contract between an app's processes and its agent: one SQLite file per app id.
///
/// Every change that must outlive a process is one transaction, which is synced to the disk before the call returns (0.3 ms on a
/// laptop SSD). Writers of all processes take turns. A reader never waits. ``ChangeListener`` notifies the agent of a commit, and
/// the agent then reads the change from the ledger.
package final class Ledger: Sendable {
    package let directories: AppDirectories
    private let queue: DatabaseQueue
    /// The closed connection of an earlier check of the file. The connection is kept, because freeing its dispatch queue needs a
    /// dispatch thread. After the first such thread starts, a timer of the dispatch library wakes the process every second, and
    /// an idle agent would never sleep.
    private let look: DatabaseQueue?
    /// The files of the ledger. `nil` for a ledger in memory.
    private let files: LedgerFiles?
    /// The state that all views of a ledger in memory share; `nil` if the ledger is on disk.
    let memory: LedgerMemory?
    private let role: Role
    private let wait: WriterWait
    /// Shows other processes that this process is running. `nil` for a ledger in memory.
    private let presence: ProcessPresence?
    let view = LedgerMemory.View()

    /// The role of the process that opens the ledger. The role decides which process copies the write-ahead log into the database
    /// file. The copy costs three syncs.
    package enum Role {
        /// The app copies the log only if the log is larger than an agent allows, because no agent is running or the agent is
        /// stopped.
        case app
        /// The agent copies the log as soon as this is useful. The agent copies after a commit, so that other writers do not wait
        /// for the copy.
        case agent

        /// The length of the log at which the log is copied, in pages of 4 KiB.
        fileprivate var checkpointAt: Int {
            switch self {
            case .app: 4_000
            case .agent: 1_000
            }
        }
    }

    /// Opens the ledger. Creates the ledger and its folders if they do not exist.
    ///
    /// - Throws: ``StoreError``. A ledger of a newer version and a damaged ledger are not changed.
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

    /// Creates a copy in memory of the ledger on the disk, for commands that only show a ledger that cannot be written.
    package convenience init(copyOf directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do {
            guard let copy = try Ledger.file(path).copyInMemory() else { throw StoreError.newerVersion(path: path) }
            self.init(directories, LedgerMemory(copy))
        } catch {
            throw Ledger.translate(error, path: path)
        }
    }

    /// Throws if this version cannot use the existing ledger. Nothing is written, but an unfinished change is rolled back.
    package static func check(_ directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do { _ = try file(path).inspectKnownVersion() } catch { throw translate(error, path: path) }
    }

    /// The result of reading a ledger without changing it.
    package enum Inspection<Value> {
        case missing
        /// The next process that opens the ledger migrates it to this version.
        case ofAnEarlierVersion
        case found(Value)
    }

    /// Reads a ledger without opening it for writing. Nothing is created, repaired or migrated. An unfinished change is rolled
    /// back.
    ///
    /// - Parameter body: reads the ledger after its pages were checked. The check reads all pages.
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

    /// Opens the same files that a running agent has open. After one of the files was removed, the agent first saves the content
    /// and then opens the new files.
    private static func openBesideTheAgent(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?, LedgerFiles) {
        let start = ContinuousClock.now
        func mayWrite(_ files: LedgerFiles) -> Bool { role == .agent || !files.areNotTheAgents }
        while true {
            // The files are compared before opening, because opening creates missing files, and again after opening.
            if mayWrite(LedgerFiles(directories)) {
                do throws(StoreError) {
                    let (queue, look) = try openWithRoom(directories, as: role, wait)
                    // The files beside the database are opened by the first read.
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

    /// The maximum wait for the agent. A short wait is sufficient, because the agent detects a removed file at once.
    private static let agentWaitLimit = Duration.seconds(10)

    /// Opens the ledger. On a full disk, the space of the reserve is used.
    private static func openWithRoom(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        do throws(StoreError) {
            return try openPatiently(directories, as: role, wait)
        } catch {
            // The error always contains the path of the ledger, although a lock file can cause the same error. The user looks for
            // the ledger.
            if case .readOnly = error { throw .readOnly(path: directories.ledger.path) }
            guard error.mayMeanFullDisk else { throw error }
            if role == .app, let queue = try? file(directories.ledger.path).openAlone(label: aloneLabel) { return (queue, nil) }
            guard DiskReserve.giveUp(directories) else { throw error }
            return try open(directories, as: role, wait)
        }
    }

    /// Repeats the opening after a fault that may pass within moments, for example a limit of open files. A connection in
    /// exclusive mode prevents the agent from opening the ledger.
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

    /// `true` if no other process can open the ledger before this process ends, because the disk was full when it was opened.
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

    /// `true` if the ledger, its log or the index of the log was removed or replaced after it was opened. Other processes cannot
    /// read the data that this process writes.
    package var isReplaced: Bool { files?.areReplaced ?? false }

    /// Saves the ledger after its log or the index of the log was removed while the agent had the file open. The content of this
    /// file is copied into the ledger. Then other processes can open the ledger again. If the ledger itself was removed, nothing
    /// is saved. Only the agent calls this method.
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

    /// Lets other processes open the ledger again although the content of a removed file could not be saved. Only the agent calls
    /// this method.
    package func releaseUnsaved() { files?.releaseHold() }

    /// Copies all commits into the database file and empties the log. The log can contain old versions of rows with removed
    /// secrets. This method does nothing if another process is reading or writing. Cost: three syncs, if the log is not empty.
    package func checkpointLog() {
        var information = stat()
        guard memory == nil, stat(directories.ledger.path + "-wal", &information) == 0, information.st_size > 0 else { return }
        queue.inDatabase { database in
            wait.limit(to: .zero)
            defer { wait.limit(to: nil) }
            // A failure is ignored, because the next idle time repeats the attempt.
            _ = try? database.checkpoint(.truncate)
        }
    }

    /// Returns when every write that this process began has ended.
    package func waitForWrites() { queue.inDatabase { _ in } }

    /// Runs `body` in one `BEGIN IMMEDIATE` transaction. The values that `body` reads are current and stay current until the
    /// commit.
    ///
    /// If the disk is full, the reserved disk space is released. In an app, `body` then runs a second time. The agent has its own
    /// retries.
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

    /// Writes only if no other process is writing, or if the other process finishes within 50 ms.
    ///
    /// - Throws: ``StoreError/busy(path:)`` after 50 ms.
    package func writeIfFree<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        try writeOnce(patience: .milliseconds(50), body)
    }

    private func writeOnce<Value>(
        patience: Duration? = nil, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        presence?.show()
        // A commit into a removed file would be lost.
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
            // The files were removed just before the commit. The agent may have saved the content before the commit, so the
            // commit may be lost.
            if role == .app, isReplaced { throw StoreError.replaced(path: directories.ledger.path) }
            return result!
        } catch {
            throw Self.translate(error, path: directories.ledger.path)
        }
    }

    private func transaction(_ database: Database) -> LedgerTransaction {
        LedgerTransaction(database: database, foreignCommits: memory?.commits(besides: view))
    }

    /// Reads the change after a change notification. inotify reports a write before the commit is visible, so this method waits
    /// for the writer (`BEGIN IMMEDIATE`). ``read(_:)`` could read the earlier state, and no other notification would follow.
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

    /// Returns the value of a pragma on this connection, for tests of the durability settings.
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

/// The ledger inside one transaction. The extensions have the functions that read and change the tables, with one file per table.
package struct LedgerTransaction {
    let database: Database
    /// The number of commits by other views. In memory all views share one connection, which cannot distinguish its commits.
    var foreignCommits: Int?
    let memo = TransactionMemo()

    /// Returns whether a newer version of the program has migrated this ledger after it was opened. This version must not write
    /// to such a ledger.
    package func isSuperseded() throws -> Bool { try LedgerSchema.migrator.hasBeenSuperseded(database) }

    /// The number of rows that were changed through this connection.
    package var changeCount: Int { database.totalChangesCount }

    /// Returns a number that changes whenever another connection has committed. Commits of this connection do not change the
    /// number. The call takes little time.
    package func foreignVersion() throws -> Int {
        if let foreignCommits { return foreignCommits }
        return try Int.fetchOne(database.cachedStatement(sql: "PRAGMA data_version")) ?? 0
    }

    /// Returns the different values of `needs` among rows. The query steps from one value to the next in the index, so the cost
    /// does not depend on the number of rows.
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

    /// Returns the number of migrations of the ledger. The number increases with each migration. The call takes little time.
    package func migrationCount() throws -> Int {
        try Int.fetchOne(database.cachedStatement(sql: "SELECT COUNT(*) FROM grdb_migrations")) ?? 0
    }
}
