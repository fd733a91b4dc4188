import ProcessSupport
import Spool
@testable import BackgroundLedger
import CLinux
import Foundation
import Testing

@Suite struct SnapshotTests {
    private let test: TestLedger
    private let source: URL

    init() throws {
        test = try TestLedger()
        try test.directories.createStateFolders()
        source = test.folder.appendingPathComponent("photo.jpg")
    }

    private var spooled: [String] { (try? FileManager.default.contentsOfDirectory(atPath: test.directories.spool.path)) ?? [] }

    private func take(allowsEmpty: Bool = false) throws -> Snapshot {
        try Snapshot.make(of: source, in: test.directories, allowsEmpty: allowsEmpty)
    }

    @Test func `a snapshot is a complete copy that does not depend on the original`() throws {
        let bytes = Data((0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try bytes.write(to: source)
        let snapshot = try take()
        let copy = test.directories.spool.appendingPathComponent(snapshot.name)
        #expect(snapshot.byteCount == 1_000_003)
        #expect(snapshot.sha256 == FileDigest.sha256(of: bytes))
        #expect(test.mode(copy) == 0o600)
        // Later changes of the original file do not change the copy.
        try Data("other".utf8).write(to: source)
        try FileManager.default.removeItem(at: source)
        #expect(try Data(contentsOf: copy) == bytes)
        #expect(try FileDigest.sha256(of: copy) == (snapshot.sha256, 1_000_003))
    }

    /// The error number must be read before the path of the copy is created, because creating the path may change the error
    /// number.
    @Test func `a copy that cannot be opened is reported with the reason of the system`() throws {
        try Data("a".utf8).write(to: source)
        let error = try #require(throws: Snapshot.Failure.self) {
            try Snapshot.make(of: source, in: test.directories) { copy in
                #expect(unlink(copy.path) == 0 && symlink("elsewhere", copy.path) == 0)
                return true
            }
        }
        guard case .unreadable(_, String(cString: strerror(ELOOP))) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(spooled == [])
    }

    /// The process claims the spool as long as one of the copies that it made has no row in the ledger. If the copy could not be
    /// created, the process does not claim the spool.
    @Test func `the spool is claimed until the last snapshot is kept or discarded`() throws {
        #expect(throws: Snapshot.Failure.self) { try take() }
        #expect(isFree)
        try Data("a".utf8).write(to: source)
        struct Refused: Error {}
        #expect(throws: Refused.self) { try Snapshot.make(of: source, in: test.directories) { _ in throw Refused() } }
        #expect(isFree && spooled == [])
        // The check examines the open file, because the path may already belong to another file.
        #expect(throws: Refused.self) {
            try Snapshot.make(of: source, in: test.directories) { _ in
                Issue.record("it was copied")
                return false
            } checking: { descriptor in
                var information = stat()
                #expect(fstat(descriptor, &information) == 0 && information.st_size == 1)
                throw Refused()
            }
        }
        #expect(isFree && spooled == [])
        let (one, other) = (try take(), try take())
        #expect(FileLock.isHeld(test.directories.spoolLock))
        one.keep()
        #expect(FileLock.isHeld(test.directories.spoolLock))
        other.discard()
        #expect(isFree)
        #expect(spooled == [one.name])
        // A second call of `discard` has no effect. A copy that was kept cannot be discarded.
        other.discard()
        one.discard()
        #expect(spooled == [one.name])
        // If a snapshot is neither kept nor discarded, its copy is removed.
        _ = try take()
        #expect(isFree && spooled == [one.name])
    }

    /// `true` if no process claims the spool. If another test starts a child at the same time, the child also holds the lock
    /// between fork and exec.
    private var isFree: Bool {
        (0..<10_000).contains { _ in
            sched_yield()
            return !FileLock.isHeld(test.directories.spoolLock)
        }
    }

    @Test func `a copy has the holes of its file`() throws {
        let descriptor = clinux_open(source.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        // The file has data at the beginning and in the middle, and a hole at the end.
        for offset in [0, 5 << 20] as [off_t] {
            var bytes: [UInt8] = [1, 2, 3]
            #expect(pwrite(descriptor, &bytes, 3, offset) == 3)
        }
        #expect(ftruncate(descriptor, 64 << 20) == 0)
        let snapshot = try take()
        let copy = test.directories.spool.appendingPathComponent(snapshot.name)
        #expect(try FileDigest.sha256(of: source) == (snapshot.sha256, 64 << 20))
        #expect(try FileDigest.sha256(of: copy) == (snapshot.sha256, 64 << 20))
        var information = stat()
        #expect(stat(copy.path, &information) == 0 && information.st_blocks * 512 < 1 << 20, "\(information.st_blocks) blocks")
    }

    @Test func `a file that is one hole is copied`() throws {
        try Data().write(to: source)
        #expect(truncate(source.path, 1 << 20) == 0)
        #expect(try take().sha256 == FileDigest.sha256(of: Data(count: 1 << 20)))
    }

    @Test func `two snapshots of one file have different names`() throws {
        try Data("a".utf8).write(to: source)
        #expect(try take().name != take().name)
    }

    @Test func `a missing file is reported and leaves no copy`() {
        #expect(throws: Snapshot.Failure.missing(source.path)) { try take() }
        #expect(spooled.isEmpty)
    }

    @Test func `a path below a regular file is reported as missing`() throws {
        try Data("a".utf8).write(to: source)
        let inside = source.appendingPathComponent("b")
        #expect(throws: Snapshot.Failure.missing(inside.path)) { try Snapshot.make(of: inside, in: test.directories) }
    }

    @Test func `a folder is refused and leaves no copy`() throws {
        try FileManager.default.createDirectory(at: source, withIntermediateDirectories: false)
        #expect(throws: Snapshot.Failure.notAFile(source.path)) { try take() }
        #expect(spooled.isEmpty)
    }

    @Test func `a named pipe is refused without blocking`() {
        #expect(mkfifo(source.path, 0o600) == 0)
        #expect(throws: Snapshot.Failure.notAFile(source.path)) { try take() }
    }

    @Test func `a device is refused`() {
        let null = URL(fileURLWithPath: "/dev/null")
        #expect(throws: Snapshot.Failure.notAFile("/dev/null")) { try Snapshot.make(of: null, in: test.directories) }
    }

    @Test func `an empty file is refused unless empty files are allowed`() throws {
        try Data().write(to: source)
        #expect(throws: Snapshot.Failure.empty(source.path)) { try take() }
        #expect(try take(allowsEmpty: true).sha256.hasPrefix("e3b0c442"))
    }

    /// The superuser can read every file, so the test is skipped for the superuser.
    @Test(.enabled(if: geteuid() != 0)) func `an unreadable file is refused`() throws {
        try Data("a".utf8).write(to: source)
        chmod(source.path, 0)
        #expect(throws: Snapshot.Failure.self) { try take() }
    }

    /// Changes the file repeatedly while `body` runs.
    ///
    /// - Parameter change: Receives the descriptor of the file, which is open for writing.
    private func whileChanging(_ change: @escaping @Sendable (Int32) -> Void, _ body: () throws -> Void) throws {
        // The file is so large that the writer changes it during the copy, even on a busy machine.
        try Data(count: 64 << 20).write(to: source)
        let path = source.path
        let started = DispatchSemaphore(value: 0)
        let flag = Flag()
        let writer = Background {
            let descriptor = clinux_open(path, O_WRONLY | O_CLOEXEC, 0)
            defer { close(descriptor) }
            repeat {
                change(descriptor)
                started.signal()
            } while !flag.isSet
        }
        started.wait()
        try body()
        flag.set()
        try writer.value()
    }

    @Test func `a file that grows while it is copied is refused`() throws {
        let path = source.path
        try whileChanging { descriptor in
            var byte: UInt8 = 1
            lseek(descriptor, 0, SEEK_END)
            write(descriptor, &byte, 1)
        } _: {
            #expect(throws: Snapshot.Failure.changedWhileRead(path)) { try take() }
        }
        #expect(spooled.isEmpty, "nothing is left behind")
    }

    /// Some photo programs overwrite a file in place, and then set the modification time back.
    @Test func `a file that is changed in place with its old modification time is refused`() throws {
        let path = source.path
        try whileChanging { descriptor in
            var (value, times) = (
                UInt64.random(in: 1 ... .max), [timespec](repeating: timespec(tv_sec: 1_000_000_000, tv_nsec: 0), count: 2)
            )
            pwrite(descriptor, &value, 8, 0)
            futimens(descriptor, &times)
        } _: {
            #expect(throws: Snapshot.Failure.changedWhileRead(path)) { try take() }
        }
        #expect(spooled.isEmpty)
    }

    /// A change of the name or of the permissions does not change the content.
    @Test func `a file whose permissions change while it is copied is accepted`() throws {
        try whileChanging { descriptor in
            fchmod(descriptor, 0o600)
        } _: {
            #expect(throws: Never.self) { try take() }
        }
    }

    @Test func `a snapshot fails if the spool is missing`() throws {
        try Data("a".utf8).write(to: source)
        try FileManager.default.removeItem(at: test.directories.spool)
        #expect(throws: Snapshot.Failure.self) { try take() }
    }
}

private final class Flag: @unchecked Sendable {  // because the lock guards the only field
    private let lock = NSLock()
    private var value = false

    var isSet: Bool { lock.withLock { value } }

    func set() { lock.withLock { value = true } }
}
