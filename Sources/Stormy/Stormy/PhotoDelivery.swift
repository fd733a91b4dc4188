import BackgroundTransfer
import Foundation
import Synchronization

/// Takes note of photos whose upload ended.
package class PhotoDelivery: EventDelivery, @unchecked Sendable {  // because the lock guards what changes
    let store: StormyStore
    package let lastEvent = LastEvent()
    package let trouble = FirstError()
    /// Of those a person hears of by notification.
    private let ended = Mutex<[PhotoRecord]>([])

    init(_ store: StormyStore) { self.store = store }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            let label = PhotoUploads.Label(parsing: task.taskDescription)
        else { return }
        trouble.noting {
            let photo = try store.endPhoto(
                label.photo, transfer: number, as: Self.state(error), message: error?.localizedDescription,
                remoteURL: upload.remoteURL?.absoluteString
            ) {
                // Nobody else would say how it ended.
                try BackgroundTransfers.statuses(of: [number]).first.map { PhotoReconciliation.photo(of: $0) }
            }
            guard let photo else { return }
            noted(photo)
            // Given again where there is a desktop: told there.
            if label.tells || photo.tells { ended.withLock { $0.append(photo) } }
        }
    }

    /// An end that the store has.
    func noted(_ photo: PhotoRecord) {}

    private static func state(_ error: (any Error)?) -> PhotoRecord.State {
        guard let error else { return .completed }
        return (error as? URLError)?.code == .cancelled ? .cancelled : .failed
    }

    /// One notification for all of a batch, for those that nobody else hears of.
    func tell() async throws {
        let photos = ended.withLock { ended in
            defer { ended = [] }
            return ended
        }
        if !photos.isEmpty { try await PhotoBatch.tell(photos, store) }
    }
}

/// The same for a terminal that waits: it says each end as it comes.
package final class FollowedPhotos: PhotoDelivery, @unchecked Sendable {  // because what it adds does not change
    private let onEnd: @Sendable (PhotoRecord) -> Void

    /// - Parameter onEnd: called with each end, before it counts as told.
    package init(_ store: StormyStore, onEnd: @escaping @Sendable (PhotoRecord) -> Void) {
        self.onEnd = onEnd
        super.init(store)
    }

    override func noted(_ photo: PhotoRecord) { onEnd(photo) }

    /// The terminal has said what ended.
    ///
    /// - Throws: what could not be noted.
    package func finish() async throws {
        try trouble.check()
        // Theirs was the last end that a notification of others waited for.
        try await PhotoBatch.tell([], store)
    }
}
