import BackgroundTransfer
import Foundation
import Synchronization

/// Takes note of photos whose upload ended.
package class PhotoDelivery: EventDelivery, @unchecked Sendable {  // because the lock guards what changes
    let store: StormyStore
    package let lastEvent = LastEvent()
    package let trouble = FirstError()
    private let phase = Mutex(Phase.collecting)

    private enum Phase {
        /// One notification for all that end.
        case collecting
        /// Each is told with its end: nobody comes after it to tell it.
        case telling
    }

    private let telling: @Sendable (StormyStore) async throws -> Void

    /// - Parameter telling: tells the batch, as far as it is.
    init(
        _ store: StormyStore, telling: @escaping @Sendable (StormyStore) async throws -> Void = { try await PhotoBatch.tell($0) }
    ) {
        (self.store, self.telling) = (store, telling)
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            let submission = upload.storedSubmissionKey
        else { return }
        trouble.noting {
            // The store was made again, or comes from a backup.
            if try store.photo(submittedAs: submission) == nil { try PhotoReconciliation(store: store).adoptAll() }
            let photo = try store.endPhoto(
                submission, as: Self.state(error), message: error?.localizedDescription,
                remoteURL: upload.remoteURL?.absoluteString, isInBatch: { !saysEnds && $0.tells })
            if let photo { noted(photo, number) }
        }
    }

    /// Somebody hears of them otherwise than by notification.
    var saysEnds: Bool { false }

    /// An end that the store has, of a photo and its transfer.
    func noted(_ photo: PhotoRecord, _ transfer: Int64) {
        if phase.withLock({ $0 }) == .telling { tellBatch() }
    }

    private static func state(_ error: (any Error)?) -> PhotoRecord.State {
        guard let error else { return .completed }
        return (error as? URLError)?.code == .cancelled ? .cancelled : .failed
    }

    /// One notification for all of a batch, for those that nobody else hears of.
    func tell() async throws {
        phase.withLock { $0 = .telling }
        try await telling(store)
        try trouble.check()
    }

    /// The process does not leave, and the end does not count as told, before this returns.
    fileprivate func tellBatch() {
        let isTold = DispatchSemaphore(value: 0)
        Task.detached { [self] in
            do { try await telling(store) } catch { trouble.note(error) }
            isTold.signal()
        }
        isTold.wait()
    }
}

/// The same for a terminal that waits: it says each end as it comes. What it cannot say, as it was closed, a notification says.
package final class FollowedPhotos: PhotoDelivery, @unchecked Sendable {  // because what it adds does not change
    private let notifies: Bool
    /// Transfers of which a notification says how they ended.
    private let told = Mutex<Set<Int64>>([])
    private let onEnd: @Sendable (PhotoRecord, Int64) -> Bool

    /// - Parameters:
    ///   - notifies: somebody may see a notification.
    ///   - onEnd: called with each end and the number of its transfer, before it counts as told; `false`: it could not be said.
    package init(_ store: StormyStore, notifies: Bool, onEnd: @escaping @Sendable (PhotoRecord, Int64) -> Bool) {
        (self.notifies, self.onEnd) = (notifies, onEnd)
        super.init(store)
    }

    override var saysEnds: Bool { true }

    override func noted(_ photo: PhotoRecord, _ transfer: Int64) {
        if onEnd(photo, transfer) || !notifies { return }
        trouble.noting { try store.addToPhotoBatch(photo) }
        told.withLock { _ = $0.insert(transfer) }
        tellBatch()
    }

    /// The terminal did not take that all is well.
    package func tell(completed transfers: [Int64]) async throws {
        guard notifies else { return }
        let told = told.withLock { $0 }
        let untold = try BackgroundTransfers.statuses(of: transfers.filter { !told.contains($0) })
        for submission in untold.compactMap(\.submission) {
            guard let photo = try store.photo(submittedAs: submission), photo.state == .completed else { continue }
            try store.addToPhotoBatch(photo)
        }
        try await PhotoBatch.tell(store)
    }

    /// The terminal has said what ended.
    ///
    /// - Throws: what could not be noted.
    package func finish() async throws {
        try trouble.check()
        // Theirs was the last end that a notification of others waited for.
        try await PhotoBatch.tell(store)
    }
}
