import BackgroundTransfer
import Foundation
import GRDB
import UserNotifications

/// Photos given without waiting for them, as a person sees them on the desktop: one notification that counts, and is replaced
/// by one that says how it ended.
package struct PhotoBatch: Codable, Equatable {
    var uploaded: [String] = []
    /// The giving of each; `nil`: written down by an earlier version.
    var uploadedGivings: [String]?
    var failures: [Failure] = []
    /// Where the last one is, as far as the server says.
    var url: String?
    /// The giving of the photo that ended first. Another batch that ends in the same words is told, too; this one is told once, whatever
    /// dies in between.
    var mark: String?

    struct Failure: Codable, Equatable {
        var name: String
        var reason: String
        /// Of the store's; `nil`: written down by an earlier version.
        var photo: Int64?
    }

    /// Replaced by the next batch, but where something of it failed: that stays until the person takes it away.
    var notification: String { failures.isEmpty ? Self.plainNotification : "\(Self.plainNotification)-\(mark ?? "")" }

    private static let plainNotification = "photos"

    /// Once for each photo, however often its end is told: what it says last counts.
    mutating func note(_ photo: PhotoRecord) {
        let giving = "\(photo.id ?? 0) \(photo.changedAt.timeIntervalSince1970)"
        if photo.id != nil, uploadedGivings?.contains(giving) == true { return }
        failures.removeAll { $0.photo != nil && $0.photo == photo.id }
        if photo.state == .completed || photo.state == .failed {
            mark = mark ?? giving
        }
        let name = photo.path.map { URL(fileURLWithPath: $0).lastPathComponent } ?? "a photo"
        switch photo.state {
        case .completed:
            uploaded.append(name)
            uploadedGivings = (uploadedGivings ?? []) + [giving]
            url = photo.remoteURL ?? url
        case .failed: failures.append(Failure(name: name, reason: photo.message ?? "not uploaded", photo: photo.id))
        // The person ended it, and knows.
        case .cancelled, .awaitingPhoto, .held, .queued, .lost: break
        }
    }

    /// What there is to say; `nil`: nothing.
    ///
    /// - Parameter left: photos of the batch that are still on their way.
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
            case (let done, let failed): "\(done) photo\(done == 1 ? "" : "s") uploaded, \(failed) not"
            }
        let names = uploaded.prefix(3).joined(separator: ", ") + (uploaded.count > 3 ? " and \(uploaded.count - 3) more" : "")
        // One photo has one address; of many the last says where they are.
        let link = url.map { "\n\($0)" } ?? ""
        return (title, names + (uploaded.isEmpty ? String(failureLine.dropFirst()) : failureLine + link))
    }

    private var failureLine: String {
        let others = failures.count > 1 ? " (and \(failures.count - 1) more)" : ""
        return failures.first.map { "\n\($0.name): \($0.reason)\(others)" } ?? ""
    }

    /// One that was said and that nobody has seen yet, and what ended since: one notification for both.
    func joined(by later: PhotoBatch) -> PhotoBatch {
        var all = self
        all.uploaded += later.uploaded
        all.uploadedGivings = (uploadedGivings ?? []) + (later.uploadedGivings ?? [])
        // A photo that was tried again ends with the later words.
        let again = Set(later.failures.compactMap(\.photo) + (later.uploadedGivings ?? []).compactMap(Self.photo(ofGiving:)))
        all.failures = failures.filter { failure in failure.photo.map { !again.contains($0) } ?? true } + later.failures
        all.url = later.url ?? url
        all.mark = mark ?? later.mark
        return all
    }

    private static func photo(ofGiving giving: String) -> Int64? { giving.split(separator: " ").first.flatMap { Int64($0) } }

    /// Takes off the screen what says that photos failed, once none of them has: a person had them tried again.
    package static func takeBackFailures(_ store: StormyStore) async throws {
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
        // What arrived with them, and nobody has seen, is told with how they end now.
        if let said = try store.saidPhotoBatch(), over.contains(said.notification), !said.uploaded.isEmpty,
            await center.pendingNotificationRequests().contains(where: { said.isToldBy($0) })
        {
            try store.reopenPhotoBatch(said, isOpened: true) { $0.failures = [] }
        }
        center.removePendingNotificationRequests(withIdentifiers: over)
        center.removeDeliveredNotifications(withIdentifiers: over)
    }

    private static let failedPhotos = "failed"

    /// Says how far the batch is. It is open until what closes it was said: whoever dies in between leaves it to the next.
    package static func tell(_ store: StormyStore) async throws {
        var isSaid = false
        try await joinUnseen(store)
        repeat {
            // A person who paused some does not wait for them. A photo that the ledger does not know is not on its way yet.
            let queued = try store.queuedPhotos().filter(\.tells)
            let states = try PhotoUploads.states(of: queued)
            let (batch, left) = try store.photoBatch(
                without: Set(queued.compactMap(\.submission).filter { states[$0] == nil || states[$0] == .paused }))
            try await say(batch, left: left)
            isSaid = try left > 0 || batch == PhotoBatch() || store.closePhotoBatch(batch)
        } while !isSaid
    }

    /// Quiet hours, or a server that does not take it, hold the last notification back: the next batch would take its place.
    private static func joinUnseen(_ store: StormyStore) async throws {
        guard let said = try store.saidPhotoBatch() else { return }
        let pending = await UNUserNotificationCenter.current().pendingNotificationRequests()
        if pending.contains(where: { said.isToldBy($0) }) { try store.reopenPhotoBatch(said) }
    }

    private func isToldBy(_ request: UNNotificationRequest) -> Bool {
        request.identifier == notification && request.content.userInfo["batch"] as? String == mark ?? ""
    }

    private static func say(_ batch: PhotoBatch, left: Int) async throws {
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
        // How far it was when all went well.
        if batch.notification != plainNotification, !batch.uploaded.isEmpty {
            center.removePendingNotificationRequests(withIdentifiers: [plainNotification])
            center.removeDeliveredNotifications(withIdentifiers: [plainNotification])
        }
    }
}

// MARK: In the store

extension PhotoBatch {
    /// What is open, and what was said last.
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

    /// Adds a photo that ended, in the transaction that notes its end.
    static func add(_ photo: PhotoRecord, in database: Database) throws {
        var batch = try PhotoBatch(.open, in: database) ?? PhotoBatch()
        batch.note(photo)
        try batch.save(as: .open, in: database)
    }
}

extension StormyStore {
    /// What ended of the batch, and how many photos are still on their way.
    ///
    /// - Parameter paused: The submission keys of photos that are not on their way.
    func photoBatch(without paused: Set<String> = []) throws -> (batch: PhotoBatch, left: Int) {
        try queue.read { database in
            let coming = try String.fetchAll(
                database, sql: "SELECT submission FROM photo WHERE state = 'queued' AND tells = 1 AND submission IS NOT NULL")
            return (try PhotoBatch(.open, in: database) ?? PhotoBatch(), coming.filter { !paused.contains($0) }.count)
        }
    }

    /// An end that is noted, and that nobody could be told of so far.
    func addToPhotoBatch(_ photo: PhotoRecord) throws { try queue.write { try PhotoBatch.add(photo, in: $0) } }

    /// All of it is said: the next photo begins another.
    ///
    /// - Returns: `false`: it is another meanwhile.
    func closePhotoBatch(_ batch: PhotoBatch) throws -> Bool {
        try queue.write { database in
            guard try PhotoBatch(.open, in: database) ?? PhotoBatch() == batch else { return false }
            try PhotoBatch.remove(.open, in: database)
            try batch.save(as: .said, in: database)
            return true
        }
    }

    /// The batch that was closed last.
    func saidPhotoBatch() throws -> PhotoBatch? { try queue.read { try PhotoBatch(.said, in: $0) } }

    /// What ended since joins a batch that was said, where something did.
    ///
    /// - Parameters:
    ///   - isOpened: also where nothing did.
    ///   - change: what does not hold of it any more.
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
