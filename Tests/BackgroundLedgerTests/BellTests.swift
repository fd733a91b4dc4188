import ProcessSupport
@testable import BackgroundLedger
import CLinux
import Foundation
import Testing

@Suite struct BellTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let other: Ledger

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
        other = try test.open()
    }

    /// Owns a bell, which cannot be copied.
    private final class Listener {
        private let bell: Bell

        init(_ directories: AppDirectories) throws { bell = try Bell(directories) }

        /// Takes a ring; `timeout` in milliseconds bounds the wait for it.
        func rings(within timeout: Int32) -> Bool {
            var entry = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            defer { bell.drain() }
            return poll(&entry, 1, timeout) == 1
        }
    }

    @Test func ringsForAnotherHandlesCommit() throws {
        let bell = try Listener(test.directories)
        #expect(!bell.rings(within: 0))
        for number in 1...3 {
            try other.write { try $0.setFact(.lastTaskIdentifier, number) }
            #expect(bell.rings(within: 5_000))
            #expect(!bell.rings(within: 0), "drained")
        }
    }

    @Test func ringsForAnotherProcessesCommit() throws {
        let bell = try Listener(test.directories)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            """
            import sqlite3, sys
            connection = sqlite3.connect(sys.argv[1])
            connection.execute("INSERT INTO fact VALUES ('lastTaskIdentifier', '41')")
            connection.commit()
            """, test.directories.ledger.path,
        ]
        try process.run()
        #expect(bell.rings(within: 30_000))
        #expect(try ledger.readAfterRing { try $0.fact(.lastTaskIdentifier) } == 41)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test func isSilentWhenNothingIsWritten() throws {
        try other.write { try $0.setFact(.lastTaskIdentifier, 7) }
        let bell = try Listener(test.directories)
        _ = try other.read { try $0.fact(.lastTaskIdentifier) }
        _ = try other.readAfterRing { try $0.requests() }
        try other.write { try $0.setFact(.lastTaskIdentifier, 7) }
        try other.write { try $0.setCategory("storm", actions: []) }
        #expect(bell.rings(within: 0), "a category is news")
        try other.write { try $0.setCategory("storm", actions: []) }
        struct Stop: Error {}
        try? other.write { transaction in
            try transaction.setFact(.lastTaskIdentifier, 8)
            throw Stop()
        }
        #expect(!bell.rings(within: 0))
    }

    /// The last handle that closes removes the write-ahead file: not while the listener has the ledger open.
    @Test func stillRingsWhenOtherHandlesCameAndWent() throws {
        let bell = try Listener(test.directories)
        for number in 1...3 {
            do { try test.open().write { try $0.setFact(.lastTaskIdentifier, number) } }
            #expect(bell.rings(within: 5_000))
        }
    }

    /// Somebody tidied up below a running agent: what it writes from now on nobody reads.
    @Test(arguments: ["removed", "moved", "replaced"])
    func ringsWhenTheLedgerGoesAway(_ fate: String) throws {
        let bell = try Listener(test.directories)
        let path = test.directories.ledger
        let elsewhere = path.deletingLastPathComponent().appendingPathComponent("elsewhere")
        #expect(!ledger.isReplaced)
        switch fate {
        case "removed": try FileManager.default.removeItem(at: path)
        case "moved": try FileManager.default.moveItem(at: path, to: elsewhere)
        default:
            try Data().write(to: elsewhere)
            #expect(rename(elsewhere.path, path.path) == 0)
        }
        #expect(bell.rings(within: 5_000))
        #expect(ledger.isReplaced)
    }

    /// The agent may have brought what was in the log into the ledger just before the commit, and nobody looks into that log again.
    @Test func aCommitIntoARemovedLogIsNone() throws {
        let log = URL(fileURLWithPath: test.directories.ledger.path + "-wal")
        #expect(throws: StoreError.replaced(path: test.directories.ledger.path)) {
            try ledger.write { transaction in
                try FileManager.default.removeItem(at: log)
                try transaction.setFact(.lastTaskIdentifier, 1)
            }
        }
    }

    @Test func needsTheLedgerOpenedBefore() throws {
        let nobody = try TestLedger()
        #expect(throws: StoreError.self) { _ = try Listener(nobody.directories) }
    }
}
