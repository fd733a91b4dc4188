import ProcessSupport
import BackgroundScheduling
import CLinux
import SQLiteFiles
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
    /// `nil`: in memory.
    private let files: LedgerFiles?
    /// What the views of a ledger in memory share; `nil`: it lies on disk.
    let memory: LedgerMemory?
    private let role: Role
    private let wait: WriterWait
    /// `nil`: in memory.
    private let presence: ProcessPresence?
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
        let wait = WriterWait(database: directories.ledger.path)
        (self.role, self.wait) = (role, wait)
        (queue, look, files) = try Self.openBesideTheAgent(directories, as: role, wait)
        if role == .agent { files?.hold() }
        memory = nil
        presence = ProcessPresence(in: directories)
        recordSpool()
    }

    /// A view of a ledger in memory.
    init(_ directories: AppDirectories, _ memory: LedgerMemory) {
        self.directories = directories
        self.memory = memory
        role = .app
        wait = WriterWait(database: directories.ledger.path)
        (queue, look, files) = (memory.queue, nil, nil)
        presence = nil
    }

    /// A copy in memory of the ledger on the disk. For commands that only show the ledger while it cannot be written.
    package convenience init(copyOf directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do {
            guard let copy = try Ledger.file(path).copyInMemory() else { throw StoreError.newerVersion(path: path) }
            self.init(directories, LedgerMemory(copy))
        } catch {
            throw Ledger.translate(error, path: path)
        }
    }

    /// Throws if this version does not know the ledger that is there. Nothing is written, but an unfinished change is rolled back.
    package static func check(_ directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path
        do { _ = try file(path).lookIfKnown() } catch { throw translate(error, path: path) }
    }

    /// What a look at a ledger finds that changes nothing.
    package enum Look<Value> {
        case missing
        /// Whoever opens it next brings it to this version.
        case ofAnEarlierVersion
        case found(Value)
    }

    /// Reads a ledger without opening it for writing: nothing is made, mended or migrated. An unfinished change is rolled back.
    ///
    /// - Parameter body: reads it after its pages were checked. Cost of that: all of them are read.
    package static func look<Value>(
        _ directories: AppDirectories, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Look<Value> {
        let path = directories.ledger.path
        do {
            switch try file(path).lookIfKnown().state {
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

    /// With those files that the agent has open, where one runs: after one of them was removed it saves what is in it first, and opens the new
    /// ones.
    private static func openBesideTheAgent(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?, LedgerFiles) {
        let start = ContinuousClock.now
        func mayWrite(_ files: LedgerFiles) -> Bool { role == .agent || !files.areNotTheAgents }
        while true {
            // Looked at before, as opening makes what is not there, and after.
            if mayWrite(LedgerFiles(directories)) {
                do throws(StoreError) {
                    let (queue, look) = try openWithRoom(directories, as: role, wait)
                    // The files beside it are opened with the first look.
                    _ = try? queue.inDatabase { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master") }
                    let files = LedgerFiles(directories)
                    if mayWrite(files) { return (queue, look, files) }
                } catch {
                    if mayWrite(LedgerFiles(directories)) { throw error }
                }
            }
            guard ContinuousClock.now - start < patienceWithTheAgent else { throw .unsaved(path: directories.ledger.path) }
            usleep(10_000)
        }
    }

    /// It hears of a removed file at once, and its turns are short.
    private static let patienceWithTheAgent = Duration.seconds(10)

    /// On a full disk with what the reserve leaves.
    private static func openWithRoom(
        _ directories: AppDirectories, as role: Role, _ wait: WriterWait
    ) throws(StoreError) -> (DatabaseQueue, look: DatabaseQueue?) {
        do throws(StoreError) {
            return try openPatiently(directories, as: role, wait)
        } catch {
            // A lock's file may say so, too: what a person looks for is the ledger.
            if case .readOnly = error { throw .readOnly(path: directories.ledger.path) }
            guard error.maySayFull else { throw error }
            if role == .app, let queue = try? file(directories.ledger.path).openAlone(label: aloneLabel) { return (queue, nil) }
            guard DiskReserve.giveUp(directories) else { throw error }
            return try open(directories, as: role, wait)
        }
    }

    /// Repeats the opening after a fault that may pass within moments, for example a limit of open files. A connection that is alone in the
    /// ledger keeps the agent out of it.
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

    /// No other process can open the ledger before this one ends, because the disk was full when this process opened it.
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

    /// It goes with its process.
    package var isInMemory: Bool { memory != nil }

    /// Another file, or none, lies where this ledger, its log or the log's index was opened: what is written here nobody else will read.
    package var isReplaced: Bool { files?.areReplaced ?? false }

    /// Of the agent: somebody removed a file beside it, of which this process holds the last name. What is in it is brought into the ledger, where
    /// the next to open it finds it; then others may open it again. Only the latter where the ledger itself was taken away.
    package func save() throws(StoreError) {
        guard let files else { return }
        if !files.areAnotherLedgers {
            do {
                _ = try queue.inDatabase { try $0.checkpoint(.full) }
            } catch {
                throw Self.translate(error, path: directories.ledger.path)
            }
        }
        files.letGo()
    }

    /// Of the agent: others may open the ledger again, though what is in a file that was removed could not be saved.
    package func giveUpSaving() { files?.letGo() }

    /// Brings all that was committed into the file and empties its log, which keeps old versions of rows: secrets too, that were
    /// overwritten since. Where another process is reading or writing just now nothing happens. Cost: three syncs, if there is a log.
    package func putAway() {
        var information = stat()
        guard memory == nil, stat(directories.ledger.path + "-wal", &information) == 0, information.st_size > 0 else { return }
        queue.inDatabase { database in
            wait.limit(to: .zero)
            defer { wait.limit(to: nil) }
            // Not done is done at the next rest: nothing depends on it.
            _ = try? database.checkpoint(.truncate)
        }
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

    /// Writes only if no other process is writing, or is done in a moment.
    ///
    /// - Throws: ``StoreError/busy(path:)`` after 50 ms.
    package func writeIfFree<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        try writeOnce(patience: .milliseconds(50), body)
    }

    private func writeOnce<Value>(
        patience: Duration? = nil, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        presence?.show()
        // A commit into a file without a name would be lost.
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
            if let memory, view.mustTell { try memory.tell(view) }
            // It was removed just before the commit, and the agent had saved already perhaps.
            if role == .app, isReplaced { throw StoreError.replaced(path: directories.ledger.path) }
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
