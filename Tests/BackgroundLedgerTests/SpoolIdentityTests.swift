@testable import BackgroundLedger
import Foundation
@testable import ProcessSupport
import Testing

/// Tests that the ledger recognizes the folder of the queued copies, and finds copies that are missing in the folder.
@Suite struct SpoolIdentityTests {
    private let test: TestLedger
    private var spool: URL { test.directories.spool }
    private let files = FileManager.default

    init() throws { test = try TestLedger() }

    /// Creates a queued upload and the copy of its file.
    private func upload(_ ledger: Ledger, _ name: String = "upload-1") throws -> Int64 {
        try Data("photo".utf8).write(to: spool.appendingPathComponent(name))
        return try ledger.write { transaction in
            var record = TransferRecord(
                session: "s", key: name, kind: .upload, method: "PUT", url: "http://127.0.0.1/", headers: [],
                now: TestLedger.now)
            record.bodyFile = name
            record.sourceSHA256 = "digest"
            return try #require(try transaction.insert(record).id)
        }
    }

    private func isKnown(_ ledger: Ledger) throws -> Bool { try ledger.read { try $0.knows(spool: spool) } }

    private func replaceSpool() throws {
        try files.moveItem(at: spool, to: test.folder.appendingPathComponent("away"))
        try files.createDirectory(at: spool, withIntermediateDirectories: false)
    }

    @Test func `a new ledger knows its spool`() throws { #expect(try isKnown(test.open())) }

    @Test func `a new spool is not known while a copy is missing`() throws {
        let ledger = try test.open()
        let id = try upload(ledger)
        try replaceSpool()
        #expect(try !isKnown(ledger))
        #expect(try !isKnown(test.open()))
        #expect(try ledger.read { try $0.missingCopies(in: spool) } == [id])
        try files.removeItem(at: spool)
        try files.moveItem(at: test.folder.appendingPathComponent("away"), to: spool)
        #expect(try isKnown(ledger))
        #expect(try ledger.read { try $0.missingCopies(in: spool) } == [])
    }

    /// The path of the spool now leads to another folder, for example because a backup was restored or the folder was moved to
    /// another disk.
    @Test func `a new spool with every copy becomes known`() throws {
        let ledger = try test.open()
        _ = try upload(ledger)
        try replaceSpool()
        try files.copyItem(
            at: test.folder.appendingPathComponent("away/upload-1"), to: spool.appendingPathComponent("upload-1"))
        #expect(try isKnown(test.open()))
    }

    @Test func `a new spool becomes known after the upload of the missing copy was cancelled`() throws {
        let ledger = try test.open()
        let id = try upload(ledger)
        try replaceSpool()
        try ledger.write { try $0.handle(.cancelled(message: nil, now: TestLedger.now), transfer: id, now: TestLedger.now) }
        #expect(try isKnown(test.open()))
    }

    /// An earlier version of the program did not record the folder.
    @Test(arguments: [true, false])
    func `a ledger without a recorded spool records the spool only if no copy is missing`(_ isMissing: Bool) throws {
        let ledger = try test.open()
        _ = try upload(ledger)
        try ledger.write { try $0.setFact(.spool, nil) }
        if isMissing { try files.removeItem(at: spool.appendingPathComponent("upload-1")) }
        #expect(try isKnown(test.open()) != isMissing)
    }

    @Test(arguments: [true, false]) func `only a copy with the same content replaces a missing copy`(_ isSame: Bool) throws {
        let ledger = try test.open()
        let id = try upload(ledger)
        try files.removeItem(at: spool.appendingPathComponent("upload-1"))
        try ledger.write { transaction in
            var transfer = try #require(try transaction.transfer(id))
            try transaction.unpause(&transfer, bringing: "upload-2", isSame ? "digest" : "other", in: spool, now: TestLedger.now)
        }
        #expect(try ledger.read { try $0.transfer(id)?.bodyFile } == (isSame ? "upload-2" : "upload-1"))
    }

    @Test func `a copy that exists is not replaced`() throws {
        let ledger = try test.open()
        let id = try upload(ledger)
        try ledger.write { transaction in
            var transfer = try #require(try transaction.transfer(id))
            try transaction.unpause(&transfer, bringing: "upload-2", "digest", in: spool, now: TestLedger.now)
        }
        #expect(try ledger.read { try $0.transfer(id)?.bodyFile } == "upload-1")
    }

    // MARK: Folders

    @Test func `folders are created with their parents and are accessible only to their owner`() throws {
        let folder = test.folder.appendingPathComponent("a/b/c")
        try AppDirectories.createPrivateFolder(folder)
        try AppDirectories.createPrivateFolder(folder)
        #expect(test.mode(folder) == 0o700)
    }

    /// The path of the folder is a file, is below a file, or is a symbolic link that is broken or leads to itself.
    @Test(arguments: ["file", "file/below", "nowhere", "loop"]) func `a file or a dead link in the way of a folder is reported`(
        _ name: String
    ) throws {
        try Data().write(to: test.folder.appendingPathComponent("file"))
        try files.createSymbolicLink(atPath: test.folder.appendingPathComponent("nowhere").path, withDestinationPath: "missing")
        try files.createSymbolicLink(atPath: test.folder.appendingPathComponent("loop").path, withDestinationPath: "loop")
        let folder = test.folder.appendingPathComponent(name, isDirectory: false)
        let reason = "something that is not a folder has this name"
        #expect(throws: StoreError.cannotCreate(path: folder.path, reason: reason)) {
            try AppDirectories.createPrivateFolder(folder)
        }
    }

    @Test func `a link to a folder is a folder`() throws {
        let (folder, link) = (test.folder.appendingPathComponent("folder"), test.folder.appendingPathComponent("link"))
        try AppDirectories.createPrivateFolder(folder)
        try files.createSymbolicLink(at: link, withDestinationURL: folder)
        try AppDirectories.createPrivateFolder(link)
    }

    @Test(arguments: [EIO, EACCES, EPERM, ENOMEM, ESTALE])
    func `a folder that cannot be examined is a temporary fault with the reason of the system`(_ number: Int32) {
        let error = AppDirectories.notSeen(spool, number)
        #expect(error.isPassing)
        #expect("\(error)".contains(String(cString: strerror(number))))
    }

    @Test(arguments: [EIO: true, ENOSPC: true, EMFILE: true, EACCES: false, EROFS: false, ENAMETOOLONG: false])
    func `the error number decides whether a folder that cannot be created is a temporary fault`(
        _ number: Int32, _ isPassing: Bool
    ) {
        #expect(AppDirectories.notMade(spool, number).isPassing == isPassing)
    }
}
