import BackgroundTasks
import BackgroundTransfer
import Foundation
import UserNotifications

/// Photos and their transfers find each other again, whatever became of the ledger or of this store in between: moved away, lost, or
/// come back from a backup.
package struct PhotoReconciliation {
    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) { (self.store, self.settings) = (store, settings) }

    /// What was done about it.
    package struct Outcome: Equatable, Sendable {
        /// Queued again: the agent did not know them any more.
        package var queuedAgain = 0
        /// Whose upload goes on, and which this store did not know.
        package var adopted = 0
        /// What became of those whose end this store had not heard of.
        package var failed: [String] = []
        /// How many cannot be queued again before their destination is configured, by what it is called. Sent elsewhere they would
        /// be shown to others than the person chose.
        package var waiting: [String: Int] = [:]
        /// Paths of those of which nothing is left to send.
        package var lost: [String] = []
        package var isNothing: Bool { self == Outcome() }

        package init() {}

        /// For the person.
        package var sentences: [String] {
            var sentences: [String] = []
            if queuedAgain > 0 {
                sentences.append("\(count(queuedAgain)) queued again: the agent did not know of \(them(queuedAgain)) any more")
            }
            if adopted > 0 { sentences.append("\(count(adopted)) found again, on the way to the server") }
            for (name, number) in waiting.sorted(by: { $0.key < $1.key }) {
                sentences.append(
                    "\(count(number)) for \(name), which is not configured as then, or has a password that cannot be read")
            }
            sentences += failed
            for path in lost {
                sentences.append("\(path): not sent, and neither the file nor its queued copy is here any more")
            }
            return sentences
        }

        private func count(_ number: Int) -> String { "\(number) photo\(number == 1 ? "" : "s")" }
        private func them(_ number: Int) -> String { number == 1 ? "it" : "them" }
    }

    /// Cost, where nothing is wrong: two rows of the ledger, and a look at the state of each photo on its way.
    @discardableResult
    package func run() throws -> Outcome {
        var outcome = Outcome()
        let queued = try store.queuedPhotos()
        let settled = try settled(queued)
        let ended = try end(settled)
        for photo in ended where photo.state == .failed {
            outcome.failed.append("\(photo.path ?? "a photo"): not sent: \(photo.message ?? "")")
        }
        // A new ledger counts from one again, so the number of a photo may be that of another transfer. Two of many photos show that.
        let looksRight = try (queued.count <= 200 ? queued : [queued.last, queued.first].compactMap { $0 }).allSatisfy(isKnown)
        let endedIDs = Set(ended.compactMap(\.id))
        try queueAgain((looksRight ? settled : queued).filter { !endedIDs.contains($0.id!) }, &outcome)
        try adoptUnknown(&outcome)
        if !outcome.lost.isEmpty { tellOfLost(outcome) }
        if !outcome.waiting.isEmpty { tellOfWaiting(outcome) }
        return outcome
    }

    private func isKnown(_ photo: PhotoRecord) throws -> Bool {
        guard let number = photo.transfer else { return false }
        return try BackgroundTransfers.statuses(of: [number]).contains { isOf(photo, $0) }
    }

    /// Numbers begin again in a new ledger: what is carried counts, too.
    func isOf(_ photo: PhotoRecord, _ transfer: BackgroundTransferStatus) -> Bool {
        guard transfer.session == PhotoUploads.sessionIdentifier else { return false }
        // The same photo may have gone to another destination.
        if let name = transfer.serverName, settings.destinations.contains(where: { $0.name == name }), photo.goesTo(name) == false
        {
            return false
        }
        // One that was adopted has another photo's label; one that was cleaned has another digest than its file.
        return PhotoUploads.Label(parsing: transfer.taskDescription)?.photo == photo.id
            || photo.digest != nil && photo.digest == transfer.sourceSHA256
    }

    // MARK: What the ledger knows better

    /// Photos whose transfer has ended without this store hearing of it, as it was not to be written then, or comes from a backup: they
    /// may be given again.
    ///
    /// - Returns: the photos, with their ends.
    private func end(_ settled: [PhotoRecord]) throws -> [PhotoRecord] {
        let transfers = try BackgroundTransfers.statuses(of: settled.compactMap(\.transfer)).filter(\.state.hasEnded)
        let ended = Dictionary(transfers.map { ($0.id, $0) }) { one, _ in one }
        let photos = settled.compactMap { photo -> PhotoRecord? in
            guard let transfer = photo.transfer.flatMap({ ended[$0] }), isOf(photo, transfer) else { return nil }
            var photo = photo
            photo.state =
                switch transfer.state {
                case .completed: .completed
                case .cancelled: .cancelled
                default: .failed
                }
            (photo.message, photo.remoteURL) = (transfer.trouble?.message, transfer.receipt?.url)
            return photo
        }
        try store.endPhotos(photos)
        return photos
    }

    /// Returns the photos whose transfers have ended, or are not in the ledger.
    private func settled(_ queued: [PhotoRecord]) throws -> [PhotoRecord] {
        let unfinished = try BackgroundTransfers.unfinished(among: queued.compactMap(\.transfer))
        return queued.filter { photo in photo.transfer.map { !unfinished.contains($0) } ?? false }
    }

    /// Photos that are given again, and are on their way for all that the store knows: asks the ledger for each of them.
    ///
    /// - Returns: the numbers of the photos that are not on their way. The store knows how they ended.
    func takeEnds(of known: [PhotoRecord]) throws -> Set<Int64> {
        guard !known.isEmpty else { return [] }
        let settled = try settled(known)
        let ended = Set(try end(settled).compactMap(\.id))
        for photo in settled where !ended.contains(photo.id!) {
            try store.photoIsUnknown(photo, message: "the agent did not know of it any more")
        }
        return Set(settled.compactMap(\.id))
    }

    // MARK: What the ledger does not know

    private func queueAgain(_ suspects: [PhotoRecord], _ outcome: inout Outcome) throws {
        let unknown = try suspects.filter { try !isKnown($0) }
        guard !unknown.isEmpty else { return }
        var copies: [String: BackgroundTransfers.LeftCopy] = [:]
        // Somebody is queuing photos just now: looked at again next time, as nothing may be called lost before.
        guard let left = try? BackgroundTransfers.leftCopies() else { return }
        for copy in left { if let digest = try? copy.sha256() { copies[digest] = copy } }
        for photo in unknown {
            switch try queueAgain(photo, photo.digest.flatMap { copies[$0] }) {
            case .queued: outcome.queuedAgain += 1
            case .lost: outcome.lost.append(photo.path ?? "a photo")
            case .waitsForDestination(let name): outcome.waiting[name, default: 0] += 1
            case .waits: break
            }
        }
    }

    private enum End {
        case queued
        /// For its destination to be configured as it was, or its password to be there again.
        case waitsForDestination(String)
        /// For the next time.
        case waits
        case lost
    }

    private func queueAgain(_ photo: PhotoRecord, _ copy: BackgroundTransfers.LeftCopy?) throws -> End {
        guard let id = photo.id, let path = photo.path else { return .waits }
        let hasOriginal = FileManager.default.isReadableFile(atPath: path)
        guard copy != nil || hasOriginal else {
            try store.photoIsUnknown(photo, message: "its queued copy is gone, and so is the file")
            return .lost
        }
        guard let destination = destination(of: photo) else {
            return .waitsForDestination(photo.destination.map { "\"\($0)\"" } ?? "a destination")
        }
        let order = PhotoUploads.BatchOptions(
            to: destination,
            location: LocationDecision(
                option: photo.keepsLocation, destination: destination, configuration: settings.keepsLocation),
            storm: photo.storm, tells: photo.tells, isHeld: photo.isForLater)
        let uploads = PhotoUploads(store: store)
        let made = logged(path) {
            try copy.map { try uploads.prepare(copy: $0, of: path, order) }
                ?? uploads.prepare(PhotoFile(path: path, isKnownPhotoOnly: false), order)
        }
        guard let prepared = made else { return .waits }
        // The request for that moment went with the ledger.
        if order.isHeld { try HeldUploads.submit() }
        try store.forgetTransfer(of: photo)
        let queued = logged(path) { try uploads.queue([prepared], order) }
        guard case .success(let result)? = queued?.first else {
            // Looked at again next time.
            try store.setTransfers([(id, photo.transfer ?? 0)])
            return .waits
        }
        // A file that was changed since is another photo.
        if case .queued(let other, _, _, _, _) = result, other != id { try store.removePhoto(id) }
        guard case .held = result else {
            copy?.remove()
            return .queued
        }
        // Nothing else has the photo if its file is gone.
        if hasOriginal { copy?.remove() }
        return .waits
    }

    /// Never another than the person chose; those of old versions, which did not write it down, have the default.
    private func destination(of photo: PhotoRecord) -> PhotoDestination? {
        guard let identity = photo.destination else { return settings.destination }
        return settings.destination(for: identity)
    }

    // MARK: What this store does not know

    private func adoptUnknown(_ outcome: inout Outcome) throws {
        try adoptArrived()
        guard let newest = try BackgroundTransfers.newestUnfinished(session: PhotoUploads.sessionIdentifier),
            try isUnknown(newest, by: store.photos())
        else { return }
        let photos = try store.photos()
        for transfer in try BackgroundTransfers.unfinished(session: PhotoUploads.sessionIdentifier)
        where isUnknown(transfer, by: photos) {
            try store.adoptPhoto(Self.photo(of: transfer, settings))
            outcome.adopted += 1
        }
    }

    /// What arrived while another store was here is not sent again when it is given again.
    ///
    /// Cost, where nothing is unknown: a row of each.
    private func adoptArrived() throws {
        guard let newest = try BackgroundTransfers.newest(session: PhotoUploads.sessionIdentifier),
            try newest > store.newestTransfer() ?? 0
        else { return }
        for transfer in try BackgroundTransfers.all()
        where transfer.session == PhotoUploads.sessionIdentifier && transfer.state == .completed && transfer.sourceSHA256 != nil {
            var photo = Self.photo(of: transfer, settings)
            // Sent elsewhere it is another matter. What this store knows may be more: that the server has lost it since, say.
            guard let destination = photo.destination, try !store.knowsPhoto(photo.digest, at: destination) else { continue }
            (photo.state, photo.remoteURL) = (.completed, transfer.receipt?.url)
            try store.adoptPhoto(photo)
        }
    }

    /// The photo of a transfer that the agent has and this store does not know.
    static func photo(of transfer: BackgroundTransferStatus, _ settings: StormySettings = .current) -> PhotoRecord {
        let address = transfer.url.map(PhotoDestination.withoutPassword)
        // Two destinations may have one address, and different users.
        let destination = settings.destinations.first { destination in
            PhotoDestination.withoutPassword(destination.url.absoluteString) == address
                && transfer.serverName.map { $0 == destination.name } ?? true
        }
        let now = BGTaskScheduler.now
        return PhotoRecord(
            id: nil, storm: nil, state: .queued, path: transfer.file ?? "photo", transfer: transfer.id, message: nil,
            digest: transfer.sourceSHA256, key: UUID().uuidString, createdAt: now, changedAt: now,
            destination: destination?.identity, remoteURL: nil)
    }

    private func isUnknown(_ transfer: BackgroundTransferStatus, by photos: [PhotoRecord]) -> Bool {
        guard let label = PhotoUploads.Label(parsing: transfer.taskDescription) else { return false }
        // Without a number yet: its process may be at it still.
        return !photos.contains { $0.transfer == transfer.id || $0.id == label.photo && $0.transfer == nil }
    }

    private func tellOfWaiting(_ outcome: Outcome) {
        tell("photos-wait", "Photos wait for their destination", outcome.waiting.keys.sorted().joined(separator: "\n"))
    }

    private func tellOfLost(_ outcome: Outcome) {
        tell(
            "photos-lost", outcome.lost.count == 1 ? "A photo is lost" : "\(outcome.lost.count) photos are lost",
            outcome.lost.prefix(3).joined(separator: "\n") + "\nNeither the file nor its queued copy is here any more.")
    }

    private func tell(_ identifier: String, _ title: String, _ body: String) {
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        content.categoryIdentifier = PhotoUploads.category
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: identifier, content: content, trigger: nil, alertsOncePerContent: true))
    }
}
