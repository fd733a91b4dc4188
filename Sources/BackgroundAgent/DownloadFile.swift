import BackgroundLedger
import CLinux
import Foundation
import Synchronization
import TransferMachines

/// The part file of one download attempt: takes bytes on the transport's thread as its machine decides.
///
/// Order of writing, so that no crash pairs one version's validator with another's bytes: the new `PartialFile`
/// (0 bytes) is committed before bytes of an earlier one are truncated, and its durable count grows only after a sync.
final class DownloadFile: BodySink {
    private struct State {
        var machine: DownloadMachine
        var descriptor: Int32 = -1
        var isDiscarding = true
        var written: Int64 = 0
        var synced: Int64 = 0
        var syncedAt = ContinuousClock.now
        var digest = RunningDigest()
        var trouble: String?
        var isPassing = false
        /// The attempt was stopped: what still arrives is not written, the file may be another attempt's by now.
        var isStopped = false
        /// The ledger speaks of bytes in the file: before they go it must know.
        var hasCommittedPart: Bool
    }

    /// Bytes, and seconds, between syncs: a crash costs at most this much again.
    private static let syncInterval: Int64 = 8 << 20
    private static let syncSeconds = 1.0

    private let state: Mutex<State>
    private let ledger: Ledger
    private let attempt: AttemptID
    private let permissions: mode_t
    let url: URL

    /// - Parameters:
    ///   - part: where the bytes collect.
    ///   - isPrivate: nobody else may read it; otherwise as the person's other files.
    init(attempt: AttemptID, part: URL, isPrivate: Bool, machine: DownloadMachine, ledger: Ledger) {
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
            let disposition = state.machine.received(head, now: Date())
            state.isDiscarding = true
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
                state.trouble = "\(error)"
                state.isPassing = error.isPassing
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
            state.trouble = "\(url.path): the part received earlier is gone"
            state.isPassing = true
            return false
        }
        guard ftruncate(descriptor, off_t(offset)) == 0 else { return fail(&state) }
        state.isDiscarding = false
        state.written = offset
        state.synced = offset
        state.syncedAt = .now
        state.digest = RunningDigest()
        return offset == 0 || rehash(&state, upTo: offset)
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

    /// The digest of what is held already: read once, after a break, in pieces.
    private func rehash(_ state: inout State, upTo offset: Int64) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var position: Int64 = 0
        while position < offset {
            let wanted = min(buffer.count, Int(offset - position))
            let count = pread(state.descriptor, &buffer, wanted, off_t(position))
            guard count > 0 else { return fail(&state) }
            buffer.withUnsafeBytes { state.digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            position += Int64(count)
        }
        return true
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            guard !state.isDiscarding else { return true }
            var rest = bytes
            while !rest.isEmpty {
                let count = pwrite(state.descriptor, rest.baseAddress, rest.count, off_t(state.written))
                guard count > 0 else { return fail(&state) }
                state.written += Int64(count)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            state.digest.update(bytes)
            let isDue =
                state.written - state.synced >= Self.syncInterval
                || ContinuousClock.now - state.syncedAt >= .seconds(Self.syncSeconds)
            return isDue ? sync(&state) : true
        }
    }

    private func sync(_ state: inout State) -> Bool {
        guard state.descriptor >= 0, fdatasync(state.descriptor) == 0 else { return fail(&state) }
        state.synced = state.written
        state.syncedAt = .now
        CrashPoint.reach("agent.transferSynced", attempt.transfer)
        return true
    }

    private func fail(_ state: inout State) -> Bool {
        state.isPassing = [ENOSPC, EDQUOT].contains(errno)
        state.trouble = "\(url.path): " + String(cString: strerror(errno))
        return false
    }

    // MARK: On the agent's loop

    /// What is on disk for good, so far.
    var progress: (partial: PartialFile?, written: Int64) {
        state.withLock { state in
            var partial = state.machine.partial
            if !state.isDiscarding { partial?.durableBytes = state.synced }
            state.hasCommittedPart = state.hasCommittedPart || partial != nil
            return (partial, state.isDiscarding ? 0 : state.written)
        }
    }

    /// The attempt is over for its owner, though its transport may not have heard of it yet.
    func stop() { state.withLock { $0.isStopped = true } }

    /// Makes durable what is here, for a transfer that is stopped.
    func letGo() -> PartialFile? {
        stop()
        state.withLock { if $0.descriptor >= 0, !$0.isDiscarding, $0.trouble == nil { _ = sync(&$0) } }
        return progress.partial
    }

    struct Outcome {
        var command: DownloadCommand
        var partial: PartialFile?
        var report: ResumeReport
        var sha256: String
        var byteCount: Int64
        var trouble: String?
        var isPassing: Bool
    }

    /// The attempt ended: makes its bytes durable, asks the machine what follows, and proves a whole file.
    func ended(_ end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> Outcome {
        state.withLock { state in
            if state.descriptor >= 0, state.trouble == nil { _ = sync(&state) }
            let durable = state.isDiscarding ? state.machine.partial?.durableBytes ?? 0 : state.synced
            var command = state.machine.ended(
                end, durableBytes: durable, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
            if case .finish(let head, let resumedFrom) = command, state.trouble == nil {
                for digest in state.machine.requiredDigests(of: head) {
                    let found = digest.algorithm == .sha256 ? state.digest.bytes : FileDigest.bytes(of: url, digest.algorithm)
                    guard found != digest.bytes else { continue }
                    command = state.machine.refute(
                        digest, found: state.digest.hex, resumedFrom: resumedFrom,
                        attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
                    break
                }
            }
            return Outcome(
                command: command, partial: state.machine.partial, report: state.machine.report, sha256: state.digest.hex,
                byteCount: state.written, trouble: state.trouble, isPassing: state.isPassing)
        }
    }

    /// Gives a whole, synced file its name, for good: the name is durable when this returns `nil`. Otherwise: why not.
    static func place(_ part: URL, as whole: URL) -> (trouble: String, isPassing: Bool)? {
        guard rename(part.path, whole.path) == 0 else {
            return ("\(whole.path): " + String(cString: strerror(errno)), [ENOSPC, EDQUOT].contains(errno))
        }
        let folder = clinux_open(whole.deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard folder >= 0 else { return nil }
        defer { close(folder) }
        // Some file systems cannot sync a folder (EINVAL): the name is then as durable as they make it.
        guard fsync(folder) == 0 || errno == EINVAL else {
            return ("\(whole.path): " + String(cString: strerror(errno)), false)
        }
        return nil
    }
}
