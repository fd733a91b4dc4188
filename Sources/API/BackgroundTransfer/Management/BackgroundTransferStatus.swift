import BackgroundLedger
import Foundation
import TransferMachines

/// A snapshot of the state of a transfer of a background session. Any process of the app may have created the transfer. To see
/// later changes, read the status again.
///
/// Differs from Apple: on iOS an app sees only the tasks of its own sessions. On Linux, every process of the app can list all
/// transfers.
public struct BackgroundTransferStatus: Sendable, Identifiable, Equatable {
    /// The directions of a transfer.
    public enum Kind: String, Sendable {
        case download
        case upload
    }

    /// The states of a transfer.
    public enum State: String, Sendable {
        /// The transfer begins when a connection is free and the transfer's conditions are met.
        case queued
        /// Bytes are being transferred.
        case running
        /// The transfer is tried again at ``BackgroundTransferStatus/nextAttemptAt``, or when the network changes.
        case waiting
        /// The user paused the transfer.
        case paused
        case completed
        case failed
        case cancelled

        /// A Boolean value that indicates whether the transfer succeeded, failed or was cancelled.
        public var hasEnded: Bool {
            switch self {
            case .queued, .running, .waiting, .paused: false
            case .completed, .failed, .cancelled: true
            }
        }
    }

    /// The number of the transfer. The number is unique in the app and equal to the task's ``URLSessionTask/transferNumber``.
    public let id: Int64
    /// The identifier of the transfer's background session.
    public let session: String
    /// The ``URLSessionTask/taskIdentifier`` of the transfer's task.
    public let taskIdentifier: Int
    /// The direction of the transfer.
    public let kind: Kind
    /// The method of the request, for example `GET` or `PUT`.
    public let method: String
    /// The address of the transfer without user name, password and query, because these parts may be secrets.
    public let url: String?
    /// The address that the app requested, without user name and password. Do not show or log this address, because its query may
    /// be a secret. Use it only for comparisons.
    package let requestedURL: String
    /// The name that the user gave to the server of an upload, or `nil` if the server has no name.
    package let serverName: String?
    /// The state of the transfer.
    public let state: State
    /// A Boolean value that indicates whether the app suspended the transfer with `suspend()`, so that no bytes are transferred.
    public let isHeld: Bool
    /// The ``URLSessionTask/taskDescription`` of the transfer's task.
    public let taskDescription: String?
    /// The number of bytes of the file that are already transferred.
    public let bytesDone: Int64
    /// The size of the file in bytes, or `nil` if the size is not known.
    public let bytesTotal: Int64?
    /// The number of bytes that were sent or received over the network, including bytes of failed attempts.
    public let bytesOnWire: Int64
    /// The number of attempts so far.
    public let attempts: Int
    /// The time of the next attempt, or `nil` if the transfer does not wait for a specific time.
    public let nextAttemptAt: Date?
    /// The reason why the transfer waits or failed.
    public let trouble: Trouble?
    /// The absolute path of the complete download, or `nil` if the delegate receives a temporary file. The path is known when the
    /// download starts.
    public let destination: String?
    /// The path of the user's file: the original file of an upload, or the destination of a download.
    public let file: String?
    /// The SHA-256 in hex of the received or sent data.
    public let sha256: String?
    /// The SHA-256 in hex of an upload's original file.
    public let sourceSHA256: String?
    /// The SHA-256 in hex of the agent's copy of the file to upload.
    package let copySHA256: String?
    /// The stored form of an upload's submission key (``URLSessionUploadTask/storedSubmissionKey``). `nil` for a download.
    package let submission: String?
    /// A remark about the progress, for example the reason why the transfer was started again.
    public let note: String?
    /// The receipt of a successful upload.
    public let receipt: Receipt?

    /// The reason why a transfer waits or failed.
    public struct Trouble: Sendable, Equatable {
        /// The raw value of a `URLError.Code`, or -1 if no code describes the problem.
        public let code: Int
        /// A sentence for the user.
        public let message: String
    }

    /// `true` if the upload begins after another upload is complete.
    package let isFollower: Bool

    /// The record of an uploaded file, with the proof that the server has the file.
    public struct Receipt: Sendable, Equatable {
        /// The kinds of proof that the server has the file.
        public enum Proof: String, Sendable {
            /// The server's response confirmed the upload.
            case answer
            /// The server reported the correct length of the file.
            case length
            /// Blocks of the file were read back from the server, and are equal to the sent data.
            case content
            /// The server reported the correct digest, or the complete file was read back.
            case digest
        }

        /// The address of the file on the server, without secrets.
        public let url: String
        /// The number of sent bytes.
        public let byteCount: Int64
        /// The SHA-256 in hex of the sent data.
        public let sha256: String
        /// The time at which the upload was confirmed.
        public let storedAt: Date
        /// The kind of proof that the server has the complete file.
        public let proof: Proof
        /// The time of the last check that found the file on the server. `nil` if the file was not checked after the upload.
        public let checkedAt: Date?
        /// The time at which the photo was taken. `nil` if the app did not set a time.
        public let takenAt: Date?
        /// The source of ``takenAt``: `exif` (Exif data with an offset from UTC), `exifWithoutOffset` (the time zone of this
        /// computer is assumed), `google` (a JSON file of Google Photos) or `file` (the modification time of the file).
        public let takenAtSource: String?
        /// The reason why the file on the server differs from the request, for example because the file has another name. The
        /// text is a part of a sentence. `nil` if the file does not differ.
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
        isFollower = transfer.upload?.company?.leader != nil
        // An upload that begins after another upload has no known time.
        nextAttemptAt = isFollower ? nil : transfer.nextAttemptAt
        trouble = transfer.errorMessage.map { Trouble(code: transfer.errorCode ?? -1, message: $0) }
        destination = transfer.destination
        file = transfer.sourceName ?? transfer.destination ?? transfer.file
        sha256 = transfer.sha256
        sourceSHA256 = transfer.originalSHA256 ?? transfer.sourceSHA256
        copySHA256 = transfer.sourceSHA256
        submission = transfer.kind == .upload ? transfer.key : nil
        note = transfer.note
        receipt = transfer.receipt.map { Receipt($0, transfer.upload?.takenAt) }
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
    fileprivate init(_ receipt: UploadReceipt, _ taken: PhotoTime?) {
        (takenAt, takenAtSource) = (taken?.date, taken?.source.rawValue)
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
