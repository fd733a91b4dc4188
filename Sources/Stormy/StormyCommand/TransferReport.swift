import BackgroundCommands
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Stormy

/// A line of `transfers`: a transfer of the agent's, a waiting photo job or a held photo.
struct TransferReport: Encodable {
    struct Trouble: Encodable {
        let code: Int
        let message: String
    }

    let id: String
    let session: String
    let kind: String
    let method: String
    let url: OrNull<String>
    let state: String
    let bytesDone: Int64
    let bytesTotal: OrNull<Int64>
    let bytesOnWire: Int64
    let attempts: Int
    let nextAttemptAt: OrNull<Date>
    let error: OrNull<Trouble>
    let file: OrNull<String>
    let sha256: OrNull<String>
    let sourceSha256: OrNull<String>
    let note: OrNull<String>
    let receipt: OrNull<Receipt>

    /// What the server has, and how that is known: `answer` (it said so), `length` (it has so many bytes) or `digest`.
    struct Receipt: Encodable {
        let url: String
        let byteCount: Int64
        let sha256: String
        let storedAt: Date
        let verified: String
        let checkedAt: OrNull<Date>
    }

    static func identifier(of photo: PhotoRecord) -> String { "photo-\(photo.id ?? 0)" }

    init(_ transfer: BackgroundTransferStatus) {
        id = String(transfer.id)
        session = transfer.session
        kind = transfer.kind.rawValue
        method = transfer.method
        url = OrNull(transfer.url)
        // Held by the app for a good moment.
        state = transfer.isHeld ? "held" : transfer.state.rawValue
        bytesDone = transfer.bytesDone
        bytesTotal = OrNull(transfer.bytesTotal)
        bytesOnWire = transfer.bytesOnWire
        attempts = transfer.attempts
        nextAttemptAt = OrNull(transfer.nextAttemptAt)
        error = OrNull(transfer.trouble.map { Trouble(code: $0.code, message: $0.message) })
        file = OrNull(transfer.file)
        sha256 = OrNull(transfer.sha256)
        sourceSha256 = OrNull(transfer.sourceSHA256)
        note = OrNull(transfer.note)
        receipt = OrNull(
            transfer.receipt.map {
                Receipt(
                    url: $0.url, byteCount: $0.byteCount, sha256: $0.sha256, storedAt: $0.storedAt, verified: $0.proof.rawValue,
                    checkedAt: OrNull($0.checkedAt))
            })
    }

    init(_ photo: PhotoRecord) {
        id = Self.identifier(of: photo)
        session = PhotoUploads.sessionIdentifier
        kind = "upload"
        method = "PUT"
        url = OrNull(nil)
        state = photo.state.rawValue
        bytesDone = 0
        bytesTotal = OrNull(nil)
        bytesOnWire = 0
        attempts = 0
        nextAttemptAt = OrNull(nil)
        error = OrNull(nil)
        file = OrNull(photo.path)
        sha256 = OrNull(nil)
        sourceSha256 = OrNull(nil)
        note = OrNull(photo.message)
        receipt = OrNull(nil)
    }

    /// The store and the ledger find each other again: a process died between a photo's record and its transfer, or one of the two
    /// files was moved away, or comes from a backup.
    static func reconcile(_ store: StormyStore) throws {
        try recoverPhotos(store)
        for sentence in try PhotoReconciliation(store: store).run().sentences { Output.note("stormy: \(sentence)") }
    }

    private static func recoverPhotos(_ store: StormyStore) throws {
        let now = BGTaskScheduler.now
        guard try store.hasLostPhotos(now: now) else { return }
        let labelled = try BackgroundTransfers.all().compactMap { transfer in
            PhotoUploads.Label(parsing: transfer.taskDescription).map { ($0.photo, transfer.id) }
        }
        try store.recoverPhotos(transfers: Dictionary(labelled, uniquingKeysWith: { _, last in last }), now: now)
    }

    /// Photos that are with the agent are its transfers; the others stand for themselves.
    static func all(_ store: StormyStore) throws -> [TransferReport] {
        // Who only looks needs no room on the disk, and waits for nobody who writes: the next verb does it, or the noon check.
        let trouble: (any Error)?
        do {
            try reconcile(store)
            trouble = nil
        } catch {
            trouble = error
        }
        let transfers = try BackgroundTransfers.all()
        if let trouble {
            Output.note(
                "stormy: the photos were not compared with what the agent knows: \(CommandFailure(ofStormy: trouble).message)")
        }
        let photos = try store.photos().filter {
            $0.transfer == nil && ($0.state == .awaitingPhoto || $0.state == .held || $0.state == .cancelled)
        }
        return transfers.map(TransferReport.init) + photos.map(TransferReport.init)
    }
}
