import BackgroundTransfer
import Foundation
import ProcessSupport
import Synchronization
import UserNotifications

/// Why a photo was not queued.
package enum PhotoUploadError: Error, CustomStringConvertible {
    case cannotRead(path: String, reason: String)
    case addressIsTaken(path: String)
    case isOwnFile(path: String)
    case isNoPhoto(path: String)

    package var description: String {
        switch self {
        case .cannotRead(let path, let reason): "\(path): \(reason)"
        case .addressIsTaken(let path): "\(path): a presigned address is for one file, and another photo went there"
        case .isOwnFile(let path): "\(path): one of Stormy's own files, which are never sent"
        case .isNoPhoto(let path): "\(path): no photo of a kind that is known"
        }
    }
}

/// A file that a person wants sent.
package struct PhotoFile: Sendable, Equatable {
    package let path: String
    /// Nobody named it: it was found in a folder or a list, and is sent only where it is a photo of a kind that is known.
    package let isKnownPhotoOnly: Bool

    package init(path: String, isKnownPhotoOnly: Bool) { (self.path, self.isKnownPhotoOnly) = (path, isKnownPhotoOnly) }
}

/// Photos out: each is copied when queued, then sent by the agent, whatever becomes of this process or the original.
package struct PhotoUploads: Sendable {
    package static let sessionIdentifier = "StormyPhotos"
    /// Of the notifications that say how they ended.
    package static let category = "stormy.photos"

    package enum Result: Sendable, Equatable {
        /// - Parameters:
        ///   - removed: The blocks that held a location, and the content credentials that were removed with it.
        ///   - note: something the person should know about it.
        ///   - isContinued: The transfer failed before.
        case queued(photo: Int64, transfer: Int64, removed: [String] = [], note: String? = nil, isContinued: Bool = false)
        /// Kept back: it says where it was taken, or may.
        case held(photo: Int64, reason: String)
        /// The same photo is there already, or on its way.
        case known(photo: Int64, transfer: Int64?, url: String?)
    }

    let store: StormyStore
    private let cleaner = PhotoCleaner()
    private let ownFiles = OwnFiles()
    /// One per destination: they differ in how fast they may send.
    private let sessions = Sessions()

    private final class Sessions: Sendable {
        let made = Mutex<[String: URLSession]>([:])
    }

    package init(store: StormyStore) { self.store = store }

    /// What all photos of one call have in common.
    package struct BatchOptions: Sendable {
        package var destination: PhotoDestination
        package var location: LocationDecision
        /// The storm whose photo it is; `nil`: the oldest job that waits is filled.
        package var storm: Int64?
        /// Raise a notification at the end, unless ``follower`` is there to hear of it.
        package var tells: Bool
        /// They wait for ``HeldUploads``, which the caller asks for.
        package var isHeld: Bool
        /// Sent also where they are already, for all that is known.
        package var isAgain: Bool
        /// Hears of their ends as long as this process lives: nobody else is told of them then.
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

    /// A photo that was copied and cleaned, and is not queued yet.
    package struct Prepared: Sendable {
        let path: String
        let task: URLSessionUploadTask
        let digest: String
        let privacy: PhotoPrivacy
        /// Only a photo fulfils the request of a storm.
        let isPhoto: Bool

        func queued(as photo: Int64, _ transfer: Int64, _ remark: String?, isContinued: Bool = false) -> Result {
            guard case .send(let removed, let note) = privacy else { preconditionFailure("held back, and sent") }
            let notes = [remark, note].compactMap { $0 }
            return .queued(
                photo: photo, transfer: transfer, removed: removed, note: notes.isEmpty ? nil : notes.joined(separator: "; "),
                isContinued: isContinued)
        }
    }

    /// Queues a photo and fills a waiting photo job (that of the storm, or the oldest).
    ///
    /// Durable when it returns. Cost: one copy of the file (shared blocks where the file system can), its hash, a few commits.
    /// - Throws: ``PhotoUploadError``, or what the snapshot says of an unreadable, empty or changing file.
    package func add(_ file: URL, _ order: BatchOptions) throws -> Result {
        try queue([try prepare(PhotoFile(path: file.path, isKnownPhotoOnly: false), order)], order)[0].get()
    }

    /// Copies a photo and takes its location out of the copy. What is looked at is what would be sent.
    ///
    /// - Throws: ``PhotoUploadError/isOwnFile(path:)`` for the app's password, say, whatever link leads to it.
    package func prepare(_ photo: PhotoFile, _ order: BatchOptions) throws -> Prepared {
        let (file, path) = (URL(exactPath: photo.path), photo.path)
        guard !ownFiles.contain(path) else { throw PhotoUploadError.isOwnFile(path: path) }
        let destination = order.destination
        let task = session(for: destination).uploadTask(with: Self.request(to: destination), fromFile: file)
        task.startsSuspended = order.isHeld
        task.isRefusalRead = true
        task.delivery = UploadDelivery(destination.way, fileName: file.lastPathComponent)
        var (privacy, isPhoto) = (PhotoPrivacy.unchanged, false)
        func snapshot(mayTryAgain: Bool) throws -> String {
            try task.takeSnapshot { copy in
                let format = try Self.format(of: copy, path)
                guard !photo.isKnownPhotoOnly || format != nil else { throw PhotoUploadError.isNoPhoto(path: path) }
                isPhoto = format != nil
                task.delivery.contentType = format.contentType
                privacy = try clean(copy, format, order, mayTryAgain: mayTryAgain)
                return privacy != .unchanged
            } checking: { descriptor in
                // The name may have led to another file a moment ago.
                guard !ownFiles.contain(descriptor: descriptor) else { throw PhotoUploadError.isOwnFile(path: path) }
            }.sha256
        }
        let digest: String
        do {
            digest = try snapshot(mayTryAgain: true)
        } catch is CleanerInterrupted {
            // The copy may be cleaned in part: the second attempt has a fresh copy.
            digest = try snapshot(mayTryAgain: false)
        }
        return Prepared(path: file.path, task: task, digest: digest, privacy: privacy, isPhoto: isPhoto)
    }

    /// The program that cleans photos was killed, or did not answer in time.
    private struct CleanerInterrupted: Error {}

    /// A copy that was made and cleaned before, of a file that may be gone.
    func prepare(copy: BackgroundTransfers.LeftCopy, of path: String, _ order: BatchOptions) throws -> Prepared {
        let task = session(for: order.destination).uploadTask(with: Self.request(to: order.destination), fromFile: copy.file)
        task.startsSuspended = order.isHeld
        task.isRefusalRead = true
        task.listedPath = path
        let original = URL(fileURLWithPath: path)
        task.delivery = UploadDelivery(
            order.destination.way, fileName: original.lastPathComponent, contentType: PhotoFormat.contentType(of: copy.file))
        var (privacy, isPhoto) = (PhotoPrivacy.unchanged, false)
        // The copy may have been queued to be sent with its location, and the destination has another rule now.
        let snapshot = try task.takeSnapshot { copy in
            let format = try Self.format(of: copy, path)
            isPhoto = format != nil
            privacy = try clean(copy, format, order, mayTryAgain: false)
            return privacy != .unchanged
        }
        return Prepared(path: path, task: task, digest: snapshot.sha256, privacy: privacy, isPhoto: isPhoto)
    }

    /// Prepares many side by side: copying waits for the disk, and cleaning for another program.
    ///
    /// - Returns: each, or why it cannot be queued, in their order.
    package func prepare(_ files: [PhotoFile], _ order: BatchOptions) -> [Swift.Result<Prepared, any Error>] {
        let results = Mutex<[Int: Swift.Result<Prepared, any Error>]>([:])
        let lanes = OperationQueue()
        lanes.maxConcurrentOperationCount = 2 * max(1, ProcessInfo.processInfo.activeProcessorCount)
        for (index, file) in files.enumerated() {
            lanes.addOperation {
                let result = Swift.Result { try prepare(file, order) }
                results.withLock { $0[index] = result }
            }
        }
        lanes.waitUntilAllOperationsAreFinished()
        return results.withLock { results in files.indices.map { results[$0]! } }
    }

    /// Queues many in a few commits: durable is what takes the time.
    ///
    /// - Returns: what became of each, in their order.
    package func queue(_ photos: [Prepared], _ order: BatchOptions) throws -> [Swift.Result<Result, any Error>] {
        var results: [Int: Swift.Result<Result, any Error>] = [:]
        var sendable: [Int] = []
        for (index, photo) in photos.enumerated() {
            guard case .hold(let reason) = photo.privacy else {
                sendable.append(index)
                continue
            }
            photo.task.discardSnapshot()
            let (record, before) = try store.beginPhoto(
                path: photo.path, digest: photo.digest, storm: order.storm, destination: order.destination.identity, as: .held,
                message: reason, isPhoto: photo.isPhoto)
            results[index] = .success(
                record.isKnown(before) && !order.isAgain
                    ? .known(photo: record.id!, transfer: record.transfer, url: record.remoteURL)
                    : .held(photo: record.id!, reason: reason))
        }
        try store.renameDestination(to: order.destination)
        var begun: [(index: Int, photo: PhotoRecord, before: PhotoRecord?, note: String?)] = []
        for (index, beginning) in zip(sendable, try begin(sendable.map { photos[$0] }, order)) {
            let (photo, before): StormyStore.Begun
            switch beginning {
            case .continued(let result):
                photos[index].task.discardSnapshot()
                results[index] = .success(result)
                continue
            case .record(nil):
                photos[index].task.discardSnapshot()
                results[index] = .failure(PhotoUploadError.addressIsTaken(path: photos[index].path))
                continue
            case .record(let record?): (photo, before) = record
            }
            let isKnown = photo.isKnown(before)
            let lacksCopy = try isKnown && photo.transfer.map(BackgroundTransfers.lacksCopy) ?? false
            guard !isKnown || lacksCopy, !begun.contains(where: { $0.photo.id == photo.id }) else {
                photos[index].task.discardSnapshot()
                results[index] = .success(.known(photo: photo.id!, transfer: photo.transfer, url: photo.remoteURL))
                continue
            }
            let task = photos[index].task
            task.submissionKey = photo.key.map { "\($0) \(order.destination.url.absoluteString)" }
            task.taskDescription = Label(photo: photo.id!, tells: order.tells).text
            task.delegate = order.follower
            begun.append((index, photo, before, lacksCopy ? "its queued copy was missing; this one replaces it" : nil))
        }
        session(for: order.destination).resume(begun.map { photos[$0.index].task })
        try store.setTransfers(begun.compactMap { entry in photos[entry.index].task.transferNumber.map { (entry.photo.id, $0) } })
        for (index, photo, before, note) in begun {
            results[index] = try outcome(of: photos[index], photo, before, note)
        }
        return photos.indices.map { results[$0]! }
    }

    private enum Beginning {
        case continued(Result)
        /// `nil` if the address is for one file, and another photo went there.
        case record(StormyStore.Begun?)
    }

    /// The records first: an upload may have ended before this process gets to write anything.
    private func begin(_ photos: [Prepared], _ order: BatchOptions) throws -> [Beginning] {
        var beginnings: [Int: Beginning] = [:]
        func begin(_ positions: [Int]) throws -> [PhotoRecord] {
            let continued = try continueFailed(positions.map { photos[$0] }, order)
            for (index, result) in continued { beginnings[positions[index]] = .continued(result) }
            let new = positions.indices.filter { continued[$0] == nil }.map { positions[$0] }
            let records = try store.beginPhotos(new.map { newPhoto(photos[$0], order) })
            for (position, record) in zip(new, records) { beginnings[position] = .record(record) }
            return records.compactMap { $0?.photo }
        }
        let records = try begin(Array(photos.indices))
        // The store may not have heard yet of the end of an upload. A photo that did not arrive is queued again. Or another command retries
        // it at this moment, and has changed the store, and not yet the ledger.
        let known = records.filter { $0.state == .queued && $0.transfer != nil }
        let ended = try PhotoReconciliation(store: store).takeEnds(of: known)
        let again = photos.indices.filter { position in
            if case .record(let record?)? = beginnings[position] { ended.contains(record.photo.id!) } else { false }
        }
        if !again.isEmpty { _ = try begin(again) }
        return photos.indices.map { beginnings[$0]! }
    }

    func newPhoto(_ photo: Prepared, _ order: BatchOptions) -> StormyStore.NewPhoto {
        StormyStore.NewPhoto(
            path: photo.path, digest: photo.digest, storm: order.storm, destination: order.destination.identity,
            tells: order.tells, isForLater: order.isHeld, isPhoto: photo.isPhoto, keepsLocation: order.location.option,
            isForOneFile: order.destination.isForOneFile, isAgain: order.isAgain)
    }

    private func outcome(
        of prepared: Prepared, _ photo: PhotoRecord, _ before: PhotoRecord?, _ copyNote: String?
    ) throws -> Swift.Result<Result, any Error> {
        // Queued it may have failed by now: that is told with its end, as of every other.
        guard let number = prepared.task.transferNumber else {
            try store.giveBack(photo, before: before)
            let reason = prepared.task.error?.localizedDescription ?? "not queued"
            return .failure(PhotoUploadError.cannotRead(path: prepared.path, reason: reason))
        }
        return .success(prepared.queued(as: photo.id!, number, copyNote))
    }

    static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: sessionIdentifier)
        // A photo is wanted for as long as it takes; a week without a byte is told, and can be tried again.
        configuration.timeoutIntervalForResource = 365 * 86_400
        return configuration
    }

    private func session(for destination: PhotoDestination) -> URLSession {
        sessions.made.withLock { made in
            if let session = made[destination.name] { return session }
            let configuration = Self.configuration()
            configuration.maximumBytesPerSecond = destination.bytesPerSecond
            let session = URLSession(configuration: configuration)
            made[destination.name] = session
            return session
        }
    }

    /// - Throws: ``PhotoUploadError/cannotRead(path:reason:)``.
    private static func format(of copy: URL, _ path: String) throws -> PhotoFormat? {
        switch PhotoFormat.look(at: copy) {
        case .photo(let format): return format
        case .other: return nil
        case .unreadable(let code):
            throw PhotoUploadError.cannotRead(path: path, reason: "its copy cannot be read: \(String(cString: strerror(code)))")
        }
    }

    private func clean(_ copy: URL, _ format: PhotoFormat?, _ order: BatchOptions, mayTryAgain: Bool) throws -> PhotoPrivacy {
        guard !order.location.keeps else { return .unchanged }
        let verdict = try cleaner.clean(copy)
        if mayTryAgain, verdict == .interrupted { throw CleanerInterrupted() }
        let isProved = if case .clean = verdict { true } else { false }
        return PhotoPrivacy(format: format, verdict: verdict, looksLocated: isProved ? false : try Self.saysWhere(copy))
    }

    /// By which a transfer finds its photo again, and whether the person hears of its end by notification.
    package struct Label {
        package let photo: Int64
        let tells: Bool

        var text: String { "photo-\(photo)" + (tells ? "-tell" : "") }

        init(photo: Int64, tells: Bool) {
            self.photo = photo
            self.tells = tells
        }

        package init?(parsing text: String?) {
            let parts = text?.split(separator: "-") ?? []
            guard parts.count >= 2, parts[0] == "photo", let photo = Int64(parts[1]) else { return nil }
            self.init(photo: photo, tells: parts.count == 3)
        }
    }

    private static func saysWhere(_ file: URL) throws -> Bool {
        let photo = try MappedFile(file)
        return withExtendedLifetime(photo) { PhotoLocation.isPresent(in: photo.data, leave: photo.release) }
    }

    private static func request(to destination: PhotoDestination) -> URLRequest {
        var request = URLRequest(url: destination.url)
        request.httpMethod = "PUT"
        if let credential = destination.credential {
            request.setValue(credential.value, forHTTPHeaderField: credential.header)
        }
        return request
    }
}
