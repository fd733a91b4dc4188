import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization
import TransferMachines

/// The partial file of one attempt of a download. This class stores bytes on the transport's thread. The download's machine
/// decides what is stored.
///
/// After a crash, the validator of one version is never stored with the bytes of another version. To ensure this, a new version
/// is written to another file while the ledger refers to the old bytes. The agent commits the new file's name together with the
/// new validator. The ledger records bytes as stored only after the bytes were synced. The disk worker hashes and syncs bytes
/// after they were written.
final class DownloadFile: BodySink, DiskWork {
    /// The lock of the state is held only briefly, because the agent's loop waits for it inside a transaction.
    private let state: Mutex<DownloadFileState>
    /// The lock of the file is held while the file is opened, cut and written. This lock is acquired before the lock of `state`.
    private let file = Mutex(DiskRoom())
    private let attempt: AttemptID
    private let permissions: mode_t
    private let post: @Sendable (AgentEvent) -> Void
    private let disk: DiskWorker
    private let startedAt: Date

    /// - Parameters:
    ///   - place: the place of the partial file.
    ///   - isPrivate: `true` if only the user can read the file. Otherwise the file has the usual permissions of the user.
    ///   - disk: the worker that hashes and syncs the written bytes.
    ///   - now: the time at which the attempt starts.
    ///   - post: receives events, from any thread.
    init(
        attempt: AttemptID, place: PartPlace, isPrivate: Bool, machine: DownloadMachine, disk: DiskWorker, now: Date,
        post: @escaping @Sendable (AgentEvent) -> Void
    ) {
        self.disk = disk
        startedAt = now
        self.post = post
        self.attempt = attempt
        permissions = isPrivate ? 0o600 : 0o666
        var state = DownloadFileState(machine: machine, place: place, isCommitted: machine.partial != nil)
        // If the file was removed, for example by a cleanup, the download cannot be resumed.
        if let partial = machine.partial, !FileName.holds(partial.durableBytes, at: place.url, disk.calls) {
            state.machine.forgetPartial()
        }
        self.state = Mutex(state)
    }

    deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

    func begin() -> WireRequest { state.withLock { $0.machine.begin() } }

    // MARK: On the transport's thread

    func receive(head: ResponseHead) -> Bool {
        KillPoint.reach(.transferHead, attempt.transfer)
        return file.withLock { room in
            let offset = state.withLock { state -> Int64? in
                let disposition = state.machine.received(head, now: startedAt)
                state.intake = state.isStopped ? .stopped(wasWriting: false) : .discarding
                switch disposition {
                case .discard: return nil
                case .rewrite:
                    // The ledger's data about the old partial file stays correct until the ledger refers to the new file.
                    if state.isCommitted { (state.place, state.isCommitted) = (state.place.other, false) }
                    state.answer = .whole
                    return 0
                case .append(let offset):
                    state.answer = .rest(from: offset)
                    return offset
                }
            }
            guard let offset else { return true }
            let isTaken = prepare(head, offset: offset, &room)
            if case .rest = state.withLock({ $0.answer }), isTaken { post(.attemptMoved(attempt)) }
            return isTaken
        }
    }

    private func prepare(_ head: ResponseHead, offset: Int64, _ room: inout DiskRoom) -> Bool {
        KillPoint.reach(.transferPrepared, attempt.transfer)
        let (path, isStopped) = state.withLock { ($0.place.url.path, $0.isStopped) }
        guard !isStopped else { return false }
        // If bytes are appended, the file must exist and be long enough, because a hole in the file is not received data.
        let descriptor = disk.calls.open(
            path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (offset == 0 ? O_CREAT : 0), permissions)
        guard descriptor >= 0 else {
            return offset > 0 && FileFault(errno).isAbsence
                ? recordLostPart() : fail(ofOpenFile: false)
        }
        room = DiskRoom(from: offset, hasEnd: state.withLock { $0.machine.partial?.totalBytes } != nil)
        let trouble = cut(descriptor, at: path, to: offset)
        return state.withLock { state in
            if state.descriptor >= 0 { close(state.descriptor) }
            state.descriptor = descriptor
            state.trouble = trouble ?? state.trouble
            guard trouble == nil, !state.isStopped else { return false }
            state.intake = .writing
            (state.sight, state.isDoubtful) = (FileVersion.cached(descriptor, disk.calls), false)
            state.bytes.begin(at: offset, proving: state.machine.requiredDigests(of: head).map(\.algorithm))
            return true
        }
    }

    /// - Returns: `nil` if the file now consists of its first `offset` bytes.
    private func cut(_ descriptor: Int32, at path: String, to offset: Int64) -> FileTrouble? {
        do throws(FileTrouble) {
            guard try FileName.size(of: descriptor, at: path, disk.calls) ?? -1 >= offset else { return .lostPart(path) }
        } catch {
            return error
        }
        return disk.calls.truncate(descriptor, to: offset) == 0 ? nil : FileTrouble(ofOpenFile: path)
    }

    private func recordLostPart() -> Bool {
        state.withLock { $0.trouble = .lostPart($0.place.url.path) }
        return false
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (isTaken, need) = file.withLock { append(bytes, &$0) }
        // The transport never waits for the disk worker, because other transfers also use this thread. The waiting bytes need no
        // memory, because they are already in the file.
        disk.enqueue(self, need)
        return isTaken
    }

    private func append(
        _ bytes: UnsafeRawBufferPointer, _ room: inout DiskRoom
    ) -> (isTaken: Bool, need: DiskWorker.Rest) {
        let start = state.withLock { $0.isStopped || $0.trouble != nil ? nil : ($0.intake, $0.descriptor, $0.bytes.written) }
        guard let (intake, descriptor, from) = start else { return (false, .nothing) }
        guard case .writing = intake else { return (true, .nothing) }
        if let trouble = room.trouble(writing: Int64(bytes.count), at: from, descriptor) {
            state.withLock { $0.record(trouble) }
            return (false, .nothing)
        }
        guard let before = FileVersion.cached(descriptor, disk.calls) else { return (fail(), .nothing) }
        guard state.withLock({ $0.compare(before) }) else { return (false, .nothing) }
        var (rest, written) = (bytes, from)
        while !rest.isEmpty {
            let count = disk.calls.write(descriptor, rest.baseAddress, rest.count, at: written)
            guard count > 0 else { return (fail(), .nothing) }
            written += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            state.withLock { $0.bytes.recordWritten(to: written) }
        }
        let after = FileVersion.cached(descriptor, disk.calls)
        return state.withLock { state in
            state.sight = after
            if state.bytes.isTurnFull || state.bytes.isSyncDue { return (true, .more) }
            defer { state.isRemembered = true }
            return (true, state.isRemembered ? .nothing : .little)
        }
    }

    // MARK: On the disk worker's thread

    /// Hashes and syncs a part of the written bytes, as one turn of the disk worker.
    func work() -> DiskWorker.Rest {
        let start = state.withLock { $0 }
        guard start.descriptor >= 0, start.trouble == nil, !start.isStopped else {
            // The owner of the file may have begun to wait after the error, so the owner is notified now.
            if start.trouble != nil { endSettling(start.bytes.beginning) }
            return .nothing
        }
        let (turn, beginning) = (start.bytes.nextTurn, start.bytes.beginning)
        // A copy of the digests is updated without the lock, because the transport continues to write.
        var hashing = start.bytes.digests
        guard turn.isEmpty || hashing.update(start.descriptor, turn, disk.calls) else { return failWork(beginning) }
        let hashed = hashing
        let syncTo = state.withLock { state -> Int64? in
            guard state.bytes.beginning == beginning else { return nil }
            state.bytes.recordHashed(to: turn.upperBound, hashed)
            if state.bytes.isRefuted { state.record(.changedPart(state.place.url.path)) }
            // All received bytes are hashed, so they are synced now. If the server stops sending, a crash loses no bytes.
            let isCaughtUp = state.bytes.isHashed && !state.bytes.isDurable
            return isCaughtUp || state.bytes.isSyncDue ? state.bytes.written : nil
        }
        if let syncTo {
            guard disk.calls.syncData(start.descriptor) == 0 else { return failWork(beginning, syncing: true) }
            let isAll = state.withLock { state in
                // During the sync, the transfer may have ended, and another sync may have stored more bytes.
                guard state.bytes.beginning == beginning, state.bytes.recordSynced(to: syncTo) else { return false }
                return state.bytes.isDurable && !state.isSettling
            }
            KillPoint.reach(.transferSynced, attempt.transfer)
            if isAll { post(.attemptMoved(attempt)) }
        }
        let (rest, settled) = state.withLock { state -> (DiskWorker.Rest, WireEnd?) in
            if !state.bytes.isHashed, state.isSettling || state.bytes.isTurnFull {
                return (.more, nil)
            }
            if case .reported(let end) = state.settling, state.bytes.beginning == beginning {
                state.settling = .no
                return (.nothing, end)
            }
            state.isRemembered = !state.bytes.isDurable
            return (state.isRemembered ? .little : .nothing, nil)
        }
        if let settled { post(.attemptFinished(attempt, settled)) }
        return rest
    }

    /// - Parameter beginning: the value of `bytes.beginning` when the work began (``PartBytes/beginning``).
    private func failWork(_ beginning: Int, syncing: Bool = false) -> DiskWorker.Rest {
        let number = errno
        state.withLock { state in
            guard state.bytes.beginning == beginning else { return }
            state.record(FileTrouble(number, ofOpenFile: state.place.url.path))
            if syncing { state.bytes.recordFailedSync() }
        }
        endSettling(beginning)
        return .nothing
    }

    /// Notifies the owner of the file if the owner waits until all bytes are synced and hashed.
    private func endSettling(_ beginning: Int) {
        let settled = state.withLock { state -> WireEnd? in
            guard state.bytes.beginning == beginning, case .reported(let end) = state.settling else { return nil }
            state.settling = .no
            return end
        }
        if let settled { post(.attemptFinished(attempt, settled)) }
    }

    /// Syncs all written bytes to the disk. If the sync fails, records the problem.
    ///
    /// Call this method after the attempt was stopped or has ended, because no more bytes are written and no other file is
    /// opened.
    private func sync() {
        let open = file.withLock { _ in
            state.withLock { state -> (descriptor: Int32, written: Int64)? in
                // The bytes that are already on the disk must not be lost if the disk is full.
                guard state.descriptor >= 0, state.trouble?.isPassing ?? true, state.bytes.maySync else { return nil }
                return (state.descriptor, state.bytes.written)
            }
        }
        guard let open else { return }
        // The lock is not held during the sync, because otherwise the transport's thread, and so all other transfers, would wait
        // for this disk.
        guard disk.calls.syncData(open.descriptor) == 0 else {
            _ = fail()
            return state.withLock { $0.bytes.recordFailedSync() }
        }
        _ = state.withLock { $0.bytes.recordSynced(to: open.written) }
        KillPoint.reach(.transferSynced, attempt.transfer)
    }

    /// Records the error that `errno` contains. Returns `false`, which the caller returns to the transport.
    private func fail(ofOpenFile isOpen: Bool = true) -> Bool {
        let number = errno
        state.withLock { state in
            let path = state.place.url.path
            state.record(isOpen ? FileTrouble(number, ofOpenFile: path) : FileTrouble(number, ofNewFile: path))
        }
        return false
    }

    // MARK: On the agent's loop

    /// The progress of the download.
    struct Progress {
        /// The state of the bytes that were synced to the disk.
        var partial: PartialFile?
        /// The place of the partial file.
        var place: PartPlace
        var written: Int64
        /// The offset at which the response continued the download. `nil` if the response contains the file from its beginning.
        var resumedAt: Int64?
        /// `true` if the beginning of a usable response arrived.
        var hasAnswer: Bool
    }

    var progress: Progress {
        state.withLock { state in
            state.isCommitted = state.isCommitted || state.machine.partial != nil
            return Self.progress(of: state)
        }
    }

    private static func progress(of state: DownloadFileState) -> Progress {
        var progress = Progress(
            partial: state.machine.partial, place: state.place, written: state.holdsBytes ? state.bytes.written : 0,
            hasAnswer: true)
        if state.holdsBytes { progress.partial?.durableBytes = state.bytes.synced }
        switch state.answer {
        case .none: progress.hasAnswer = false
        case .whole: break
        case .rest(let offset): progress.resumedAt = offset
        }
        return progress
    }

    /// Ends the attempt for its owner, although the transport may still transfer data. The received bytes are synced to the disk.
    func release() {
        // The lock of the file is acquired after the current write is complete.
        file.withLock { _ in state.withLock { $0.intake = .stopped(wasWriting: $0.holdsBytes) } }
        sync()
    }

    /// Handles the end of the transfer. The received bytes are synced, and a complete file is hashed.
    ///
    /// - Returns: `true` if this work is complete. If the value is `false`, `.attemptFinished` is posted after the work.
    func finish(_ end: WireEnd) -> Bool {
        let descriptor = state.withLock { $0.holdsBytes ? $0.descriptor : -1 }
        let found = descriptor < 0 ? nil : FileVersion.open(descriptor, disk.calls)
        if descriptor >= 0, found == nil { _ = fail() }
        // The state is read in a single step, because the worker may record a problem at any time.
        let isRead = state.withLock { state in
            guard state.trouble == nil, let found, state.compare(found) else { return false }
            let isWhole = end.failure == nil || state.machine.partial?.totalBytes == state.bytes.written
            guard isWhole || state.isDoubtful else { return false }
            // All bytes are read again if a digest arrived after the body, or if another program changed the file.
            let computed = state.bytes.digests.algorithms
            let wanted = Set(end.head.map { state.machine.requiredDigests(of: $0).map(\.algorithm) } ?? [])
            if state.isDoubtful || !computed.isSuperset(of: wanted) { state.bytes.rehash(for: Array(computed.union(wanted))) }
            let isLittle = state.bytes.written - state.bytes.hashed <= disk.waitedFor
            state.settling = isLittle || !disk.hasThread ? .waitedFor : .reported(end)
            return true
        }
        guard isRead else {
            sync()
            return true
        }
        guard state.withLock({ $0.settling.isWaitedFor }) else {
            disk.enqueue(self, .more)
            return false
        }
        sync()
        if state.withLock({ !$0.bytes.isHashed }) {
            disk.enqueue(self, .more)
            disk.wait { state.withLock { $0.trouble != nil || $0.bytes.isHashed } }
        }
        return true
    }

    struct Outcome {
        var command: DownloadCommand
        var progress: Progress
        var report: ResumeReport
        var sha256: String
        var trouble: FileTrouble?
        /// The state of the partial file before its last bytes were read.
        var sight: FileVersion?
    }

    /// Returns the result of an ended attempt. The machine decides, and the digests of a complete file are checked. A second call
    /// returns the same result.
    func outcome(of end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> Outcome {
        state.withLock { state in
            var ended = state
            let durable = ended.holdsBytes ? ended.bytes.synced : ended.machine.partial?.durableBytes ?? 0
            var command = ended.machine.ended(
                end, durableBytes: durable, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
            if case .finish(let head, let resumedFrom) = command, ended.trouble == nil {
                for digest in ended.machine.requiredDigests(of: head)
                where ended.bytes.digests.bytes(digest.algorithm) != digest.bytes {
                    command = ended.machine.refute(
                        digest, found: ended.bytes.digests.sha256, resumedFrom: resumedFrom,
                        attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
                    break
                }
            }
            var progress = Self.progress(of: ended)
            progress.partial = ended.machine.partial
            progress.written = ended.bytes.written
            return Outcome(
                command: command, progress: progress, report: ended.machine.report, sha256: ended.bytes.digests.sha256,
                trouble: ended.trouble, sight: ended.sight)
        }
    }

    /// Adds the final name to a complete and verified file, before the ledger is changed. Returns `false` if the final name has
    /// to be added later.
    ///
    /// The partial file keeps its old name. So if the ledger shows that the transfer was stopped, the partial file still exists.
    func linkIfWhole(_ end: WireEnd, upTo limit: Int64) -> Bool {
        let outcome = outcome(of: end, now: startedAt, attemptsWithoutProgress: 0, jitter: 0)
        guard case .finish = outcome.command, outcome.trouble == nil, outcome.progress.written <= limit else { return false }
        KillPoint.reach(.transferProven, attempt.transfer)
        let (part, whole) = (outcome.progress.place.url.path, outcome.progress.place.whole.path)
        guard let sight = outcome.sight, FileVersion.named(part, disk.calls)?.isStill(sight) == true,
            FileName.add(part, whole, disk.calls)
        else { return false }
        KillPoint.reach(.transferPlaced, attempt.transfer)
        return true
    }
}

extension FileTrouble {
    /// The error for a missing partial file. The next attempt also finds no partial file and requests the complete file.
    fileprivate static func lostPart(_ path: String) -> FileTrouble {
        FileTrouble(why: "\(path): the partial file of the download is missing", isPassing: true)
    }

    /// The error for a partial file that another program changed. The next attempt starts from the beginning.
    static func changedPart(_ path: String) -> FileTrouble {
        FileTrouble(why: "\(path): another program changed the file", isPassing: true, isOfNoUse: true)
    }
}
