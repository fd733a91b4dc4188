import BackgroundLedger
import TransferMachines

/// What a download's file knows of itself: shared by the transport's thread, the disk worker's and the agent's loop.
struct DownloadFileState {
    /// What becomes of bytes that arrive.
    enum Intake {
        /// They are of no answer that is wanted.
        case discarding
        case writing
        /// The attempt was stopped: they are not written, the file may be another attempt's by now.
        case stopped(wasWriting: Bool)
    }

    /// What the answer was, as far as it concerns the file.
    enum Answer {
        case none
        case whole
        case rest(from: Int64)
    }

    /// Whether its owner waits for the last byte to be durable and hashed.
    enum Settling {
        case no
        /// On its own thread.
        case waitedFor
        /// The owner hears of it.
        case reported(WireEnd)

        var isWaitedFor: Bool { if case .waitedFor = self { true } else { false } }
    }

    var machine: DownloadMachine
    var place: PartPlace
    var descriptor: Int32 = -1
    var intake = Intake.discarding
    var answer = Answer.none
    var bytes = PartBytes()
    /// The worker will look after a little that arrived.
    var isRemembered = false
    var settling = Settling.no
    var trouble: FileTrouble?
    /// The ledger speaks of bytes in the file, or may do so soon.
    var isCommitted: Bool

    /// What the machine counts on is in the file.
    var holdsBytes: Bool {
        switch intake {
        case .discarding: false
        case .writing: true
        case .stopped(let wasWriting): wasWriting
        }
    }

    /// The file, after the agent's last change.
    var sight: FileSight?
    /// Another program changed the file. All of it is read again at the end.
    var isDoubtful = false

    /// Compares the file with the agent's last change.
    ///
    /// - Parameter found: The file, before the agent changes the file again.
    /// - Returns: `false` if the file does not have as many bytes as were written.
    mutating func compare(_ found: FileSight) -> Bool {
        if let sight, !found.isStill(sight) { isDoubtful = true }
        sight = found
        guard found.byteCount == bytes.written else {
            note(.changedPart(place.url.path))
            return false
        }
        return true
    }

    /// The worst of it stays: what follows may only seem to pass.
    mutating func note(_ other: FileTrouble) { if trouble?.isPassing ?? true { trouble = other } }

    var isStopped: Bool { if case .stopped = intake { true } else { false } }
    var isSettling: Bool { if case .no = settling { false } else { true } }
}
