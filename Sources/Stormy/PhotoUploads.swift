import BackgroundTransfer
import Foundation
import Synchronization
import UserNotifications

/// Why a photo was not queued.
public enum PhotoUploadError: Error, CustomStringConvertible {
    case noDestination
    case cannotRead(path: String, reason: String)

    public var description: String {
        switch self {
        case .noDestination: "no upload destination is configured"
        case .cannotRead(let path, let reason): "\(path): \(reason)"
        }
    }
}

/// Photos out: each is copied when queued, then sent by the agent, whatever becomes of this process or the original.
public struct PhotoUploads: Sendable {
    public static let sessionIdentifier = "StormyPhotos"

    public enum Result: Sendable, Equatable {
        /// - Parameters:
        ///   - removed: what said where it was taken, by exiv2's names.
        ///   - note: something the person should know about it.
        case queued(photo: Int64, transfer: Int64, removed: [String] = [], note: String? = nil)
        /// Kept back: it says where it was taken, or may.
        case held(photo: Int64, reason: String)
        /// The same photo is there already, or on its way.
        case known(photo: Int64, transfer: Int64?, url: String?)
    }

    let store: StormyStore
    private let cleaner = PhotoCleaner()
    /// One per destination: they differ in how fast they may send.
    private let sessions = Sessions()

    private final class Sessions: Sendable {
        let made = Mutex<[String: URLSession]>([:])
    }

    public init(store: StormyStore) { self.store = store }

    /// Queues a photo and fills a waiting photo job (that of `storm`, or the oldest).
    ///
    /// Durable when it returns. Cost: one copy of the file (shared blocks where the file system can) and its hash.
    /// - Throws: ``PhotoUploadError``, or what the snapshot says of an unreadable, empty or changing file.
    ///
    /// - Parameters:
    ///   - tells: raise a notification at its end, for a person who is not at a terminal.
    ///   - isHeld: it waits for ``HeldUploads``, which the caller asks for.
    public func add(
        _ file: URL, to destination: PhotoDestination, keepsLocation: Bool, storm: Int64? = nil, tells: Bool = false,
        isHeld: Bool = false
    ) throws -> Result {
        let path = file.standardizedFileURL.path
        let request = Self.request(to: destination)
        let task = session(for: destination).uploadTask(with: request, fromFile: file)
        task.startsSuspended = isHeld
        switch destination.kind {
        case .webdav: task.delivery = .webdav(fileName: file.lastPathComponent)
        case .put: task.delivery = .put(fileName: file.lastPathComponent)
        case .multipart(let field):
            task.delivery = .form(field: field, fileName: file.lastPathComponent, contentType: PhotoFormat.contentType(of: file))
        case .tus:
            task.delivery = .tus(fileName: file.lastPathComponent, contentType: PhotoFormat.contentType(of: file))
        }
        // Cleaned and judged on the copy: what is looked at is what would be sent.
        var privacy = PhotoPrivacy.send(removed: [], note: nil)
        let snapshot = try task.takeSnapshot { copy in
            if !keepsLocation { privacy = try clean(copy) }
        }
        guard case .send(let removed, let note) = privacy else {
            guard case .hold(let reason) = privacy else { preconditionFailure() }
            task.discardSnapshot()
            let held = try store.beginPhoto(
                path: path, digest: snapshot.sha256, storm: storm, destination: destination.name, as: .held, message: reason)
            return .held(photo: held.photo.id!, reason: reason)
        }
        // The record first: the upload may have ended before this process gets to write anything.
        let (photo, before) = try store.beginPhoto(
            path: path, digest: snapshot.sha256, storm: storm, destination: destination.name, as: .queued, message: nil)
        if photo.isKnown(before) {
            task.discardSnapshot()
            return .known(photo: photo.id!, transfer: photo.transfer, url: photo.remoteURL)
        }
        task.submissionKey = photo.key.map { "\($0) \(destination.url.absoluteString)" }
        task.taskDescription = Label(photo: photo.id!, tells: tells).text
        task.resume()
        guard task.error == nil, let number = task.transferNumber else {
            try store.giveBack(photo, before: before)
            throw PhotoUploadError.cannotRead(path: path, reason: task.error?.localizedDescription ?? "not queued")
        }
        try store.setTransfer(number, of: photo)
        return .queued(photo: photo.id!, transfer: number, removed: removed, note: note)
    }

    static func configuration() -> URLSessionConfiguration { .background(withIdentifier: sessionIdentifier) }

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

    private func clean(_ copy: URL) throws -> PhotoPrivacy {
        let format = PhotoFormat(of: copy)
        let verdict = cleaner.clean(copy)
        return PhotoPrivacy(format: format, verdict: verdict, looksLocated: try Self.saysWhere(copy))
    }

    /// By which a transfer finds its photo again, and whether the person hears of its end by notification.
    public struct Label {
        public let photo: Int64
        let tells: Bool

        var text: String { "photo-\(photo)" + (tells ? "-tell" : "") }

        init(photo: Int64, tells: Bool) {
            self.photo = photo
            self.tells = tells
        }

        public init?(parsing text: String?) {
            let parts = text?.split(separator: "-") ?? []
            guard parts.count >= 2, parts[0] == "photo", let photo = Int64(parts[1]) else { return nil }
            self.init(photo: photo, tells: parts.count == 3)
        }
    }

    private static func saysWhere(_ file: URL) throws -> Bool {
        PhotoLocation.isPresent(in: try Data(contentsOf: file, options: .alwaysMapped))
    }

    private static func request(to destination: PhotoDestination) -> URLRequest {
        var request = URLRequest(url: destination.url)
        request.httpMethod = "PUT"
        if let authorization = destination.authorization {
            request.setValue(authorization, forHTTPHeaderField: "Authorization")
        }
        return request
    }
}

/// Takes note of photos whose upload ended while nobody was there.
class PhotoDelivery: EventDelivery, @unchecked Sendable {  // because it holds nothing that changes
    private let store: StormyStore
    let lastEvent = LastEvent()

    init(_ store: StormyStore) { self.store = store }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            let label = PhotoUploads.Label(parsing: task.taskDescription),
            let photo = try? store.endPhoto(
                label.photo, transfer: number, as: Self.state(error), message: error?.localizedDescription,
                remoteURL: upload.remoteURL?.absoluteString)
        else { return }
        // The terminal shows its own uploads; a photo given to a notification's button has only this way to be heard of.
        if label.tells { tell(photo) }
    }

    private static func state(_ error: (any Error)?) -> PhotoRecord.State {
        guard let error else { return .completed }
        return (error as? URLError)?.code == .cancelled ? .cancelled : .failed
    }

    private func tell(_ photo: PhotoRecord) {
        let name = photo.path.map { URL(fileURLWithPath: $0).lastPathComponent } ?? "The photo"
        let content = UNMutableNotificationContent()
        content.title = photo.state == .completed ? "Photo uploaded" : "Photo not uploaded"
        content.body = photo.state == .completed ? name : "\(name): \(photo.message ?? "")"
        content.interruptionLevel = .passive
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "photo-\(photo.id ?? 0)", content: content, trigger: nil))
    }
}
