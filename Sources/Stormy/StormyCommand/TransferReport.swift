import BackgroundCommands
import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Stormy

/// This extension lists photo requests, and photos that are held back, together with the transfers.
extension TransferReport {
    static func identifier(of photo: PhotoRecord) -> String { "photo-\(photo.id ?? 0)" }

    init(_ photo: PhotoRecord) {
        self.init(
            id: Self.identifier(of: photo), session: PhotoUploads.sessionIdentifier, state: photo.state.rawValue,
            file: photo.path,
            note: photo.message)
    }

    /// Reconciles the store with the ledger. The store and the ledger differ if a process recorded a photo and was killed before
    /// it created the transfer. The store and the ledger also differ if the file of the store or of the ledger was moved away or
    /// restored from a backup.
    static func reconcile(_ store: StormyStore) throws {
        for sentence in try PhotoReconciliation(store: store).run().sentences { Output.note("stormy: \(sentence)") }
    }

    /// Returns all transfers of the agent, and the photos that are not queued in the agent.
    static func all(_ store: StormyStore) throws -> [TransferReport] {
        // An error of the reconciliation does not end the command. Commands that only show data must also work on a full disk,
        // and while another process writes. The next command or the daily check reconciles the photos.
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
                "stormy: the photos were not compared with the agent's database: \(CommandFailure(ofStormy: trouble).message)")
        }
        let photos = try store.photos().filter {
            $0.submission == nil && ($0.state == .awaitingPhoto || $0.state == .held || $0.state == .cancelled)
        }
        return transfers.map(TransferReport.init) + photos.map(TransferReport.init)
    }
}
