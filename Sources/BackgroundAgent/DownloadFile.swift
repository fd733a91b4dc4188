import BackgroundLedger
import CLinux
import Foundation
import Synchronization
import TransferMachines

/// Why a file here is of no use.
public struct FileTrouble: Sendable {
    var why: String
    /// Waiting may help.
    var isPassing: Bool
}

/// The part file of one download attempt: takes bytes on the transport's thread as its machine decides.
///
/// Order of writing, so that no crash pairs one version's validator with another's bytes: the new `PartialFile`
/// (0 bytes) is committed before bytes of an earlier one are truncated, and its durable count grows only after a sync.
/// Hashing and syncing are the disk worker's, which follows behind what is written.
final class DownloadFile: BodySink {
    /// What becomes of bytes that arrive.
    private enum Intake {
        /// They are of no answer that is wanted.
        case discarding
        case writing
        /// The attempt was stopped: they are not written, the file may be another attempt's by now.
        case stopped(wasWriting: Bool)
    }

    private struct State {
        var machine: DownloadMachine
        var descriptor: Int32 = -1
        var intake = Intake.discarding
        var written: Int64 = 0
        /// Which beginning of the file this is: what the worker found out about an earlier one is of no use.
        var beginning = 0
        /// The worker's: how far it came.
        var hashed: Int64 = 0
        var synced: Int64 = 0
        var syncedAt = ContinuousClock.now
        /// The worker will look after a little that arrived.
        var isRemembered = false
        /// Somebody waits for the whole digest.
        var isSettling = false
        var digest = RunningDigest()
        /// Of the whole file, where the server announced one that is no SHA-256.
        var otherDigests: [RequiredDigest.Algorithm: [UInt8]] = [:]
        var trouble: FileTrouble?
        /// The ledger speaks of bytes in the file: before they go it must know.
        var hasCommittedPart: Bool

        /// What the machine counts on is in the file.
        var holdsBytes: Bool {
            switch intake {
            case .discarding: false
            case .writing: true
            case .stopped(let wasWriting): wasWriting
            }
        }

        var isStopped: Bool { if case .stopped = intake { true } else { false } }
    }

    /// Bytes, and seconds, between syncs: a crash costs at most this much again.
    private static let syncInterval: Int64 = 8 << 20
    private static let syncSeconds = 1.0
    /// Bytes hashed in one turn of the worker.
    private static let turn: Int64 = 4 << 20

    private let state: Mutex<State>
    private let ledger: Ledger
    private let attempt: AttemptID
    private let permissions: mode_t
    private let wasSynced: @Sendable () -> Void
    private let disk: DiskWorker
    private let startedAt: Date
    let url: URL

    /// - Parameters:
    ///   - part: where the bytes collect.
    ///   - isPrivate: nobody else may read it; otherwise as the person's other files.
    ///   - disk: hashes and syncs behind what is written.
    ///   - now: when the attempt begins.
    ///   - wasSynced: called when all that arrived is on the disk, on the disk worker's thread.
    init(
        attempt: AttemptID, part: URL, isPrivate: Bool, machine: DownloadMachine, ledger: Ledger, disk: DiskWorker,
        now: Date, wasSynced: @escaping @Sendable () -> Void
    ) {
        self.disk = disk
        startedAt = now
        self.wasSynced = wasSynced
        self.attempt = attempt
        self.ledger = ledger
        url = part
        permissions = isPrivate ? 0o600 : 0o666
        state = Mutex(State(machine: machine, hasCommittedPart: machine.partial != nil))
    }

    deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

    func begin() -> WireRequest { state.withLock { $0.machine.begin() } }

    // MARK: On the transport's thread

    func receive(head: ResponseHead) -> Bool {
        CrashPoint.reach("agent.transferHead", attempt.transfer)
        // The ledger is never entered under our own lock: the agent asks for `progress` inside a transaction of its own.
        let (disposition, partial, mustCommit) = state.withLock { state in
            let disposition = state.machine.received(head, now: startedAt)
            state.intake = state.isStopped ? .stopped(wasWriting: false) : .discarding
            return (disposition, state.machine.partial, state.hasCommittedPart)
        }
        switch disposition {
        case .discard: return true
        case .rewrite:
            // Without a word of earlier bytes in the ledger there is nothing to take back: a small answer costs no commit.
            return (!mustCommit || commit(partial, offset: 0)) && state.withLock { prepare(&$0, offset: 0) }
        case .append(let offset): return commit(partial, offset: offset) && state.withLock { prepare(&$0, offset: offset) }
        }
    }

    /// `false`: this attempt is not wanted any more, or the ledger cannot be written.
    private func commit(_ partial: PartialFile?, offset: Int64) -> Bool {
        do {
            return try ledger.write { transaction in
                guard var row = try transaction.transfer(attempt.transfer), row.state == .running,
                    row.attemptNumber == attempt.number
                else { return false }
                row.partial = partial
                row.bytesTotal = partial?.totalBytes
                row.bytesDone = offset
                row.resumedAt = offset > 0 ? offset : nil
                try transaction.update(row)
                return true
            }
        } catch {
            state.withLock { state in
                state.trouble = FileTrouble(why: "\(error)", isPassing: error.isPassing)
            }
            return false
        }
    }

    private func prepare(_ state: inout State, offset: Int64) -> Bool {
        CrashPoint.reach("agent.transferPrepared", attempt.transfer)
        guard !state.isStopped else { return false }
        // A part that is to be added to must be there, and long enough: a hole is not what was received.
        let descriptor = clinux_open(
            url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (offset == 0 ? O_CREAT : 0), permissions)
        guard descriptor >= 0 else { return fail(&state) }
        if state.descriptor >= 0 { close(state.descriptor) }
        state.descriptor = descriptor
        guard Self.size(of: descriptor) >= offset else {
            // The next attempt sees that, too, and asks for the whole.
            state.trouble = FileTrouble(why: "\(url.path): the part received earlier is gone", isPassing: true)
            return false
        }
        guard ftruncate(descriptor, off_t(offset)) == 0 else { return fail(&state) }
        state.intake = .writing
        state.beginning += 1
        state.written = offset
        // What is held already is read once, after a break.
        state.hashed = 0
        state.synced = offset
        state.syncedAt = .now
        state.digest = RunningDigest()
        return true
    }

    private static func size(of descriptor: Int32) -> Int64 {
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return -1 }
        return Int64(information.st_size)
    }

    /// Whether the part file still holds what the ledger says of it.
    static func holds(_ byteCount: Int64, at url: URL) -> Bool {
        let descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return size(of: descriptor) >= byteCount
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (isTaken, need) = state.withLock { state -> (Bool, DiskWorker.Rest) in
            guard !state.isStopped, state.trouble == nil else { return (false, .nothing) }
            guard case .writing = state.intake else { return (true, .nothing) }
            var rest = bytes
            if disk.isFull {
                errno = ENOSPC
                return (fail(&state), .nothing)
            }
            while !rest.isEmpty {
                let count = pwrite(state.descriptor, rest.baseAddress, rest.count, off_t(state.written))
                guard count > 0 else { return (fail(&state), .nothing) }
                state.written += Int64(count)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            if state.written - state.hashed >= Self.turn / 4 || Self.isSyncDue(state) { return (true, .more) }
            defer { state.isRemembered = true }
            return (true, state.isRemembered ? .nothing : .little)
        }
        // Never waited for: how far the worker is behind costs no memory, and other transfers use this thread too.
        disk.take(self, need)
        return isTaken
    }

    private static func isSyncDue(_ state: State) -> Bool {
        state.written > state.synced
            && (state.written - state.synced >= syncInterval || ContinuousClock.now - state.syncedAt >= .seconds(syncSeconds))
    }

    // MARK: On the disk worker's thread

    /// One turn.
    func work() -> DiskWorker.Rest {
        let start = state.withLock { $0 }
        guard start.descriptor >= 0, start.trouble == nil, !start.isStopped else { return .nothing }
        let to = min(start.written, start.hashed + Self.turn)
        // On a copy, without the lock: the transport goes on writing behind.
        var hashing = start.digest
        guard start.hashed == to || Self.hash(start.descriptor, start.hashed..<to, into: &hashing) else { return failWork() }
        let hashed = hashing
        let syncTo = state.withLock { state -> Int64? in
            guard state.beginning == start.beginning else { return nil }
            (state.hashed, state.digest) = (to, hashed)
            // Caught up with what arrived: a server that falls silent now costs nothing over a crash.
            let isCaughtUp = state.hashed == state.written && state.synced < state.written
            return isCaughtUp || Self.isSyncDue(state) ? state.written : nil
        }
        if let syncTo {
            guard fdatasync(start.descriptor) == 0 else { return failWork() }
            let isAll = state.withLock { state in
                // The transfer may have ended meanwhile, and been synced further.
                guard state.beginning == start.beginning, syncTo > state.synced else { return false }
                (state.synced, state.syncedAt) = (syncTo, .now)
                return syncTo == state.written && !state.isSettling
            }
            CrashPoint.reach("agent.transferSynced", attempt.transfer)
            if isAll { wasSynced() }
        }
        return state.withLock { state in
            if state.hashed < state.written, state.isSettling || state.written - state.hashed >= Self.turn / 4 { return .more }
            state.isRemembered = state.synced < state.written
            return state.isRemembered ? .little : .nothing
        }
    }

    private func failWork() -> DiskWorker.Rest {
        _ = state.withLock { fail(&$0) }
        return .nothing
    }

    private static func hash(_ descriptor: Int32, _ range: Range<Int64>, into digest: inout RunningDigest) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 16) { buffer in
            var position = range.lowerBound
            while position < range.upperBound {
                let wanted = min(buffer.count, Int(range.upperBound - position))
                let count = pread(descriptor, buffer.baseAddress, wanted, off_t(position))
                guard count > 0 else { return false }
                digest.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                position += Int64(count)
            }
            return true
        }
    }

    /// Everything written is on the disk for good when this returns, or there is trouble.
    private func sync() {
        state.withLock { state in
            // A full disk is no reason to lose what is on it.
            guard state.descriptor >= 0, state.trouble?.isPassing ?? true, state.synced < state.written else { return }
            guard fdatasync(state.descriptor) == 0 else { return _ = fail(&state) }
            state.synced = state.written
            CrashPoint.reach("agent.transferSynced", attempt.transfer)
        }
    }

    /// Everything written is hashed when this returns, or there is trouble.
    private func hashAll() {
        let isNeeded = state.withLock { state in
            state.isSettling = true
            return state.descriptor >= 0 && state.trouble == nil && state.hashed < state.written
        }
        guard isNeeded else { return }
        disk.take(self, .more)
        disk.wait { state.withLock { $0.trouble != nil || $0.hashed == $0.written } }
    }

    private func fail(_ state: inout State) -> Bool {
        state.trouble = Self.trouble(with: url.path)
        return false
    }

    // MARK: On the agent's loop

    /// What is on disk for good, so far.
    var progress: (partial: PartialFile?, written: Int64) {
        state.withLock { state in
            var partial = state.machine.partial
            if state.holdsBytes { partial?.durableBytes = state.synced }
            state.hasCommittedPart = state.hasCommittedPart || partial != nil
            return (partial, state.holdsBytes ? state.written : 0)
        }
    }

    /// The attempt is over for its owner, though its transport may not have heard of it yet.
    func stop() { state.withLock { $0.intake = .stopped(wasWriting: $0.holdsBytes) } }

    /// Makes durable what is here, for a transfer that is stopped.
    func release() -> PartialFile? {
        stop()
        sync()
        return progress.partial
    }

    struct Outcome {
        var command: DownloadCommand
        var partial: PartialFile?
        var report: ResumeReport
        var sha256: String
        var byteCount: Int64
        var trouble: FileTrouble?
    }

    /// The slow part of an end: syncing, and of a whole file hashing. Before the ledger is entered: others write there too.
    func settle(_ end: WireEnd) {
        sync()
        let isWhole = state.withLock { state in
            state.holdsBytes && (end.failure == nil || state.machine.partial?.totalBytes == state.written)
        }
        guard isWhole else { return }
        hashAll()
        guard let head = end.head else { return }
        for digest in state.withLock({ $0.machine.requiredDigests(of: head) }) where digest.algorithm != .sha256 {
            let found = FileDigest.bytes(of: url, digest.algorithm)
            state.withLock { $0.otherDigests[digest.algorithm] = found }
        }
    }

    /// The attempt ended, and was settled: asks the machine what follows, and proves a whole file.
    func ended(_ end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> Outcome {
        var command = state.withLock { state in
            let durable = state.holdsBytes ? state.synced : state.machine.partial?.durableBytes ?? 0
            return state.machine.ended(
                end, durableBytes: durable, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
        }
        if case .finish(let head, let resumedFrom) = command {
            command = state.withLock { state in
                guard state.trouble == nil else { return command }
                for digest in state.machine.requiredDigests(of: head) {
                    let found = digest.algorithm == .sha256 ? state.digest.bytes : state.otherDigests[digest.algorithm]
                    guard found != digest.bytes else { continue }
                    return state.machine.refute(
                        digest, found: state.digest.hex, resumedFrom: resumedFrom,
                        attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
                }
                return command
            }
        }
        return state.withLock { state in
            Outcome(
                command: command, partial: state.machine.partial, report: state.machine.report, sha256: state.digest.hex,
                byteCount: state.written, trouble: state.trouble)
        }
    }

    /// Gives a whole, synced file its name; durable once its folder is synced. Otherwise: why not.
    static func place(_ part: URL, as whole: URL) -> FileTrouble? {
        // What it replaces may be for nobody else's eyes.
        var replaced = stat()
        if lstat(whole.path, &replaced) == 0, replaced.st_mode & S_IFMT == S_IFREG {
            chmod(part.path, replaced.st_mode & 0o777)
        }
        guard rename(part.path, whole.path) == 0 else {
            return trouble(with: whole.path)
        }
        return nil
    }

    /// What `errno` says of a file.
    private static func trouble(with path: String) -> FileTrouble {
        FileTrouble(why: "\(path): " + String(cString: strerror(errno)), isPassing: [ENOSPC, EDQUOT].contains(errno))
    }

    /// Makes the names in a folder durable. `nil`: they are. Otherwise: why not.
    static func syncFolder(_ path: String) -> String? {
        let folder = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard folder >= 0 else { return "\(path): " + String(cString: strerror(errno)) }
        defer { close(folder) }
        // Some file systems cannot sync a folder (EINVAL): a name is then as durable as they make it.
        guard fsync(folder) == 0 || errno == EINVAL else { return "\(path): " + String(cString: strerror(errno)) }
        return nil
    }
}
