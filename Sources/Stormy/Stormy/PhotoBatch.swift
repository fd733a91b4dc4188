import BackgroundTransfer
import Foundation
import GRDB
import UserNotifications

/// The photos that a user added without waiting for their uploads. A notification shows the progress of the batch. Later, a
/// notification with the result replaces the first notification.
package struct PhotoBatch: Codable, Equatable {
    var uploaded: [String] = []
    /// The identifiers of the photos whose uploads completed. Each identifier contains the photo's number, and the time when the
    /// user added or retried the photo. `nil` if an earlier version stored the batch.
    var uploadedGivings: [String]?
    var failures: [Failure] = []
    /// The address that the server reported for the photo that was uploaded last.
    var url: String?
    /// The identifier of the photo whose upload ended first. This identifier distinguishes batches with equal texts. The
    /// identifier also prevents a second notification about the same batch after a crash.
    var mark: String?

    struct Failure: Codable, Equatable {
        var name: String
        var reason: String
        /// The photo's number in the store. `nil` if an earlier version stored the failure.
        var photo: Int64?
    }

    /// The identifier of the notification. The notification of the next batch replaces a notification without failures. A
    /// notification with failures stays until the user removes it.
    var notification: String { failures.isEmpty ? Self.plainNotification : "\(Self.plainNotification)-\(mark ?? "")" }

    private static let plainNotification = "photos"

    /// Adds a photo whose upload ended. If the photo is uploaded a second time, only the last result counts.
    mutating func add(_ photo: PhotoRecord) {
        let giving = "\(photo.id ?? 0) \(photo.changedAt.timeIntervalSince1970)"
        if photo.id != nil, uploadedGivings?.contains(giving) == true { return }
        failures.removeAll { $0.photo != nil && $0.photo == photo.id }
        // Only photos are counted. A companion is reported if it fails.
        if photo.owner != nil, photo.state == .completed { return }
        if photo.state == .completed || photo.state == .failed {
            mark = mark ?? giving
        }
        let name = photo.fileName
        switch photo.state {
        case .completed:
            uploaded.append(name)
            uploadedGivings = (uploadedGivings ?? []) + [giving]
            url = photo.remoteURL ?? url
        case .failed: failures.append(Failure(name: name, reason: photo.message ?? "not uploaded", photo: photo.id))
        // The user cancelled the upload, so a notification is not needed.
        case .cancelled, .awaitingPhoto, .held, .queued, .lost: break
        }
    }

    /// The title and the body of the notification. `nil` if there is nothing to report.
    ///
    /// - Parameter left: the number of photos of the batch whose upload is not complete.
    func words(left: Int) -> (title: String, body: String)? {
        let count = uploaded.count + failures.count
        guard count > 0 else { return nil }
        if left > 0 { return ("Uploading photos", "\(count) of \(count + left)" + failureLine) }
        let title =
            switch (uploaded.count, failures.count) {
            case (1, 0): "Photo uploaded"
            case (0, 1): "Photo not uploaded"
            case (let done, 0): "\(done) photos uploaded"
            case (0, let failed): "\(failed) photos not uploaded"
            case (let done, let failed): "\(PhotoRecord.count(done)) uploaded, \(failed) not"
            }
        let names = uploaded.prefix(3).joined(separator: ", ") + (uploaded.count > 3 ? " and \(uploaded.count - 3) more" : "")
        // The link is the link of a single photo, or of the last photo of a batch.
        let link = url.map { "\n\($0)" } ?? ""
        return (title, names + (uploaded.isEmpty ? String(failureLine.dropFirst()) : failureLine + link))
    }

    private var failureLine: String {
        let others = failures.count > 1 ? " (and \(failures.count - 1) more)" : ""
        return failures.first.map { "\n\($0.name): \($0.reason)\(others)" } ?? ""
    }

    /// Returns a batch with the photos of this batch and the photos that ended later. One notification then reports all photos,
    /// because the notification of this batch was not shown yet.
    func joined(by later: PhotoBatch) -> PhotoBatch {
        var all = self
        all.uploaded += later.uploaded
        all.uploadedGivings = (uploadedGivings ?? []) + (later.uploadedGivings ?? [])
        // If a photo was retried, only the last result of the photo is used.
        let again = Set(later.failures.compactMap(\.photo) + (later.uploadedGivings ?? []).compactMap(Self.photo(ofGiving:)))
        all.failures = failures.filter { failure in failure.photo.map { !again.contains($0) } ?? true } + later.failures
        all.url = later.url ?? url
        all.mark = mark ?? later.mark
        return all
    }

    private static func photo(ofGiving giving: String) -> Int64? { giving.split(separator: " ").first.flatMap { Int64($0) } }

    /// Removes notifications about failed photos if the user has retried all photos of the notification.
    package static func withdrawFailureNotifications(_ store: StormyStore) async throws {
        let center = UNUserNotificationCenter.current()
        let requests = await center.deliveredNotifications().map(\.request) + center.pendingNotificationRequests()
        let photos = Dictionary(uniqueKeysWithValues: try store.photos().map { ($0.id, $0.state) })
        let over = requests.filter { request in
            guard request.identifier.hasPrefix(plainNotification + "-"),
                let failed = request.content.userInfo[failedPhotos] as? [Int], !failed.isEmpty
            else { return false }
            return failed.allSatisfy { id in photos[Int64(id)].map { $0 != .failed } ?? false }
        }.map(\.identifier)
        if over.isEmpty { return }
        // If the removed notification also reported uploaded photos and the user did not see the notification, the uploaded
        // photos are reported again without the failures.
        if let said = try store.closedPhotoBatch(), over.contains(said.notification), !said.uploaded.isEmpty,
            await center.pendingNotificationRequests().contains(where: { said.isReportedBy($0) })
        {
            try store.reopenPhotoBatch(said, isOpened: true) { $0.failures = [] }
        }
        center.removePendingNotificationRequests(withIdentifiers: over)
        center.removeDeliveredNotifications(withIdentifiers: over)
    }

    private static let failedPhotos = "failed"

    /// Shows the progress of the batch. The batch stays open until its last notification is accepted, so that another process can
    /// show the result after a crash.
    package static func showProgress(_ store: StormyStore) async throws {
        var isBatchClosed = false
        try await joinUnseen(store)
        repeat {
            // Paused photos do not count as remaining. The upload of a photo has not begun if the ledger does not contain the
            // photo.
            let queued = try store.queuedPhotos().filter(\.tells)
            let states = try PhotoUploads.states(of: queued)
            let (batch, left) = try store.photoBatch(
                without: Set(queued.compactMap(\.submission).filter { states[$0] == nil || states[$0] == .paused }))
            try await show(batch, left: left)
            isBatchClosed = try left > 0 || batch == PhotoBatch() || store.closePhotoBatch(batch)
        } while !isBatchClosed
    }

    /// Reopens the last batch if its notification is still waiting because of quiet hours or the notification server. If the
    /// batch were not reopened, the notification of the next batch would replace the unseen notification.
    private static func joinUnseen(_ store: StormyStore) async throws {
        guard let said = try store.closedPhotoBatch() else { return }
        let pending = await UNUserNotificationCenter.current().pendingNotificationRequests()
        if pending.contains(where: { said.isReportedBy($0) }) { try store.reopenPhotoBatch(said) }
    }

    private func isReportedBy(_ request: UNNotificationRequest) -> Bool {
        request.identifier == notification && request.content.userInfo["batch"] as? String == mark ?? ""
    }

    private static func show(_ batch: PhotoBatch, left: Int) async throws {
        guard let words = batch.words(left: left) else { return }
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (words.title, words.body)
        content.userInfo = ["batch": batch.mark ?? "", failedPhotos: batch.failures.compactMap(\.photo).map { Int($0) }]
        content.interruptionLevel = .passive
        content.categoryIdentifier = PhotoUploads.category
        let center = UNUserNotificationCenter.current()
        try await center.add(
            UNNotificationRequest(
                identifier: batch.notification, content: content, trigger: nil, alertsOncePerContent: true))
        // A batch with a failure has a separate notification, so the earlier notification with the progress is removed.
        if batch.notification != plainNotification, !batch.uploaded.isEmpty {
            center.removePendingNotificationRequests(withIdentifiers: [plainNotification])
            center.removeDeliveredNotifications(withIdentifiers: [plainNotification])
        }
    }
}

// MARK: In the store

extension PhotoBatch {
    /// The names of the settings that store the open batch and the batch that was reported last.
    fileprivate enum Setting: String {
        case open = "photoBatch"
        case said = "photoBatchSaid"
    }

    fileprivate init?(_ setting: Setting, in database: Database) throws {
        let text = try String.fetchOne(database, sql: "SELECT value FROM setting WHERE name = ?", arguments: [setting.rawValue])
        guard let text, let batch = try? JSONDecoder().decode(PhotoBatch.self, from: Data(text.utf8)) else { return nil }
        self = batch
    }

    fileprivate func save(as setting: Setting, in database: Database) throws {
        let value = String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
        try database.execute(
            sql: "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            arguments: [setting.rawValue, value])
    }

    fileprivate static func remove(_ setting: Setting, in database: Database) throws {
        try database.execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [setting.rawValue])
    }

    /// Adds a photo whose upload ended. The caller stores the result of the upload in the same transaction.
    static func add(_ photo: PhotoRecord, in database: Database) throws {
        var batch = try PhotoBatch(.open, in: database) ?? PhotoBatch()
        batch.add(photo)
        try batch.save(as: .open, in: database)
    }
}

extension StormyStore {
    /// Returns the photos of the batch whose uploads ended, and the number of photos whose uploads are not complete.
    ///
    /// - Parameter paused: The submission keys of paused photos, which do not count as remaining.
    func photoBatch(without paused: Set<String> = []) throws -> (batch: PhotoBatch, left: Int) {
        try queue.read { database in
            let coming = try String.fetchAll(
                database,
                sql:
                    "SELECT submission FROM photo WHERE state = 'queued' AND tells = 1 AND owner IS NULL AND submission IS NOT NULL"
            )
            return (try PhotoBatch(.open, in: database) ?? PhotoBatch(), coming.filter { !paused.contains($0) }.count)
        }
    }

    /// Adds a photo whose result is stored, but was not reported to the user yet.
    func addToPhotoBatch(_ photo: PhotoRecord) throws { try queue.write { try PhotoBatch.add(photo, in: $0) } }

    /// Closes a batch after its last notification was accepted. A new batch begins with the next photo.
    ///
    /// - Returns: `false` if the batch has changed since the notification.
    func closePhotoBatch(_ batch: PhotoBatch) throws -> Bool {
        try queue.write { database in
            guard try PhotoBatch(.open, in: database) ?? PhotoBatch() == batch else { return false }
            try PhotoBatch.remove(.open, in: database)
            try batch.save(as: .said, in: database)
            return true
        }
    }

    /// Returns the batch that was closed last.
    func closedPhotoBatch() throws -> PhotoBatch? { try queue.read { try PhotoBatch(.said, in: $0) } }

    /// Opens a reported batch again, and adds the photos whose uploads ended after the report.
    ///
    /// - Parameters:
    ///   - isOpened: `true` to open the batch even if no other upload ended.
    ///   - change: A closure that removes outdated parts of the batch.
    func reopenPhotoBatch(_ said: PhotoBatch, isOpened: Bool = false, _ change: (inout PhotoBatch) -> Void = { _ in }) throws {
        try queue.write { database in
            let open = try PhotoBatch(.open, in: database)
            guard open != nil || isOpened, try PhotoBatch(.said, in: database) == said else { return }
            var reopened = said
            change(&reopened)
            try reopened.joined(by: open ?? PhotoBatch()).save(as: .open, in: database)
            try PhotoBatch.remove(.said, in: database)
        }
    }
}
