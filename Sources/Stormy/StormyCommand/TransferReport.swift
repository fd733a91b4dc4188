import BackgroundCommands
import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Stormy

/// A waiting photo job or a held photo stands among the transfers.
extension TransferReport {
    static func identifier(of photo: PhotoRecord) -> String { "photo-\(photo.id ?? 0)" }

    init(_ photo: PhotoRecord) {
        self.init(
            id: Self.identifier(of: photo), session: PhotoUploads.sessionIdentifier, state: photo.state.rawValue,
            file: photo.path,
            note: photo.message)
    }

    /// The store and the ledger find each other again: a process died between a photo's record and its transfer, or one of the two
    /// files was moved away, or comes from a backup.
    static func reconcile(_ store: StormyStore) throws {
        for sentence in try PhotoReconciliation(store: store).run().sentences { Output.note("stormy: \(sentence)") }
    }

    /// Photos that are with the agent are its transfers; the others stand for themselves.
    static func all(_ store: StormyStore) throws -> [TransferReport] {
        // Who only looks needs no room on the disk, and waits for nobody who writes: the next verb does it, or the noon check.
        let trouble: (any Error)?
        do {
            if !store.isCopy, !AppRuntime.shared.hasLedgerInMemory { try reconcile(store) }
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
            $0.submission == nil && ($0.state == .awaitingPhoto || $0.state == .held || $0.state == .cancelled)
        }
        return transfers.map(TransferReport.init) + photos.map(TransferReport.init)
    }
}
