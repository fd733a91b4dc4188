import BackgroundLedger
import Foundation
import Spool
import Synchronization
import TransferMachines

/// Computes the digest of the agent's complete copy of a file, for the request that sends the last part of the copy.
///
/// Earlier requests, possibly of an earlier agent, sent the other parts. So the copy was not read completely after it was queued.
/// Without this digest, the server would accept a copy that was damaged after it was queued. The disk worker computes the digest
/// while the last part is sent.
final class CopyCheck: DiskWork {
    private struct State {
        var hashed: Int64 = 0
        var digest = RunningDigest()
        /// `true` if the copy could not be read to its end. The digest of such a copy is not known.
        var isUnreadable = false
        /// The end of the attempt, which is posted after the digest is computed.
        var heldEnd: WireEnd?
    }

    /// The number of bytes that are hashed in one turn.
    private static let turn = 4 << 20

    private let file: UploadFile
    private let attempt: AttemptID
    private let disk: DiskWorker
    private let post: @Sendable (AgentEvent) -> Void
    private let state = Mutex(State())

    /// Starts to compute the digest.
    init(of file: UploadFile, _ attempt: AttemptID, on disk: DiskWorker, post: @escaping @Sendable (AgentEvent) -> Void) {
        (self.file, self.attempt, self.disk, self.post) = (file, attempt, disk, post)
        disk.enqueue(self, .more)
    }

    /// The digest of the complete copy. `nil` until the copy was read completely, or if the copy could not be read.
    var sha256: String? { state.withLock { $0.hashed == file.copyBytes ? $0.digest.hex : nil } }

    private func isDone(_ state: State) -> Bool { state.isUnreadable || state.hashed == file.copyBytes }

    func work() -> DiskWorker.Rest {
        let start = state.withLock { isDone($0) ? nil : $0.hashed }
        guard let start else { return .nothing }
        let bytes = file.copy(from: start, count: Self.turn)
        let (rest, end) = state.withLock { state -> (DiskWorker.Rest, WireEnd?) in
            if bytes.isEmpty { state.isUnreadable = true }
            bytes.withUnsafeBytes { state.digest.update($0) }
            state.hashed += Int64(bytes.count)
            guard isDone(state) else { return (.more, nil) }
            defer { state.heldEnd = nil }
            return (.nothing, state.heldEnd)
        }
        if let end { post(.attemptFinished(attempt, end)) }
        return rest
    }

    /// Handles the end of the attempt's transfer.
    ///
    /// - Returns: `true` if the digest is known or not needed. If the value is `false`, `.attemptFinished` is posted after the
    ///   digest is computed.
    func finish(_ end: WireEnd) -> Bool {
        guard let head = end.head, (200..<300).contains(head.status) else { return true }
        let isHeld = state.withLock { state in
            guard !isDone(state), disk.hasThread, file.copyBytes - state.hashed > disk.waitedFor else { return false }
            state.heldEnd = end
            return true
        }
        if isHeld { return false }
        disk.wait { state.withLock { isDone($0) } }
        return true
    }
}
