import ProcessSupport
@testable import BackgroundLedger
import CLinux
import Foundation
import Testing

@Suite struct FileLockTests {
    private let test: TestLedger
    private let url: URL

    init() throws {
        test = try TestLedger()
        url = test.folder.appendingPathComponent("a.lock")
    }

    @Test func `a lock has at most one holder`() throws {
        #expect(!FileLock.isHeld(url), "a missing file is not held")
        do {
            let lock = try #require(try Holder.acquire(url))
            #expect(FileLock.isHeld(url))
            #expect(try Holder.acquire(url) == nil)
            #expect(FileLock.isHeld(url), "the failed attempt did not change the lock")
            withExtendedLifetime(lock) {}
        }
        #expect(isFree())
        #expect(try Holder.acquire(url) != nil)
        #expect(test.mode(url) == 0o600)
    }

    @Test func `a query does not take the lock`() throws {
        _ = try Holder.acquire(url)
        for _ in 0..<100 {
            #expect(isFree())
            #expect(try Holder.acquire(url) != nil)
        }
    }

    /// Returns whether the lock is free. If another test starts a child at the same time, the child also holds the lock
    /// between fork and exec.
    private func isFree() -> Bool {
        (0..<10_000).contains { _ in
            sched_yield()
            return !FileLock.isHeld(url)
        }
    }

    @Test func `a child that inherited the lock holds the lock`() throws {
        let fifo = test.folder.appendingPathComponent("end")
        #expect(mkfifo(fifo.path, 0o600) == 0)
        let pid = try start("read line < '\(fifo.path)'")
        #expect(FileLock.isHeld(url), "this process closed the lock, but the child still holds it")
        #expect(try Holder.acquire(url) == nil)
        end(fifo, pid)
        #expect(!FileLock.isHeld(url))
    }

    @Test func `a killed child releases the lock`() throws {
        let fifo = test.folder.appendingPathComponent("end")
        #expect(mkfifo(fifo.path, 0o600) == 0)
        let pid = try start("read line < '\(fifo.path)'")
        #expect(FileLock.isHeld(url))
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        #expect(!FileLock.isHeld(url))
    }

    @Test func `a thread that waits for the lock receives it after the release`() throws {
        let url = url
        let lock = try #require(try Holder.acquire(url))
        let other = Background {
            try FileLock.whileHolding(url, besides: url.path) { () throws(StoreError) in FileLock.isHeld(url) }
        }
        lock.release()
        #expect(try other.value())
        #expect(!FileLock.isHeld(url))
    }

    /// Starts a child that inherits the lock as descriptor 3. This process releases the lock on return.
    private func start(_ script: String) throws -> Int32 {
        let lock = try #require(try Holder.acquire(url))
        var child = ChildProcess(path: "/bin/sh", arguments: ["-c", script], environment: [:])
        child.inherited = lock.descriptor
        return try child.start()
    }

    /// Opens the named pipe. The call waits until the child reads from the pipe. Closing the pipe then ends the child.
    private func end(_ fifo: URL, _ pid: Int32) {
        close(clinux_open(fifo.path, O_WRONLY | O_CLOEXEC, 0))
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }
}

/// A class that holds a lock for a test, because the type of the lock cannot be copied.
final class Holder {
    private var lock: FileLock?

    private init(_ lock: consuming FileLock) { self.lock = consume lock }

    static func acquire(_ url: URL) throws -> Holder? {
        guard let lock = try FileLock.acquire(url) else { return nil }
        return Holder(lock)
    }

    var descriptor: Int32 { lock?.descriptor ?? -1 }

    func release() { lock = nil }
}

@Suite struct ProcessIdentityTests {
    @Test func `the current process has an identity and is alive`() throws {
        let me = ProcessIdentity.current
        #expect(me.pid == getpid())
        #expect(me.isAlive)
        #expect(ProcessIdentity(pid: getpid()) == me)
    }

    @Test func `a process with the same number and another start time is not alive`() {
        let me = ProcessIdentity.current
        #expect(!ProcessIdentity(pid: me.pid, start: me.start + 1).isAlive)
    }

    @Test func `a process that has ended is not alive, even before it is reaped`() throws {
        let pid = try ChildProcess(path: "/bin/true", arguments: [], environment: [:]).start()
        let identity = ProcessIdentity(pid: pid)
        // The process has ended but is not reaped yet (a zombie).
        var information = siginfo_t()
        waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT)
        #expect(identity?.isAlive != true)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        #expect(ProcessIdentity(pid: pid) == nil)
        #expect(identity?.isAlive != true)
    }

    @Test func `a process of another PID namespace is alive as long as its lock is held`() throws {
        let test = try TestLedger()
        try test.directories.createStateFolders()
        let (me, directories) = (ProcessIdentity.current, test.directories)
        let foreign = ProcessIdentity(pid: me.pid, start: me.start ^ 1 << 40)
        #expect(foreign.isOfAnotherNamespace && !me.isOfAnotherNamespace)
        #expect(!foreign.isAlive && !foreign.isAlive(in: directories))
        var presence: ProcessPresence? = ProcessPresence(of: foreign, in: directories)
        withExtendedLifetime(presence) { #expect(foreign.isAlive(in: directories)) }
        presence = nil
        try Background { ProcessPresence.waitForEnd(of: foreign, in: directories) }.value()
        #expect(!foreign.isAlive(in: directories))
    }

    /// In another time namespace, the start time of the same process differs. On another machine with the same home folder, the
    /// PID belongs to another process.
    @Test func `a process whose start time differs is alive as long as its lock is held`() throws {
        let test = try TestLedger()
        try test.directories.createStateFolders()
        let (me, directories) = (ProcessIdentity.current, test.directories)
        let (shifted, later) = (
            ProcessIdentity(pid: me.pid, start: me.start + 1), ProcessIdentity(pid: me.pid, start: me.start + 2)
        )
        let presence = ProcessPresence(of: shifted, in: directories)
        withExtendedLifetime(presence) {
            #expect(shifted.isAlive(in: directories))
            #expect(!later.isAlive(in: directories), "a process with a reused number is another process")
        }
    }

    /// A running program cannot be opened for writing (ETXTBSY), not even by root.
    private func link(_ url: URL) throws {
        try FileManager.default.createSymbolicLink(atPath: url.path, withDestinationPath: ThisProcess.executablePath)
    }

    @Test func `a process counts as alive while its lock cannot be examined`() throws {
        let test = try TestLedger()
        try test.directories.createStateFolders()
        let (me, lock) = (ProcessIdentity.current, test.directories.processLock)
        let foreign = ProcessIdentity(pid: me.pid, start: me.start ^ 1 << 40)
        try link(lock)
        #expect(foreign.isAlive(in: test.directories))
        #expect(FileLock.isHeld(lock, unknown: true) && !FileLock.isHeld(lock))
        unlink(lock.path)
        #expect(!foreign.isAlive(in: test.directories))
    }

    @Test func `a process whose presence could not be recorded retries when it writes`() throws {
        let test = try TestLedger()
        try test.directories.createStateFolders()
        try link(test.directories.processLock)
        let ledger = try test.open()
        unlink(test.directories.processLock.path)
        #expect(!ProcessPresence.isShown(by: .current, in: test.directories))
        try ledger.write { _ in }
        #expect(ProcessPresence.isShown(by: .current, in: test.directories))
    }

    @Test func `a process that has opened a ledger is shown to other PID namespaces`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        withExtendedLifetime(ledger) { #expect(ProcessPresence.isShown(by: .current, in: test.directories)) }
    }

    @Test func `numbers below 1 do not identify a process`() {
        #expect(ProcessIdentity(pid: 0) == nil)
        #expect(ProcessIdentity(pid: -1) == nil)
    }
}
