import ProcessSupport
@testable import BackgroundLedger
import CLinux
import Foundation
import GRDB
import SQLiteFiles
import Testing

@Suite struct LedgerOpeningTests {
    private let test: TestLedger

    init() throws { test = try TestLedger() }

    @Test func `folders and files are accessible only to their owner`() throws {
        let old = umask(0)
        defer { umask(old) }
        let ledger = try test.open()
        try ledger.write { try $0.setFact(.lastTaskIdentifier, 1) }
        for folder in [test.directories.state, test.directories.launches, test.directories.spool] {
            #expect(test.mode(folder) == 0o700, "\(folder.lastPathComponent)")
        }
        for suffix in ["", "-wal", "-shm"] {
            #expect(test.mode(URL(fileURLWithPath: test.directories.ledger.path + suffix)) == 0o600, "\(suffix)")
        }
    }

    @Test func `the permissions of an existing state folder are restricted to the owner`() throws {
        try FileManager.default.createDirectory(at: test.directories.state, withIntermediateDirectories: true)
        chmod(test.directories.state.path, 0o755)
        _ = try test.open()
        #expect(test.mode(test.directories.state) == 0o700)
    }

    /// If another user owns the state folder, this user could change which program the agent launches.
    @Test(.enabled(if: getuid() == 0)) func `a state folder of another user is refused`() throws {
        try FileManager.default.createDirectory(at: test.directories.state, withIntermediateDirectories: true)
        #expect(chown(test.directories.state.path, 23_456, 23_456) == 0)
        #expect(throws: StoreError.self) { try test.open() }
    }

    @Test func `the ledger uses full synchronization and a write-ahead log`() throws {
        let ledger = try test.open()
        #expect(try ledger.pragma("synchronous") == "2")
        #expect(try ledger.pragma("journal_mode") == "wal")
        // The setting `synchronous` is also used for a ledger that already exists.
        #expect(try test.open().pragma("synchronous") == "2")
    }

    @Test func `a write waits for another writer`() throws {
        let (first, second) = (try test.open(), try test.open())
        let (isHeld, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            isHeld.wait()
            try? second.write { try $0.setFact(.lastTaskIdentifier, 2) }
            hasEnded.signal()
        }
        try first.write { transaction in
            try transaction.setFact(.lastTaskIdentifier, 1)
            isHeld.signal()
            // The second write has to wait for this transaction. Without the wait, the second write would fail and send the
            // signal immediately.
            #expect(hasEnded.wait(timeout: .now() + 0.1) == .timedOut)
        }
        hasEnded.wait()
        #expect(try first.read { try $0.fact(.lastTaskIdentifier) } == 2)
    }

    @Test func `a ledger of a newer version is refused and not changed`() throws {
        do {
            _ = try test.open()
            let queue = try DatabaseQueue(path: test.directories.ledger.path)
            try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
            try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
            try queue.close()
        }
        let before = try Data(contentsOf: test.directories.ledger)
        #expect(throws: StoreError.newerVersion(path: test.directories.ledger.path)) { try test.open() }
        #expect(try Data(contentsOf: test.directories.ledger) == before)
    }

    @Test(arguments: [10, 100, 5_000])
    func `a file that is not a database is refused and not changed`(_ length: Int) throws {
        let garbage = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) })
        try test.place(garbage)
        #expect(throws: StoreError.notADatabase(path: test.directories.ledger.path)) { try test.open() }
        #expect(try Data(contentsOf: test.directories.ledger) == garbage)
    }

    @Test func `opening fails if a folder has the name of the ledger`() throws {
        try test.directories.createStateFolders()
        try FileManager.default.createDirectory(at: test.directories.ledger, withIntermediateDirectories: false)
        #expect(throws: StoreError.self) { try test.open() }
    }

    /// SQLite itself would wait until another process opens the pipe.
    @Test func `a named pipe with the name of the ledger is refused immediately`() throws {
        try test.directories.createStateFolders()
        let path = test.directories.ledger.path
        #expect(mkfifo(path, 0o600) == 0)
        let reason = "something that is not a file has that name"
        #expect(throws: StoreError.cannotCreate(path: path, reason: reason)) { try test.open() }
        // This folder cannot be opened as a database, so SQLite records an error. The test checks that this error is not reported
        // for the pipe.
        _ = try? DatabaseFile(path: test.directories.state.path, migrator: DatabaseMigrator()).openToRead().read {
            try $0.execute(sql: "SELECT 1")
        }
        #expect(throws: StoreError.notADatabase(path: path)) { try Ledger(copyOf: test.directories) }
        guard case .missing = try Ledger.inspect(test.directories, { _ in }) else {
            Issue.record("a pipe is not a ledger")
            return
        }
    }

    @Test func `an empty file becomes a ledger`() throws {
        try test.place(Data())
        #expect(try test.open().read { try $0.requests() }.isEmpty)
    }

    /// The test copies the database files during a transaction. The copies are like the files that a killed process leaves.
    @Test func `a change that another process did not finish is rolled back`() throws {
        try test.directories.createStateFolders()
        let (source, ledger) = (test.folder.appendingPathComponent("source").path, test.directories.ledger.path)
        let queue = try DatabaseQueue(path: source)
        try queue.write { try $0.execute(sql: "CREATE TABLE filler (bytes)") }
        try queue.writeWithoutTransaction { database in
            // If the cache is full, SQLite writes pages before the commit.
            try database.execute(sql: "PRAGMA cache_size = 2; BEGIN IMMEDIATE")
            for _ in 0..<200 { try database.execute(sql: "INSERT INTO filler VALUES (randomblob(3000))") }
            for suffix in ["", "-journal"] { try FileManager.default.copyItem(atPath: source + suffix, toPath: ledger + suffix) }
            try database.execute(sql: "ROLLBACK")
        }
        guard case .ofAnEarlierVersion = try Ledger.inspect(test.directories, { _ in }) else {
            Issue.record("the file cannot be read")
            return
        }
        try test.open().write { try $0.setFact(.lastTaskIdentifier, 1) }
        #expect(!FileManager.default.fileExists(atPath: ledger + "-journal"))
        #expect(try DatabaseQueue(path: ledger).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM filler") } == 0)
    }

    @Test func `a limit of open files is not reported as missing permissions`() {
        func trouble(_ fault: Int32?) -> DatabaseTrouble {
            DatabaseTrouble(DatabaseError(resultCode: .SQLITE_CANTOPEN), path: test.directories.ledger.path, fault: { fault })
        }
        guard case .passing(String(cString: strerror(EMFILE))) = trouble(EMFILE), case .notWritable = trouble(EACCES) else {
            Issue.record("\(trouble(EMFILE)), \(trouble(EACCES))")
            return
        }
    }

    @Test func `an unknown reason of SQLite is not reported as missing permissions`() {
        let error = DatabaseError(resultCode: .SQLITE_CANTOPEN)
        guard case .passing = DatabaseTrouble(error, path: test.directories.ledger.path, fault: { nil }) else {
            Issue.record("a reason was guessed")
            return
        }
    }

    /// SQLite opens a file for writing. If the file cannot be opened for writing, SQLite opens the file for reading. In this
    /// test, `O_DIRECTORY` makes the first of these two calls fail.
    @Test func `a fault that may pass does not make a database read-only`() throws {
        let path = test.folder.appendingPathComponent("file").path
        try Data("bytes".utf8).write(to: URL(fileURLWithPath: path))
        path.withCString { name in
            #expect(clinux_open_for_sqlite(name, O_RDWR | O_DIRECTORY, 0) < 0 && errno == ENOTDIR)
            // The file could be opened for reading, but SQLite would then keep the database read-only.
            #expect(clinux_open_for_sqlite(name, O_RDONLY, 0) < 0 && errno == ENOTDIR)
            #expect(clinux_sqlite_open_fault() == ENOTDIR)
            let descriptor = clinux_open_for_sqlite(name, O_RDONLY, 0)
            #expect(descriptor >= 0 && clinux_sqlite_open_fault() == 0)
            close(descriptor)
        }
    }

    @Test(.enabled(if: DiskSpace.isReadOnly(at: "/sys")))
    func `a file that may not be written is opened for reading`() throws {
        "/sys/kernel/uevent_seqnum".withCString { name in
            #expect(clinux_open_for_sqlite(name, O_RDWR, 0) < 0)
            let descriptor = clinux_open_for_sqlite(name, O_RDONLY, 0)
            #expect(descriptor >= 0)
            close(descriptor)
        }
    }

    @Test(.enabled(if: DiskSpace.isReadOnly(at: "/sys")))
    func `a disk that is mounted read-only is not reported as missing permissions`() {
        #expect("\(StoreError.readOnly(path: "/sys/agent.sqlite"))".hasSuffix("the disk is mounted read-only"))
    }

    @Test func `several first openings at the same time all succeed`() throws {
        for _ in 0..<5 {
            let test = try TestLedger()
            let directories = test.directories
            let openers = (0..<6).map { number in
                Background {
                    try Ledger(directories).write { transaction in
                        try transaction.setFact(.lastTaskIdentifier, (transaction.fact(.lastTaskIdentifier) ?? 0) + 1)
                    }
                }
            }
            for opener in openers { try opener.value() }
            #expect(try test.open().read { try $0.fact(.lastTaskIdentifier) } == 6)
        }
    }

    // MARK: Writers take turns

    @Test func `a writer that waited reads the changes of the previous writer`() throws {
        let first = try test.open()
        let second = try test.open()
        var other: Background<Int?>?
        try first.write { transaction in
            let started = DispatchSemaphore(value: 0)
            other = Background {
                started.signal()
                return try second.write { try $0.fact(.lastTaskIdentifier) }
            }
            started.wait()
            for number in 1...200 { try transaction.setFact(.lastTaskIdentifier, number) }
        }
        #expect(try other?.value() == 200, "a read inside the transaction returns the current value")
    }

    @Test func `a reader does not wait for a writer`() throws {
        let first = try test.open()
        let second = try test.open()
        try first.write { try $0.setFact(.lastTaskIdentifier, 1) }
        try first.write { transaction in
            try transaction.setFact(.lastTaskIdentifier, 2)
            #expect(try second.read { try $0.fact(.lastTaskIdentifier) } == 1)
        }
        #expect(try second.read { try $0.fact(.lastTaskIdentifier) } == 2)
    }

    /// The test takes 5 s, which is the busy timeout.
    @Test func `a writer reports that the ledger is busy after its timeout`() throws {
        let first = try test.open()
        let second = try test.open()
        try first.write { _ in
            let other = Background { try second.write { _ in } }
            #expect(throws: StoreError.busy(path: test.directories.ledger.path)) { try other.value() }
        }
        try second.write { try $0.setFact(.lastTaskIdentifier, 1) }
    }

    @Test func `a transaction that throws is rolled back`() throws {
        struct Stop: Error {}
        let ledger = try test.open()
        #expect(throws: StoreError.self) {
            try ledger.write { transaction in
                try transaction.setFact(.lastTaskIdentifier, 9)
                throw Stop()
            }
        }
        #expect(try ledger.read { try $0.fact(.lastTaskIdentifier) } == nil)
    }

    // MARK: Folders

    @Test func `relative paths in environment variables are ignored`() {
        let directories = AppDirectories(
            appIdentifier: "a",
            environment: ["HOME": "/h", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "run"])
        #expect(directories.state.path == "/h/.local/state/a")
        #expect(directories.data.path == "/d/a")
        #expect(directories.configuration.path == "/h/.config/a")
        #expect(directories.runtime == nil)
    }

    @Test(arguments: ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"])
    func `a folder that is not UTF-8 or contains a line break is refused`(_ variable: String) {
        let notUTF8 = String(decoding: Array(test.folder.path.utf8) + [0xff], as: UTF8.self)
        for (path, fault) in [(notUTF8, StoreError.FolderFault.notUTF8), (test.folder.path + "/a\nb", .lineBreak)] {
            var environment = ["HOME": test.folder.path]
            environment[variable] = path
            let directories = AppDirectories(appIdentifier: "app", environment: environment)
            let refusal = StoreError.unusableFolder(variable: variable, fault: fault)
            #expect(directories.refusal == refusal)
            #expect(throws: refusal) { try Ledger(directories) }
            #expect(!FileManager.default.fileExists(atPath: path))
        }
        #expect(test.directories.refusal == nil)
    }
}
