import Foundation
import GRDB
import ProcessSupport
import SQLiteFiles
import Testing

@testable import BackgroundLedger

@Suite struct LedgerFaultTests {
    private let test: TestLedger

    init() throws { test = try TestLedger() }

    /// The test uses the file of a running program. The file of a running program can be read, but not opened for writing, even
    /// by root (ETXTBSY).
    @Test func `a log that cannot be opened for now is reported as a temporary fault, not as read-only`() throws {
        try test.open().write { try $0.setFact(.lastTaskIdentifier, 1) }
        let (path, log) = (test.directories.ledger.path, test.directories.ledger.path + "-wal")
        for ending in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + ending) }
        try FileManager.default.copyItem(atPath: "/bin/sl" + "eep", toPath: log)
        let program = try ChildProcess(path: log, arguments: ["600"], environment: [:]).start()
        defer {
            kill(program, SIGKILL)
            _ = ChildProcess.wait(for: program)
        }
        #expect(throws: StoreError.troubled(path: path, reason: String(cString: strerror(ETXTBSY)))) {
            try test.open().write { try $0.setFact(.lastTaskIdentifier, 2) }
        }
        try FileManager.default.removeItem(atPath: log)
        #expect(try test.open().read { try $0.fact(.lastTaskIdentifier) } == 1)
    }

    /// SQLite reports SQLITE_CORRUPT after a read that failed with EIO.
    @Test func `a read that failed is not reported as damage`() {
        let error = DatabaseError(resultCode: .SQLITE_CORRUPT)
        var byte: UInt8 = 0
        #expect(SQLiteOpening.readCall(-1, &byte, 1, 0) == -1)
        guard case .passing(String(cString: strerror(EBADF))) = DatabaseTrouble(error, path: "/nowhere"),
            case .damaged = DatabaseTrouble(error, path: "/nowhere")
        else {
            Issue.record("the error has another reason than the failed read")
            return
        }
    }
}
