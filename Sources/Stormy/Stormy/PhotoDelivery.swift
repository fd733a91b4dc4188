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

/// The same for whoever waits for the ends of certain uploads, and knows which of them are still on their way.
package final class AwaitedPhotos: PhotoDelivery, @unchecked Sendable {  // because the lock guards what it adds
    private struct State {
        var left: [Int: URLSessionTask] = [:]
        /// No more will be expected: the last one that ends is the end.
        var isComplete = false

        var isOver: Bool { isComplete && left.isEmpty }
    }

    private let state = Mutex(State())
    private let end = LastEvent()

    private let onEnd: @Sendable (PhotoRecord) -> Void

    /// - Parameter onEnd: called with each end as it comes, before it counts as told.
    package init(_ store: StormyStore, onEnd: @escaping @Sendable (PhotoRecord) -> Void = { _ in }) {
        self.onEnd = onEnd
        super.init(store)
    }

    override func noted(_ photo: PhotoRecord) { onEnd(photo) }

    var left: [URLSessionTask] { state.withLock { Array($0.left.values) } }

    func expect(_ tasks: [URLSessionTask]) {
        state.withLock { state in for task in tasks { state.left[task.taskIdentifier] = task } }
    }

    func giveUp() { end.came() }

    /// The terminal has said what ended.
    ///
    /// - Throws: what could not be noted.
    package func finish() async throws {
        try trouble.check()
        // Theirs was the last end that a notification of others waited for.
        try await PhotoBatch.tell([], store)
    }

    func allEnded() async {
        let isOver = state.withLock { state in
            state.isComplete = true
            return state.isOver
        }
        if isOver { end.came() }
        await end.wait()
    }

    override package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        super.urlSession(session, task: task, didCompleteWithError: error)
        let isOver = state.withLock { state in
            state.left[task.taskIdentifier] = nil
            return state.isOver
        }
        // The end is acknowledged when this has returned: leaving the process at once would have it told again.
        if isOver { session.delegateQueue.addOperation { [end] in end.came() } }
    }
}
