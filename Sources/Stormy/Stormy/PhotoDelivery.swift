import BackgroundTasks
import BackgroundTransfer
import Foundation
import Synchronization

/// Records photos whose upload ended.
package class PhotoDelivery: EventDelivery, DeliveredEndsRecorder, @unchecked Sendable {  // because the lock guards what changes
    let store: StormyStore
    package let lastEvent = LastEvent()
    package let trouble = FirstError()
    private let phase = Mutex(Phase.collecting)
    /// The received results that are not stored yet.
    private let received = Mutex<[ReceivedEnd]>([])
    private let ended = Mutex<[PhotoRecord]>([])

    private struct ReceivedEnd {
        let photo: PhotoEnd
        let transfer: Int64
    }

    /// A photo whose result is stored, and the number of the photo's transfer.
    struct EndedPhoto {
        let photo: PhotoRecord
        let transfer: Int64
    }

    private enum Phase {
        /// The ended uploads are collected for one notification.
        case collecting
        /// Each ended upload is reported immediately, because no later call reports the upload.
        case reporting
    }

    private let report: @Sendable (StormyStore) async throws -> Void

    /// - Parameter telling: A closure that shows the progress of the batch.
    init(
        _ store: StormyStore,
        telling: @escaping @Sendable (StormyStore) async throws -> Void = { try await PhotoBatch.showProgress($0) }
    ) {
        (self.store, self.report) = (store, telling)
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            let submission = upload.storedSubmissionKey
        else { return }
        let end = PhotoEnd(
            submission: submission, state: Self.state(error), message: error?.localizedDescription,
            remoteURL: upload.remoteURL?.absoluteString)
        received.withLock { $0.append(ReceivedEnd(photo: end, transfer: number)) }
    }

    package func recordDeliveredEnds() {
        let ends = received.withLock { received in
            defer { received = [] }
            return received
        }
        if ends.isEmpty { return }
        trouble.recordingErrors {
            // The store may not contain one of these photos, because the store was created again or restored from a backup.
            if try ends.contains(where: { try store.photo(submittedAs: $0.photo.submission) == nil }) {
                try PhotoReconciliation(store: store).adoptAll()
            }
            let photos = try store.endPhotos(ends.map(\.photo), isInBatch: { !reportsEnds && $0.tells })
            let recorded = zip(ends, photos).compactMap { end, photo in
                photo.map { EndedPhoto(photo: $0, transfer: end.transfer) }
            }
            ended.withLock { $0 += recorded.map(\.photo) }
            photosEnded(recorded)
        }
    }

    /// `true` if ended uploads are reported to the user without a notification.
    var reportsEnds: Bool { false }

    /// Reports the results of uploads after the store has recorded the results.
    func photosEnded(_ photos: [EndedPhoto]) {
        if !photos.isEmpty, phase.withLock({ $0 }) == .reporting { reportBatch() }
    }

    private static func state(_ error: (any Error)?) -> PhotoRecord.State {
        guard let error else { return .completed }
        return (error as? URLError)?.code == .cancelled ? .cancelled : .failed
    }

    /// Shows one notification about all photos of the batch that were not reported in another way.
    func show() async throws {
        phase.withLock { $0 = .reporting }
        if let summary = Self.summary(of: ended.withLock { $0 }) { BGTaskScheduler.shared.describeCurrentLaunch(summary) }
        try await report(store)
        try trouble.check()
    }

    /// Returns a text for the history about the ended uploads. `nil` if no upload ended.
    ///
    /// An example is "66 photos uploaded to home; two.jpg not uploaded: The server refused the file (403)."
    package static func summary(of photos: [PhotoRecord]) -> String? {
        let uploaded = Dictionary(grouping: photos.filter { $0.state == .completed && $0.owner == nil }) { photo in
            photo.destination.map { PhotoDestination.parts($0).name } ?? ""
        }
        var parts = uploaded.sorted { $0.key < $1.key }.map { name, photos in
            "\(PhotoRecord.count(photos.count)) uploaded" + (name.isEmpty ? "" : " to \(name)")
        }
        let failed = photos.filter { $0.state == .failed }
        parts += failed.prefix(3).map { "\($0.fileName) not uploaded" + ($0.message.map { ": \($0)" } ?? "") }
        if failed.count > 3 { parts.append("\(failed.count - 3) more not uploaded") }
        let cancelled = photos.count { $0.state == .cancelled }
        if cancelled > 0 { parts.append("\(PhotoRecord.count(cancelled)) cancelled") }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// Blocks until the notification is accepted. Until then, the process must not exit, and the result of the upload counts as
    /// not reported.
    fileprivate func reportBatch() {
        let isTold = DispatchSemaphore(value: 0)
        Task.detached { [self] in
            do { try await report(store) } catch { trouble.record(error) }
            isTold.signal()
        }
        isTold.wait()
    }
}

/// Receives the results of uploads for a command that waits in a terminal and prints each result. If the terminal was closed, a
/// notification shows the result instead.
package final class FollowedPhotos: PhotoDelivery, @unchecked Sendable {  // because all added properties are constants
    private let notifies: Bool
    /// The transfers whose results a notification reports.
    private let notifiedTransfers = Mutex<Set<Int64>>([])
    private let onEnd: @Sendable (PhotoRecord, Int64) -> Bool

    /// - Parameters:
    ///   - notifies: `true` if notifications can be shown.
    ///   - onEnd: A closure that receives each ended photo and the number of its transfer, before the result is recorded as
    ///     reported. The closure returns `false` if the result could not be printed.
    package init(_ store: StormyStore, notifies: Bool, onEnd: @escaping @Sendable (PhotoRecord, Int64) -> Bool) {
        (self.notifies, self.onEnd) = (notifies, onEnd)
        super.init(store)
    }

    override var reportsEnds: Bool { true }

    override func photosEnded(_ photos: [EndedPhoto]) {
        let unprinted = photos.filter { !onEnd($0.photo, $0.transfer) }
        guard notifies, !unprinted.isEmpty else { return }
        // All photos are added before the notification is shown. If the notification were shown earlier, the batch could end
        // after the first photo.
        trouble.recordingErrors { for end in unprinted { try store.addToPhotoBatch(end.photo) } }
        notifiedTransfers.withLock { $0.formUnion(unprinted.map(\.transfer)) }
        reportBatch()
    }

    /// Shows completed transfers in a notification, because the terminal could not print them.
    package func show(completed transfers: [Int64]) async throws {
        guard notifies else { return }
        let told = notifiedTransfers.withLock { $0 }
        let untold = try BackgroundTransfers.statuses(of: transfers.filter { !told.contains($0) })
        for submission in untold.compactMap(\.submission) {
            guard let photo = try store.photo(submittedAs: submission), photo.state == .completed else { continue }
            try store.addToPhotoBatch(photo)
        }
        try await PhotoBatch.showProgress(store)
    }

    /// Records the last results after the terminal has printed the results of the uploads.
    ///
    /// - Throws: The first error that occurred while a result was recorded.
    package func finish() async throws {
        try trouble.check()
        // The progress is shown now, because the batch with other photos may have waited until the terminal printed these photos.
        try await PhotoBatch.showProgress(store)
    }
}
