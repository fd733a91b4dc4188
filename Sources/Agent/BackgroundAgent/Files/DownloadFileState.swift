import BackgroundLedger
import TransferMachines

/// The state of a download's file. The transport's thread, the disk worker's thread and the agent's loop share this state.
struct DownloadFileState {
    /// The handling of bytes that arrive.
    enum Intake {
        /// The bytes belong to a response that the download does not need.
        case discarding
        case writing
        /// The attempt was stopped, and its bytes are not written, because another attempt may own the file.
        case stopped(wasWriting: Bool)
    }

    /// The kind of response: the complete file, the rest of the file, or none.
    enum ResponseKind {
        case none
        case whole
        case rest(from: Int64)
    }

    /// Records whether and how the owner of the file waits until all bytes are synced and hashed.
    enum Settling {
        case no
        /// The owner of the file waits on the owner's thread until all bytes are synced and hashed.
        case waitedFor
        /// The owner of the file does not wait. The owner is notified when all bytes are synced and hashed.
        case reported(WireEnd)

        var isWaitedFor: Bool { if case .waitedFor = self { true } else { false } }
    }

    var machine: DownloadMachine
    var place: PartPlace
    var descriptor: Int32 = -1
    var intake = Intake.discarding
    var answer = ResponseKind.none
    var bytes = PartBytes()
    /// `true` if the disk worker already has a task for the few bytes that arrived.
    var isRemembered = false
    var settling = Settling.no
    var trouble: FileTrouble?
    /// `true` if the ledger refers to bytes of this file, or may refer to them soon.
    var isCommitted: Bool

    /// `true` if the bytes of the response are or were written to the file.
    var holdsBytes: Bool {
        switch intake {
        case .discarding: false
        case .writing: true
        case .stopped(let wasWriting): wasWriting
        }
    }

    /// The state of the file after the agent last changed it.
    var sight: FileVersion?
    /// `true` if another program changed the file. At the end of the download, all bytes are then read again.
    var isDoubtful = false

    /// Compares the file with its state after the agent's last change.
    ///
    /// - Parameter found: The current state of the file, before the agent changes the file again.
    /// - Returns: `false` if the file's size differs from the number of written bytes.
    mutating func compare(_ found: FileVersion) -> Bool {
        if let sight, !found.isStill(sight) { isDoubtful = true }
        sight = found
        guard found.byteCount == bytes.written else {
            record(.changedPart(place.url.path))
            return false
        }
        return true
    }

    /// Records a problem with the file. A permanent problem is not replaced, because it may be the cause of a later problem that
    /// seems to be temporary.
    mutating func record(_ other: FileTrouble) { if trouble?.isPassing ?? true { trouble = other } }

    var isStopped: Bool { if case .stopped = intake { true } else { false } }
    var isSettling: Bool { if case .no = settling { false } else { true } }
}
