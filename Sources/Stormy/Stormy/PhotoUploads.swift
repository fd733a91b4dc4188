import BackgroundTasks
import BackgroundTransfer
import Foundation
import ProcessSupport
import Synchronization
import TransferMachines
import UserNotifications

/// Uploads of photos. Each photo is copied when the upload is queued, and the agent sends the copy. After a photo was queued,
/// this process can end, and the user can change the original.
package struct PhotoUploads: Sendable {
    package static let sessionIdentifier = "StormyPhotos"
    /// The category of the notifications about completed and failed uploads.
    package static let category = "stormy.photos"

    package enum Result: Sendable, Equatable {
        /// - Parameters:
        ///   - removed: The names of the removed blocks: blocks that contained a location, and content credentials.
        ///   - note: information for the user.
        ///   - isContinued: `true` if the transfer failed before.
        case queued(photo: Int64, transfer: Int64, removed: [String] = [], note: String? = nil, isContinued: Bool = false)
        /// The photo was not queued, because it contains or may contain a location.
        case held(photo: Int64, reason: String)
        /// The same photo was uploaded or queued before.
        case known(photo: Int64, transfer: Int64?, url: String?)

        /// The number of the transfer. `nil` if the photo has no transfer.
        package var transfer: Int64? {
            switch self {
            case .queued(_, let transfer, _, _, _): transfer
            case .held: nil
            case .known(_, let transfer, _): transfer
            }
        }

        var photo: Int64 {
            switch self {
            case .queued(let photo, _, _, _, _), .held(let photo, _), .known(let photo, _, _): photo
            }
        }
    }

    let store: StormyStore
    private let cleaner = PhotoCleaner()
    private let ownFiles = OwnFiles()
    let sessions: PhotoSessions

    /// - Parameter onlyChecks: `true` if the tasks only check whether the server has the photos, and never send a photo.
    package init(store: StormyStore, onlyChecks: Bool = false) {
        (self.store, sessions) = (store, PhotoSessions(onlyChecks: onlyChecks))
    }

    /// The options that all photos of one call share.
    package struct BatchOptions: Sendable {
        package var destination: PhotoDestination
        package var location: LocationDecision
        /// The storm that the photo belongs to. `nil` to use the oldest waiting photo request.
        package var storm: Int64?
        /// `true` to show a notification when the upload ends. If ``follower`` reports the result, no notification is shown.
        package var tells: Bool
        /// `true` if the photos wait for ``HeldUploads``. The caller submits the request of ``HeldUploads``.
        package var isHeld: Bool
        /// `true` to also send photos that were sent before.
        package var isAgain: Bool
        /// Receives the results of the uploads while this process is running. If there is a follower, no notification is shown
        /// for these uploads.
        package var follower: FollowedPhotos?

        package init(
            to destination: PhotoDestination, location: LocationDecision, storm: Int64? = nil, tells: Bool = false,
            isHeld: Bool = false,
            isAgain: Bool = false, follower: FollowedPhotos? = nil
        ) {
            self.destination = destination
            self.location = location
            self.storm = storm
            self.tells = tells
            self.isHeld = isHeld
            self.isAgain = isAgain
            self.follower = follower
        }
    }

    /// A photo that was copied and cleaned, but is not queued yet.
    package struct Prepared: Sendable {
        let path: String
        let task: URLSessionUploadTask
        let digest: String
        /// The file that was copied. `nil` if the photo was prepared from an earlier copy.
        var original: PhotoOriginal?
        var privacy: PhotoPrivacy
        var role = PhotoFile.Role.photo
        /// The digest of the photo that the file belongs to. `nil` for a photo.
        var ownerDigest: String?
        var notes: [String] = []
        /// `true` if the file is a photo. Other files do not fulfil the photo request of a storm.
        let isPhoto: Bool

        var isSidecar: Bool { if case .sidecar = role { true } else { false } }

        func queued(as photo: Int64, _ transfer: Int64, _ remark: String?, isContinued: Bool = false) -> Result {
            guard case .send(let removed, let note) = privacy else {
                preconditionFailure("a photo that is held back cannot be queued")
            }
            let notes = [remark, note].compactMap { $0 } + self.notes
            return .queued(
                photo: photo, transfer: transfer, removed: removed, note: notes.isEmpty ? nil : notes.joined(separator: "; "),
                isContinued: isContinued)
        }
    }

    /// Queues a photo. The photo fulfils the photo request of the given storm, or the oldest photo request.
    ///
    /// When this method returns, the photo is stored on the disk. The method copies the file (with shared blocks if the file
    /// system supports this), computes its hash, and makes a few commits.
    /// - Throws: ``PhotoUploadError``, or an error of the snapshot if the file is unreadable, empty or changing.
    package func add(_ file: URL, _ order: BatchOptions) throws -> Result {
        var companions = PhotoCompanions(order.destination, order.location)
        let files = companions.groups(of: [PhotoFile(path: file.path, isKnownPhotoOnly: false)]).flatMap { $0 }
        let prepared = prepare(files, order)
        guard case .success = prepared[0] else {
            for companion in prepared.dropFirst() { try? companion.get().task.discardSnapshot() }
            return try queue([prepared[0].get()], order)[0].get()
        }
        let result = try queue(prepared.compactMap { try? $0.get() }, order)[0].get()
        // The photo is queued, and a file that belongs to it cannot be read.
        for companion in prepared.dropFirst() { _ = try companion.get() }
        return result
    }

    /// Copies a photo and removes the location from the copy. The agent sends exactly this checked copy.
    ///
    /// - Throws: ``PhotoUploadError/isOwnFile(path:)`` if the path leads to a file of the app, for example a password file,
    ///   directly or through links.
    /// - Parameters:
    ///   - name: The name on the server. `nil` for the name of the file.
    ///   - folder: The folder on the server. `nil` for the folder that the destination uses for the photo.
    package func prepare(
        _ photo: PhotoFile, named name: String? = nil, in folder: URL? = nil, _ order: BatchOptions
    ) throws -> Prepared {
        let (file, path) = (URL(exactPath: photo.path), photo.path)
        if let refusal = photo.refusal { throw PhotoUploadError.cannotRead(path: path, reason: refusal.reason) }
        try refuseOwnFile(path) { () throws(OwnFiles.Unknown) in try ownFiles.contain(path) }
        let destination = order.destination
        // A companion is stored in the folder of its photo.
        let date = PhotoDate.of(URL(exactPath: photo.role.owner ?? path), google: photo.google)
        let request = Self.request(to: destination, folder: folder ?? destination.folder(for: date))
        let task = sessions.session(for: destination).uploadTask(with: request, fromFile: file)
        task.startsSuspended = order.isHeld
        task.isRefusalRead = true
        task.delivery = UploadDelivery(destination.way, fileName: name ?? file.lastPathComponent)
        if photo.role == .photo { task.delivery.takenAt = date?.time }
        try attach(photo, to: task)
        task.delivery.onlyChecks = sessions.onlyChecks
        var (privacy, isPhoto) = (PhotoPrivacy.unchanged, false)
        var version: PhotoOriginal.Version?
        func snapshot(mayTryAgain: Bool) throws -> String {
            try task.takeSnapshot { copy in
                let format = try Self.format(of: copy, path)
                guard !photo.isKnownPhotoOnly || format != nil else { throw PhotoUploadError.isNoPhoto(path: path) }
                if case .sidecar = photo.role { try PhotoCompanions.checkSidecar(copy, of: path) }
                isPhoto = format != nil
                task.delivery.contentType = format.contentType
                privacy = try clean(copy, format, order, mayTryAgain: mayTryAgain)
                return privacy != .unchanged
            } checking: { descriptor in
                // The open file is checked again, because the path may have led to another file when it was checked first.
                try refuseOwnFile(path) { () throws(OwnFiles.Unknown) in try ownFiles.contain(descriptor: descriptor) }
                var information = stat()
                version = fstat(descriptor, &information) == 0 ? PhotoOriginal.Version(information) : nil
            }.sha256
        }
        let digest: String
        do {
            digest = try snapshot(mayTryAgain: true)
        } catch is CleanerInterrupted {
            // The copy may be cleaned in part, so the second attempt uses a new copy.
            digest = try snapshot(mayTryAgain: false)
        }
        if case .sidecar = photo.role, case .send = privacy { privacy = .unchanged }
        var prepared = Prepared(path: file.path, task: task, digest: digest, privacy: privacy, isPhoto: isPhoto)
        (prepared.role, prepared.notes) = (photo.role, photo.notes)
        if let version {
            prepared.original = PhotoOriginal(path: file.path, version: version, sha256: try task.originalSHA256())
        }
        return prepared
    }

    /// The error if the cleaner, which is a separate program, was killed or did not respond in time.
    private struct CleanerInterrupted: Error {}

    /// Prepares a copy that was made and cleaned before. The original file may not exist any more.
    func prepare(copy: BackgroundTransfers.LeftCopy, of photo: PhotoFile, _ order: BatchOptions) throws -> Prepared {
        let path = photo.path
        // The copy of a photo contains its Exif data. The original may not exist any more.
        let owner = photo.role.owner ?? path
        let date =
            (photo.role == .photo ? PhotoDate.inExif(copy.file) : nil)
            ?? PhotoDate.of(access(owner, R_OK) == 0 ? URL(exactPath: owner) : copy.file, google: photo.google)
        let request = Self.request(to: order.destination, folder: order.destination.folder(for: date))
        let task = sessions.session(for: order.destination).uploadTask(with: request, fromFile: copy.file)
        task.startsSuspended = order.isHeld
        task.isRefusalRead = true
        task.listedPath = path
        let original = URL(fileURLWithPath: path)
        task.delivery = UploadDelivery(
            order.destination.way, fileName: original.lastPathComponent, contentType: PhotoFormat.contentType(of: copy.file))
        // The copy was made later than the photo.
        task.delivery.takenAt = date.flatMap { $0.source == .file ? nil : $0.time }
        var (privacy, isPhoto) = (PhotoPrivacy.unchanged, false)
        // The copy is cleaned again. The copy may have been queued with its location, and the setting of the destination may have
        // changed since then.
        let snapshot = try task.takeSnapshot { copy in
            let format = try Self.format(of: copy, path)
            isPhoto = format != nil
            privacy = try clean(copy, format, order, mayTryAgain: false)
            return privacy != .unchanged
        }
        try attach(photo, to: task)
        var prepared = Prepared(path: path, task: task, digest: snapshot.sha256, privacy: privacy, isPhoto: isPhoto)
        prepared.role = photo.role
        return prepared
    }

    /// Adds the XMP file that is sent in the form of the photo.
    private func attach(_ photo: PhotoFile, to task: URLSessionUploadTask) throws {
        guard let sidecar = photo.sidecar else { return }
        try refuseOwnFile(sidecar) { () throws(OwnFiles.Unknown) in try ownFiles.contain(sidecar) }
        task.delivery.company = UploadCompany(sidecar: try PhotoCompanions.attachment(sidecar))
    }

    /// Throws an error if a file belongs to the app.
    private func refuseOwnFile(_ path: String, _ isOwn: () throws(OwnFiles.Unknown) -> Bool) throws {
        let isOurs: Bool
        do throws(OwnFiles.Unknown) { isOurs = try isOwn() } catch {
            throw PhotoUploadError.cannotRead(path: path, reason: error.reason)
        }
        if isOurs { throw PhotoUploadError.isOwnFile(path: path) }
    }

    /// Prepares several photos in parallel, because copying waits for the disk, and cleaning waits for another program.
    ///
    /// - Returns: the results in the order of the files.
    package func prepare(_ files: [PhotoFile], _ order: BatchOptions) -> [Swift.Result<Prepared, any Error>] {
        var results = files.mapInParallel { file in Swift.Result { try prepare(file, order) } }
        PhotoGroups.join(&results, files)
        return results
    }

    /// Queues photos in a few commits, because each commit takes more time than the other work.
    ///
    /// - Returns: the results in the order of the photos.
    package func queue(_ given: [Prepared], _ order: BatchOptions) throws -> [Swift.Result<Result, any Error>] {
        let photos = try PhotoGroups.withOwners(given, order.destination, store)
        try store.renameDestination(to: order.destination)
        try recordOriginals(of: photos)
        let beginnings = try begin(photos, order)
        var submitted: [(index: Int, begun: StormyStore.BegunPhoto, note: String?)] = []
        var results: [Int: Swift.Result<Result, any Error>] = [:]
        for (index, beginning) in beginnings {
            switch beginning {
            case .done(let result): results[index] = result
            case .submit(let begun, let note):
                // The user may have added the same photo twice in one call.
                if submitted.contains(where: { $0.begun.photo.id == begun.photo.id }) {
                    results[index] = .success(.known(photo: begun.photo.id!, transfer: nil, url: nil))
                    break
                }
                let task = photos[index].task
                task.storedSubmissionKey = begun.photo.submission
                task.delegate = order.follower
                submitted.append((index, begun, note))
                continue
            }
            photos[index].task.discardSnapshot()
        }
        let keys = submitted.compactMap { entry in entry.begun.photo.submission.map { (photos[entry.index].path, $0) } }
        try PhotoGroups.connect(photos, Dictionary(keys) { one, _ in one }, order.destination, store)
        sessions.session(for: order.destination).resume(submitted.map { photos[$0.index].task })
        for (index, begun, note) in submitted { results[index] = try outcome(of: photos[index], begun, note) }
        return photos.indices.map { results[$0]! }
    }

    /// Records the files of photos, so that an audit does not read the files again.
    func recordOriginals(of photos: [Prepared]) throws {
        try store.record(
            photos.compactMap(\.original),
            copies: photos.compactMap { photo in photo.original.map { ($0.sha256, photo.digest) } },
            now: BGTaskScheduler.now)
    }

    private enum Beginning {
        case done(Swift.Result<Result, any Error>)
        case submit(StormyStore.BegunPhoto, note: String?)
    }

    /// Stores the records before the uploads begin, because an upload may end before this process can write to the store again.
    ///
    /// - Returns: The result for each photo, in the order of the photos.
    private func begin(_ photos: [Prepared], _ order: BatchOptions) throws -> [(index: Int, Beginning)] {
        var beginnings: [Int: Beginning] = [:]
        for (index, photo) in photos.enumerated() {
            if case .hold(let reason) = photo.privacy { beginnings[index] = .done(.success(try hold(photo, reason, order))) }
        }
        while beginnings.count < photos.count {
            let left = photos.indices.filter { beginnings[$0] == nil }
            let continued = try continueFailed(left.map { photos[$0] }, order)
            let records = try store.beginPhotos(left.map { newPhoto(photos[$0], order) })
            let known = records.compactMap { $0?.isKnown == true ? $0?.photo : nil }
            let transfers = try Self.transfers(of: known)
            // The ledger may contain the result of an upload that the store does not contain yet. A photo that was not uploaded
            // is queued again. Another command may be retrying the photo now: that command changes the store first, and the
            // ledger later.
            try PhotoReconciliation(store: store).end(known.filter { $0.state == .queued }, transfers)
            for (index, begun) in zip(left, records) {
                guard let begun else {
                    beginnings[index] = .done(.failure(PhotoUploadError.addressIsTaken(path: photos[index].path)))
                    continue
                }
                let transfer = begun.photo.submission.flatMap { transfers[$0] }
                beginnings[index] = try beginning(of: photos[index], begun, transfer, continued)
            }
        }
        return photos.indices.map { ($0, beginnings[$0]!) }
    }

    /// - Parameter transfer: The transfer of a photo that was added before. `nil` if the ledger does not contain this transfer.
    /// - Returns: `nil` if the transfer has ended, so that the photo must be queued again.
    private func beginning(
        of prepared: Prepared, _ begun: StormyStore.BegunPhoto, _ transfer: BackgroundTransferStatus?, _ continued: Set<String>
    ) throws -> Beginning? {
        let photo = begun.photo
        let known = Beginning.done(.success(.known(photo: photo.id!, transfer: transfer?.id, url: photo.remoteURL)))
        if photo.state == .completed { return known }
        // Another process may be about to begin the transfer. The two processes use the same submission key, so the agent creates
        // only one transfer.
        guard begun.isKnown, let transfer else { return .submit(begun, note: nil) }
        if transfer.state.hasEnded { return nil }
        if photo.submission.map(continued.contains) == true {
            let note = "the failed upload of the photo continues"
            return .done(.success(prepared.queued(as: photo.id!, transfer.id, note, isContinued: true)))
        }
        let lacksCopy = try BackgroundTransfers.lacksCopy(transfer.id)
        return lacksCopy ? .submit(begun, note: "the queued copy was missing; a new copy replaces the missing copy") : known
    }

    private func hold(_ photo: Prepared, _ reason: String, _ order: BatchOptions) throws -> Result {
        let begun = try store.beginPhoto(newPhoto(photo, order), as: .held, message: reason)
        let record = begun.photo
        guard begun.isKnown, !order.isAgain else { return .held(photo: record.id!, reason: reason) }
        // An earlier command queued the file with its location. This command must not continue that upload.
        if record.state == .queued {
            let transfer = try Self.transfers(of: [record]).values.first.map { "stormy transfers cancel \($0.id)" }
            let advice = transfer.map { ". To cancel that upload: \($0)" } ?? ""
            return .held(photo: record.id!, reason: "\(reason); an earlier upload of this file keeps the location\(advice)")
        }
        return .known(photo: record.id!, transfer: try Self.transfers(of: [record]).values.first?.id, url: record.remoteURL)
    }

    func newPhoto(_ photo: Prepared, _ order: BatchOptions) -> StormyStore.NewPhoto {
        StormyStore.NewPhoto(
            path: photo.path, digest: photo.digest, storm: order.storm, destination: order.destination.identity,
            tells: order.tells, isForLater: order.isHeld, isPhoto: photo.isPhoto, keepsLocation: order.location.option,
            isForOneFile: order.destination.isForOneFile, isAgain: order.isAgain,
            owner: photo.role.owner.map { PathName.absolute($0) }, ownerDigest: photo.ownerDigest, isSidecar: photo.isSidecar)
    }

    private func outcome(
        of prepared: Prepared, _ begun: StormyStore.BegunPhoto, _ note: String?
    ) throws -> Swift.Result<Result, any Error> {
        // A transfer that has a number is already in the ledger. The transfer may already have failed. Such a failure is reported
        // later, like all results of uploads.
        guard let number = prepared.task.transferNumber else {
            try store.revert(begun)
            let reason = prepared.task.error?.localizedDescription ?? "not queued"
            return .failure(PhotoUploadError.cannotRead(path: prepared.path, reason: reason))
        }
        return .success(prepared.queued(as: begun.photo.id!, number, note))
    }

    private func clean(_ copy: URL, _ format: PhotoFormat?, _ order: BatchOptions, mayTryAgain: Bool) throws -> PhotoPrivacy {
        guard !order.location.keeps else { return .unchanged }
        let verdict = try cleaner.clean(copy)
        if mayTryAgain, verdict == .interrupted { throw CleanerInterrupted() }
        let isProved = if case .clean = verdict { true } else { false }
        return PhotoPrivacy(format: format, verdict: verdict, looksLocated: isProved ? false : try Self.containsLocation(copy))
    }

    private static func containsLocation(_ file: URL) throws -> Bool {
        let photo = try MappedFile(file)
        return withExtendedLifetime(photo) { PhotoLocation.isPresent(in: photo.data, leave: photo.release) }
    }
}
