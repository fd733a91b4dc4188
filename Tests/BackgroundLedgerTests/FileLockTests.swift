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

    @Test func onlyOneHoldsIt() throws {
        #expect(!FileLock.isHeld(url), "a missing file is not held")
        do {
            let lock = try #require(try Holder.acquire(url))
            #expect(FileLock.isHeld(url))
            #expect(try Holder.acquire(url) == nil)
            #expect(FileLock.isHeld(url), "asking and trying took nothing")
            withExtendedLifetime(lock) {}
        }
        #expect(isFree())
        #expect(try Holder.acquire(url) != nil)
        #expect(test.mode(url) == 0o600)
    }

    @Test func askingDoesNotTake() throws {
        _ = try Holder.acquire(url)
        for _ in 0..<100 {
            #expect(isFree())
            #expect(try Holder.acquire(url) != nil)
        }
    }

    /// A child that another test starts in this moment holds a copy between its fork and its exec.
    private func isFree() -> Bool {
        (0..<10_000).contains { _ in
            sched_yield()
            return !FileLock.isHeld(url)
        }
    }

    @Test func aChildThatInheritedItHoldsIt() throws {
        let fifo = test.folder.appendingPathComponent("end")
        #expect(mkfifo(fifo.path, 0o600) == 0)
        let pid = try start("read line < '\(fifo.path)'")
        #expect(FileLock.isHeld(url), "we let go, the child did not")
        #expect(try Holder.acquire(url) == nil)
        end(fifo, pid)
        #expect(!FileLock.isHeld(url))
    }

    @Test func aKilledChildLetsGo() throws {
        let fifo = test.folder.appendingPathComponent("end")
        #expect(mkfifo(fifo.path, 0o600) == 0)
        let pid = try start("read line < '\(fifo.path)'")
        #expect(FileLock.isHeld(url))
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        #expect(!FileLock.isHeld(url))
    }

    @Test func waitingForItTakesTurns() throws {
        let url = url
        let lock = try #require(try Holder.acquire(url))
        let other = Background {
            try FileLock.whileHolding(url, besides: url.path) { () throws(StoreError) in FileLock.isHeld(url) }
        }
        lock.release()
        #expect(try other.value())
        #expect(!FileLock.isHeld(url))
    }

    /// A child with the lock as its descriptor 3; our own hold on it ends here.
    private func start(_ script: String) throws -> Int32 {
        let lock = try #require(try Holder.acquire(url))
        var child = ChildProcess(path: "/bin/sh", arguments: ["-c", script], environment: [:])
        child.inherited = lock.descriptor
        return try child.start()
    }

    /// Opening the named pipe waits until the child reads from it; closing ends the child.
    private func end(_ fifo: URL, _ pid: Int32) {
        close(clinux_open(fifo.path, O_WRONLY | O_CLOEXEC, 0))
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }
}

/// Lets a test keep a lock that cannot be copied.
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
    @Test func knowsItself() throws {
        let me = ProcessIdentity.current
        #expect(me.pid == getpid())
        #expect(me.isAlive)
        #expect(ProcessIdentity(pid: getpid()) == me)
    }

    @Test func aLaterProcessOfTheSameNumberIsAnother() {
        let me = ProcessIdentity.current
        #expect(!ProcessIdentity(pid: me.pid, start: me.start + 1).isAlive)
    }

    @Test func theDeadAreDead() throws {
        let pid = try ChildProcess(path: "/bin/true", arguments: [], environment: [:]).start()
        let identity = ProcessIdentity(pid: pid)
        // Dead, but not yet reaped: a zombie.
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

    /// In another time namespace, or on another machine with the same home, the number means another process.
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
            #expect(!later.isAlive(in: directories), "a reused number is not the process that had it")
        }
    }

    /// A program that runs cannot be opened for writing (ETXTBSY), not even by root.
    private func link(_ url: URL) throws {
        try FileManager.default.createSymbolicLink(atPath: url.path, withDestinationPath: ThisProcess.executablePath)
    }

    @Test func `a lock that cannot be looked at for now ends no process`() throws {
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

    @Test func `a process that could not show itself tries again when it writes`() throws {
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

    @Test func nobodyHasNumbersBelowOne() {
        #expect(ProcessIdentity(pid: 0) == nil)
        #expect(ProcessIdentity(pid: -1) == nil)
    }
}
