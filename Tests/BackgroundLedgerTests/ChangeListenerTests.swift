import ProcessSupport
@testable import BackgroundLedger
import CLinux
import Foundation
import Testing

@Suite struct ChangeListenerTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let other: Ledger

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
        other = try test.open()
    }

    /// A class that owns a listener for change notifications, because the listener cannot be copied.
    private final class Listener {
        private let bell: ChangeListener

        init(_ directories: AppDirectories) throws { bell = try ChangeListener(directories) }

        /// Returns whether a change notification arrives within `timeout` milliseconds, and consumes the notification.
        func rings(within timeout: Int32) -> Bool {
            var entry = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            defer { bell.drain() }
            return poll(&entry, 1, timeout) == 1
        }
    }

    @Test func `a commit of another handle sends a change notification`() throws {
        let bell = try Listener(test.directories)
        #expect(!bell.rings(within: 0))
        for number in 1...3 {
            try other.write { try $0.setFact(.lastTaskIdentifier, number) }
            #expect(bell.rings(within: 5_000))
            #expect(!bell.rings(within: 0), "drained")
        }
    }

    @Test func `a commit of another process sends a change notification`() throws {
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

    @Test func `a write that changes nothing sends no change notification`() throws {
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

    /// When the last handle of a ledger is closed, SQLite removes the write-ahead log. SQLite keeps the write-ahead log while
    /// another handle is open.
    @Test func `change notifications are sent after other handles were closed`() throws {
        let bell = try Listener(test.directories)
        for number in 1...3 {
            do { try test.open().write { try $0.setFact(.lastTaskIdentifier, number) } }
            #expect(bell.rings(within: 5_000))
        }
    }

    /// If the ledger of a running agent is removed, no other process can read what this agent writes.
    @Test(arguments: ["removed", "moved", "replaced"])
    func `a removed, moved or replaced ledger causes a change notification`(_ fate: String) throws {
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

    /// The write-ahead log was removed, so no process would ever read this commit. The commit must therefore fail.
    @Test func `a commit to a removed write-ahead log fails`() throws {
        let log = URL(fileURLWithPath: test.directories.ledger.path + "-wal")
        #expect(throws: StoreError.replaced(path: test.directories.ledger.path)) {
            try ledger.write { transaction in
                try FileManager.default.removeItem(at: log)
                try transaction.setFact(.lastTaskIdentifier, 1)
            }
        }
    }

    @Test func `a listener for change notifications requires an existing ledger`() throws {
        let nobody = try TestLedger()
        #expect(throws: StoreError.self) { _ = try Listener(nobody.directories) }
    }
}
