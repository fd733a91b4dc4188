import BackgroundLedger
import CLinux
import Foundation
import Synchronization
import TransferMachines

/// The file of one download attempt: takes bytes on the transport's thread as its machine decides.
///
/// Order of writing, so that no crash pairs one version's validator with another's bytes: the new `PartialFile`
/// (0 bytes) is committed before the file is truncated, and its durable count grows only after a sync.
final class DownloadFile: BodySink {
    private struct State {
        var machine: DownloadMachine
        var descriptor: Int32 = -1
        var isDiscarding = true
        var written: Int64 = 0
        var synced: Int64 = 0
        var digest = RunningDigest()
        var trouble: String?
        var isPassing = false
    }

    /// Bytes between syncs: a crash costs at most this much again.
    private static let syncInterval: Int64 = 1 << 20

    private let state: Mutex<State>
    private let ledger: Ledger
    private let transfer: Int64
    let url: URL

    init(transfer: Int64, file: String, machine: DownloadMachine, ledger: Ledger) {
        self.transfer = transfer
        self.ledger = ledger
        url = ledger.directories.spool.appendingPathComponent(file)
        state = Mutex(State(machine: machine))
    }

    deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

    func begin() -> WireRequest { state.withLock { $0.machine.begin() } }

    // MARK: On the transport's thread

    func receive(head: ResponseHead) -> Bool {
        CrashPoint.reach("agent.transferHead")
        return state.withLock { state in
            switch state.machine.received(head, now: Date()) {
            case .discard:
                state.isDiscarding = true
                return true
            case .rewrite:
                return prepare(&state, offset: 0)
            case .append(let offset):
                return prepare(&state, offset: offset)
            }
        }
    }

    private func prepare(_ state: inout State, offset: Int64) -> Bool {
        let partial = state.machine.partial
        do {
            try ledger.write { transaction in
                guard var row = try transaction.transfer(transfer) else { return }
                row.partial = partial
                row.bytesTotal = partial?.totalBytes
                row.bytesDone = offset
                try transaction.update(row)
            }
        } catch {
            state.trouble = "\(error)"
            state.isPassing = error.isPassing
            return false
        }
        CrashPoint.reach("agent.transferPrepared")
        let descriptor = clinux_open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0, ftruncate(descriptor, off_t(offset)) == 0 else { return fail(&state) }
        if state.descriptor >= 0 { close(state.descriptor) }
        state.descriptor = descriptor
        state.isDiscarding = false
        state.written = offset
        state.synced = offset
        state.digest = RunningDigest()
        return offset == 0 || rehash(&state, upTo: offset)
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
            guard !state.isDiscarding else { return true }
            var rest = bytes
            while !rest.isEmpty {
                let count = pwrite(state.descriptor, rest.baseAddress, rest.count, off_t(state.written))
                guard count > 0 else { return fail(&state) }
                state.written += Int64(count)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            state.digest.update(bytes)
            if state.written - state.synced >= Self.syncInterval { return sync(&state) }
            return true
        }
    }

    private func sync(_ state: inout State) -> Bool {
        guard state.descriptor >= 0, fdatasync(state.descriptor) == 0 else { return fail(&state) }
        state.synced = state.written
        return true
    }

    private func fail(_ state: inout State) -> Bool {
        state.isPassing = errno == ENOSPC || errno == EDQUOT
        state.trouble = "\(url.path): " + String(cString: strerror(errno))
        return false
    }

    // MARK: On the agent's loop

    /// What is on disk for good, so far.
    var progress: (partial: PartialFile?, written: Int64) {
        state.withLock { state in
            var partial = state.machine.partial
            if !state.isDiscarding { partial?.durableBytes = state.synced }
            return (partial, state.isDiscarding ? 0 : state.written)
        }
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

    /// The attempt ended: makes its bytes durable, then asks the machine what follows.
    func ended(_ end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> Outcome {
        state.withLock { state in
            if state.descriptor >= 0 { _ = sync(&state) }
            let durable = state.isDiscarding ? state.machine.partial?.durableBytes ?? 0 : state.synced
            let command = state.machine.ended(
                end, durableBytes: durable, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
            return Outcome(
                command: command, partial: state.machine.partial, report: state.machine.report, sha256: state.digest.hex,
                byteCount: state.written, trouble: state.trouble, isPassing: state.isPassing)
        }
    }
}

/// Reads an upload's snapshot and hashes what it hands out.
final class UploadFile: BodySource {
    private struct State {
        var descriptor: Int32
        var position: Int64 = 0
        var digest = RunningDigest()
    }

    private let state: Mutex<State>
    let byteCount: Int64

    /// `nil` when the snapshot is not there in full.
    init?(_ url: URL, byteCount: Int64) {
        let descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC, 0)
        var information = stat()
        guard descriptor >= 0, fstat(descriptor, &information) == 0, Int64(information.st_size) == byteCount else {
            if descriptor >= 0 { close(descriptor) }
            return nil
        }
        self.byteCount = byteCount
        state = Mutex(State(descriptor: descriptor))
    }

    deinit { state.withLock { _ = close($0.descriptor) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        state.withLock { state in
            let count = pread(state.descriptor, buffer.baseAddress, buffer.count, off_t(state.position))
            guard count >= 0 else { return nil }
            state.position += Int64(count)
            state.digest.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
            return count
        }
    }

    func rewind() -> Bool {
        state.withLock { state in
            state.position = 0
            state.digest = RunningDigest()
        }
        return true
    }

    /// Digest of what was handed out, once all of it was.
    var sha256: String? { state.withLock { $0.position == byteCount ? $0.digest.hex : nil } }
}

/// The short answer to an upload: kept up to a bound, the rest is read and dropped.
final class AnswerSink: BodySink {
    func receive(head: ResponseHead) -> Bool { true }
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
}
