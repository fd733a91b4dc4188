import BackgroundTasks
import BackgroundTransfer
import Foundation
import ProcessSupport
import TransferMachines
import UserNotifications

/// Matches photos with their transfers after the ledger or Stormy's store was moved, lost, or restored from a backup.
package struct PhotoReconciliation {
    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) { (self.store, self.settings) = (store, settings) }

    /// The result of a reconciliation.
    package struct Outcome: Equatable, Sendable {
        /// The number of photos that were queued again, because the ledger did not contain their transfers.
        package var queuedAgain = 0
        /// The number of photos that were in the ledger but not in the store. The uploads of these photos continue.
        package var adopted = 0
        /// Sentences about failed uploads whose failure was not recorded in the store.
        package var failed: [String] = []
        /// The number of photos that wait until their destination is configured. The keys are the names of the destinations. The
        /// photos are not sent to another destination, because other people could see the photos there.
        package var waiting: [String: Int] = [:]
        /// The paths of photos that cannot be read now, for example because their drive is not connected.
        package var away: [String] = []
        /// The paths of lost photos. The user's file and the agent's copy do not exist any more.
        package var lost: [String] = []
        /// The paths of photos that were replaced by another file.
        package var replaced: [String] = []
        package var isNothing: Bool { self == Outcome() }

        package init() {}

        /// Sentences for the user.
        package var sentences: [String] {
            var sentences: [String] = []
            if queuedAgain > 0 {
                sentences.append(
                    "\(PhotoRecord.count(queuedAgain)) queued again, because the agent's database had no transfer for \(them(queuedAgain))"
                )
            }
            if adopted > 0 {
                sentences.append("\(PhotoRecord.count(adopted)) found in the agent's database. The upload is not complete yet")
            }
            for (name, number) in waiting.sorted(by: { $0.key < $1.key }) {
                sentences.append(
                    "\(PhotoRecord.count(number)) for \(name) not sent yet, because the destination was changed or removed, "
                        + "or the password of the destination cannot be read"
                )
            }
            sentences += failed
            for path in away {
                sentences.append(
                    "\(path): not sent yet, because the file cannot be read now. Connect the drive that contains the file")
            }
            for path in replaced {
                sentences.append(
                    "\(path): not sent, because another file has this path now. To upload the new file, run stormy upload again")
            }
            for path in lost {
                sentences.append("\(path): not sent, because the file and its queued copy are missing")
            }
            return sentences
        }

        private func them(_ number: Int) -> String { number == 1 ? "this photo" : "these photos" }
    }

    /// Reconciles photos and transfers. If no change is necessary, this method reads only two rows of the ledger and the state of
    /// each queued photo.
    @discardableResult
    package func run() throws -> Outcome {
        var outcome = Outcome()
        if try store.queue.read(PhotoRecord.lackSubmissions) { try store.queue.write(PhotoRecord.identifyEarlier) }
        let queued = try store.queuedPhotos()
        let states = try PhotoUploads.states(of: queued)
        let ended = queued.filter { photo in photo.submission.flatMap { states[$0] }?.hasEnded == true }
        for photo in try end(ended, PhotoUploads.transfers(of: ended)) where photo.state == .failed {
            outcome.failed.append("\(photo.path ?? "a photo"): not sent: \(photo.message ?? "")")
        }
        try queueAgain(queued, states, &outcome)
        try adoptUnknown(&outcome)
        if !outcome.lost.isEmpty { notifyOfLostPhotos(outcome) }
        if !outcome.replaced.isEmpty {
            show(
                "photos-replaced", "Photos were not sent",
                outcome.replaced.prefix(3).joined(separator: "\n") + "\nAnother file has this path now.")
        }
        if !outcome.waiting.isEmpty { notifyOfWaitingPhotos(outcome) }
        return outcome
    }

    // MARK: Results that the store does not contain

    /// Stores the results of transfers whose results are in the ledger but not in this store. The store could not be written when
    /// these transfers ended, or was restored from a backup. After this call, the user can add the photos of failed uploads
    /// again.
    ///
    /// - Returns: the photos, each with the result of its upload.
    @discardableResult
    func end(_ queued: [PhotoRecord], _ transfers: [String: BackgroundTransferStatus]) throws -> [PhotoRecord] {
        let ended = queued.compactMap { photo in photo.submission.flatMap { transfers[$0] }.flatMap(photo.ended) }
        try store.change(ended, from: .queued)
        return ended
    }

    // MARK: Photos that the ledger does not contain

    /// Queues photos again with the same submission keys. The ledger does not contain the transfers of these photos. The ledger
    /// was lost or restored from a backup, or a process ended before it queued its photo.
    private func queueAgain(
        _ queued: [PhotoRecord], _ states: [String: BackgroundTransferStatus.State], _ outcome: inout Outcome
    ) throws {
        func unknown(_ states: [String: BackgroundTransferStatus.State]) -> [PhotoRecord] {
            queued.filter { photo in photo.submission.flatMap { states[$0] } == nil }
        }
        // If another process is queueing photos now, the photos are checked in the next run. Otherwise a photo could be reported
        // as lost too early.
        guard !unknown(states).isEmpty, let left = try? BackgroundTransfers.leftCopies() else { return }
        var copies: [String: BackgroundTransfers.LeftCopy] = [:]
        for copy in left { if let digest = try? copy.sha256() { copies[digest] = copy } }
        // By now, a process that was queueing one of the photos has queued the photo or has removed its record.
        let kept = Set(try store.queuedPhotos().map(\.id))
        for photo in unknown(try PhotoUploads.states(of: queued)) where kept.contains(photo.id) {
            switch try queueAgain(photo, photo.digest.flatMap { copies[$0] }) {
            case .queued: outcome.queuedAgain += 1
            case .lost: outcome.lost.append(photo.path ?? "a photo")
            case .replaced: outcome.replaced.append(photo.path ?? "a photo")
            case .isAway: outcome.away.append(photo.path ?? "a photo")
            case .waitsForDestination(let name): outcome.waiting[name, default: 0] += 1
            case .waits: break
            }
        }
    }

    private enum End {
        case queued
        /// The destination is not configured as before, or its password cannot be read.
        case waitsForDestination(String)
        /// The photo is not queued in this run. The next run tries again.
        case waits
        /// The file cannot be read now.
        case isAway
        case lost
        /// Another file is at the photo's path.
        case replaced
    }

    /// The number of seconds after which a photo is reported as lost if its file cannot be read.
    private static let patience = 30.0 * 86_400

    /// The state of the file at the path of a photo.
    private enum Original {
        case readable
        /// The file's drive may not be connected, or the system cannot read the file now.
        case away
        case gone

        private static func seconds(_ time: timespec) -> Double { Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }

        /// - Parameter named: The time when the user added the photo.
        init(_ path: String, named: Date) {
            if access(path, R_OK) == 0 {
                self = .readable
            } else if !FileFault(errno).isAbsence {
                self = .away
            } else {
                // If a drive is not mounted, its mount point does not exist or is empty. If the folder is empty and was changed
                // after the user added the photo, the photo was deleted.
                let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
                let others = try? FileManager.default.contentsOfDirectory(atPath: folder)
                let isUntouched =
                    PathStatus.at(folder).information.map { Self.seconds($0.st_mtim) < named.timeIntervalSince1970 } ?? true
                self = others?.isEmpty ?? true && isUntouched ? .away : .gone
            }
        }
    }

    private func queueAgain(_ photo: PhotoRecord, _ copy: BackgroundTransfers.LeftCopy?) throws -> End {
        guard let id = photo.id, let path = photo.path else { return .waits }
        let original = Original(path, named: photo.createdAt)
        if copy == nil, original != .readable {
            let isRecent = BGTaskScheduler.now.timeIntervalSince(photo.changedAt) < Self.patience
            if original == .away, isRecent { return .isAway }
            try change(photo, to: .failed, "the file and its queued copy are missing")
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
        var companions = PhotoCompanions(destination, order.location)
        let made = logged(path) {
            let file = companions.file(path, role: photo.role)
            return try copy.map { try uploads.prepare(copy: $0, of: file, order) } ?? uploads.prepare(file, order)
        }
        guard let prepared = made else { return .waits }
        if case .hold(let reason) = prepared.privacy {
            prepared.task.discardSnapshot()
            try change(photo, to: .held, reason)
            // The queued copy is removed only if the original can be read. If the original is unreadable, the queued copy may be
            // the only copy of the photo.
            if original == .readable { copy?.remove() }
            return .waits
        }
        // A file with another digest is not sent, because the user did not choose this file.
        if copy == nil, let digest = photo.digest, prepared.digest != digest {
            prepared.task.discardSnapshot()
            try change(photo, to: .failed, "another file has the path of the photo now")
            return .replaced
        }
        // The request for the processing task is submitted again, because it was lost together with the ledger.
        if order.isHeld { try HeldUploads.submit() }
        let queued = logged(path) { try uploads.queue([prepared], order) }
        guard case .success(let result)? = queued?.first else { return .waits }
        if result.photo != id { try store.removePhoto(id) }
        copy?.remove()
        return .queued
    }

    private func change(_ photo: PhotoRecord, to state: PhotoRecord.State, _ message: String) throws {
        var photo = photo
        (photo.state, photo.message) = (state, message)
        try store.change([photo], from: .queued)
    }

    /// Returns the destination that the user chose. Photos of old versions, which did not store the destination, have the default
    /// destination.
    private func destination(of photo: PhotoRecord) -> PhotoDestination? {
        guard let identity = photo.destination else { return settings.destination }
        return settings.destination(for: identity)
    }

    // MARK: Photos that this store does not contain

    /// Adds photos for transfers that are in the ledger but not in this store, so that these photos are not sent again.
    ///
    /// If the store already contains all these transfers, this method reads only two rows of the ledger and two rows of the
    /// store.
    private func adoptUnknown(_ outcome: inout Outcome) throws {
        let session = PhotoUploads.sessionIdentifier
        let newest = try BackgroundTransfers.newest(session: session).map { try BackgroundTransfers.statuses(of: [$0]) } ?? []
        guard
            try newest.contains(where: isUnknown)
                || BackgroundTransfers.newestUnfinished(session: session).map(isUnknown) ?? false
        else { return }
        outcome.adopted = try adoptAll().count { !$0.state.hasEnded }
    }

    /// - Returns: The transfers that were in the ledger but not in this store.
    @discardableResult
    func adoptAll() throws -> [BackgroundTransferStatus] {
        let unknown = try BackgroundTransfers.all().filter { try $0.session == PhotoUploads.sessionIdentifier && isUnknown($0) }
        try store.adoptPhotos(
            unknown.map { transfer in
                let photo = Self.photo(of: transfer, settings)
                return photo.ended(by: transfer) ?? photo
            })
        return unknown
    }

    private func isUnknown(_ transfer: BackgroundTransferStatus) throws -> Bool {
        try transfer.submission.map { try store.photo(submittedAs: $0) == nil } ?? false
    }

    /// Returns a photo for a transfer that is in the ledger but not in this store.
    static func photo(of transfer: BackgroundTransferStatus, _ settings: StormySettings = .current) -> PhotoRecord {
        // Two destinations may have the same address and different users. The transfer contains neither a password nor a
        // signature.
        let destination = settings.destinations.first { destination in
            destination.contains(transfer.url)
                && transfer.serverName.map { $0 == destination.name } ?? true
        }
        let now = BGTaskScheduler.now
        // The store lost the information whether the command had a desktop. The current value replaces this information.
        return PhotoRecord(
            state: .queued, path: transfer.file ?? "photo", submission: transfer.submission, digest: transfer.copySHA256,
            createdAt: now, changedAt: now, destination: destination?.identity, tells: ActionNotification.hasDesktop)
    }

    private func notifyOfWaitingPhotos(_ outcome: Outcome) {
        show("photos-wait", "Photos wait for their destination", outcome.waiting.keys.sorted().joined(separator: "\n"))
    }

    private func notifyOfLostPhotos(_ outcome: Outcome) {
        show(
            "photos-lost", outcome.lost.count == 1 ? "A photo is lost" : "\(outcome.lost.count) photos are lost",
            outcome.lost.prefix(3).joined(separator: "\n") + "\nThe file and its queued copy are missing.")
    }

    private func show(_ identifier: String, _ title: String, _ body: String) {
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        content.categoryIdentifier = PhotoUploads.category
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: identifier, content: content, trigger: nil, alertsOncePerContent: true))
    }
}

extension PhotoRecord {
    /// Returns the photo with the final state of its transfer. `nil` if the transfer has not ended.
    fileprivate func ended(by transfer: BackgroundTransferStatus) -> PhotoRecord? {
        var photo = self
        switch transfer.state {
        case .queued, .running, .waiting, .paused: return nil
        case .completed: photo.state = .completed
        case .failed: photo.state = .failed
        case .cancelled: photo.state = .cancelled
        }
        (photo.message, photo.remoteURL) = (transfer.trouble?.message, transfer.receipt?.url)
        return photo
    }
}
