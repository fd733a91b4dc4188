import Foundation
import GRDB
import ProcessSupport
import Testing

@testable import BackgroundLedger

/// Tests of copies of a ledger in memory. A program copies the ledger into memory if the ledger cannot be written.
@Suite struct LedgerCopyTests {
    private let test: TestLedger
    private var path: String { test.directories.ledger.path }

    init() throws {
        test = try TestLedger()
        try test.open().write { try $0.setFact(.lastTaskIdentifier, 1) }
    }

    /// Replaces the index of the write-ahead log by a symbolic link without a target. After that, neither root nor the owner of
    /// the ledger can create the index.
    private func breakLogIndex(log: Data) throws {
        for ending in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
        try FileManager.default.createSymbolicLink(atPath: path + "-shm", withDestinationPath: "/nowhere/index")
        try log.write(to: URL(fileURLWithPath: path + "-wal"))
    }

    @Test func `a copy has the rows of the ledger, and what is written to it stays in memory`() throws {
        let ledger = try test.open()
        try ledger.write { try $0.setFact(.lastTaskIdentifier, 2) }
        let copy = try Ledger(copyOf: test.directories)
        #expect(copy.isInMemory)
        #expect(try copy.read { try $0.fact(.lastTaskIdentifier) } == 2)
        try copy.write { try $0.setFact(.lastTaskIdentifier, 3) }
        #expect(try copy.readAfterRing { try $0.fact(.lastTaskIdentifier) } == 3)
        #expect(try ledger.read { try $0.fact(.lastTaskIdentifier) } == 2)
    }

    @Test func `a ledger whose index cannot be made is copied if its log is empty`() throws {
        try breakLogIndex(log: Data())
        let content = try Data(contentsOf: test.directories.ledger)
        let copy = try Ledger(copyOf: test.directories)
        try copy.write { transaction in
            #expect(try transaction.fact(.lastTaskIdentifier) == 1)
            try transaction.setFact(.lastTaskIdentifier, 2)
        }
        #expect(try copy.read { try $0.fact(.lastTaskIdentifier) } == 2)
        #expect(try Data(contentsOf: test.directories.ledger) == content)
    }

    @Test func `a ledger whose index cannot be made is not copied without the rows of its log`() throws {
        try breakLogIndex(log: Data(repeating: 1, count: 4_096))
        #expect(throws: StoreError.readOnly(path: path)) { try Ledger(copyOf: test.directories) }
    }

    @Test func `a ledger of a newer version is not copied`() throws {
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
        try queue.close()
        #expect(throws: StoreError.newerVersion(path: path)) { try Ledger(copyOf: test.directories) }
    }
}
