import BackgroundLedger
import Foundation
import TransferMachines

/// A transfer of a background session as it stands, whichever process of the app asked for it. A value: ask again for what is so later.
///
/// Differs from Apple: there an app sees the tasks of its own sessions alone. Here a command, a settings window or a test can list all.
public struct BackgroundTransferStatus: Sendable, Identifiable, Equatable {
    /// What a transfer is about.
    public enum Kind: String, Sendable {
        case download
        case upload
    }

    /// Where it stands.
    public enum State: String, Sendable {
        /// Begins as soon as there is room, and what it needs.
        case queued
        /// Bytes are moving.
        case running
        /// Is tried again at ``BackgroundTransferStatus/nextAttemptAt``, or when the network changes.
        case waiting
        /// Held by a person.
        case paused
        case completed
        case failed
        case cancelled

        /// It ended, well or not.
        public var hasEnded: Bool {
            switch self {
            case .queued, .running, .waiting, .paused: false
            case .completed, .failed, .cancelled: true
            }
        }
    }

    /// Its number, which no other transfer of the app ever gets. ``URLSessionTask/transferNumber`` of its task.
    public let id: Int64
    /// The identifier of its background session.
    public let session: String
    /// ``URLSessionTask/taskIdentifier`` of its task.
    public let taskIdentifier: Int
    /// Which way its bytes go.
    public let kind: Kind
    /// Of the request: `GET`, `PUT` …
    public let method: String
    /// The address without user, password and query: they may be secrets.
    public let url: String?
    /// The address that the app requested, without user and password. For comparisons in this package only: its query may be a secret.
    package let requestedURL: String
    /// The name that the user gave the server of an upload. `nil` if the server has no name.
    package let serverName: String?
    /// Where it stands.
    public let state: State
    /// The app holds it, with `suspend()`: it stays where it stands.
    public let isHeld: Bool
    /// The ``URLSessionTask/taskDescription`` of its task.
    public let taskDescription: String?
    /// Bytes of the file that are done.
    public let bytesDone: Int64
    /// Bytes of the file; `nil`: nobody said.
    public let bytesTotal: Int64?
    /// Bytes that went over the network for it, whatever became of them.
    public let bytesOnWire: Int64
    /// Attempts so far.
    public let attempts: Int
    /// When it is tried again; `nil`: it does not wait for a time.
    public let nextAttemptAt: Date?
    /// Why it waits or failed. Its code is `URLError`'s; -1: no code fits.
    public let trouble: Trouble?
    /// Absolute path that a download gets, or has got, when it is whole; `nil`: its delegate takes it from the spool.
    public let destination: String?
    /// The name a person knows the file by: the original of an upload, the place of a download.
    public let file: String?
    /// SHA-256 in hex of what was received, or of what was sent.
    public let sha256: String?
    /// SHA-256 in hex of the file that an upload was made from.
    public let sourceSHA256: String?
    /// SHA-256 in hex of the queued copy of an upload.
    package let copySHA256: String?
    /// The key of an upload as it is stored (``URLSessionUploadTask/storedSubmissionKey``). `nil` for a download.
    package let submission: String?
    /// How it got on, in words: resumed or started over, and why.
    public let note: String?
    /// Of an upload that ended well.
    public let receipt: Receipt?

    /// Why a transfer waits or failed.
    public struct Trouble: Sendable, Equatable {
        /// The number of a `URLError.Code`; -1: none fits.
        public let code: Int
        /// A sentence for a person.
        public let message: String
    }

    /// What the server has, and how that is known.
    public struct Receipt: Sendable, Equatable {
        /// What is known of the server's copy.
        public enum Proof: String, Sendable {
            /// It answered that it took it.
            case answer
            /// It said that it has so many bytes.
            case length
            /// Blocks of its copy were read back, and are what was sent.
            case content
            /// It named the right digest, or was read back.
            case digest
        }

        /// Where it is, without secrets.
        public let url: String
        /// Bytes that were sent.
        public let byteCount: Int64
        /// In hex, of what was sent.
        public let sha256: String
        /// When the server had it.
        public let storedAt: Date
        /// How it is known that the server has it.
        public let proof: Proof
        /// When the server was asked again, and still had it; `nil`: it was not.
        public let checkedAt: Date?
        /// Why the server has the file otherwise than asked, under another name for example, as a part of a sentence. `nil` if it is as asked.
        public let remark: String?
    }

    init(_ transfer: TransferRecord) {
        id = transfer.id ?? 0
        session = transfer.session
        taskIdentifier = transfer.taskIdentifier
        kind = transfer.kind == .upload ? .upload : .download
        method = transfer.method
        url = PublicAddress.of(transfer.url)
        serverName = transfer.upload?.server?.name
        requestedURL = PublicAddress.of(transfer.url, keepsQuery: true)
        state = State(transfer.state)
        isHeld = transfer.isSuspended && !transfer.state.isTerminal
        taskDescription = transfer.taskDescription
        (bytesDone, bytesTotal, bytesOnWire) = (transfer.bytesDone, transfer.bytesTotal, transfer.bytesOnWire)
        attempts = transfer.attempts
        nextAttemptAt = transfer.nextAttemptAt
        trouble = transfer.errorMessage.map { Trouble(code: transfer.errorCode ?? -1, message: $0) }
        destination = transfer.destination
        file = transfer.sourceName ?? transfer.destination ?? transfer.file
        sha256 = transfer.sha256
        sourceSHA256 = transfer.originalSHA256 ?? transfer.sourceSHA256
        copySHA256 = transfer.sourceSHA256
        submission = transfer.kind == .upload ? transfer.key : nil
        note = transfer.note
        receipt = transfer.receipt.map(Receipt.init)
    }
}

extension BackgroundTransferStatus.State {
    init(_ state: TransferRecord.State) {
        self =
            switch state {
            case .queued: .queued
            case .running: .running
            case .waiting: .waiting
            case .paused: .paused
            case .completed: .completed
            case .failed: .failed
            case .cancelled: .cancelled
            }
    }
}

extension BackgroundTransferStatus.Receipt {
    fileprivate init(_ receipt: UploadReceipt) {
        (url, byteCount, sha256) = (receipt.url, receipt.byteCount, receipt.sha256)
        (storedAt, checkedAt, remark) = (receipt.storedAt, receipt.checkedAt, receipt.remark)
        proof =
            switch receipt.proof {
            case .answer: .answer
            case .length: .length
            case .content: .content
            case .digest: .digest
            }
    }
}
