import BackgroundTransfer
import Foundation
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
        case queued(photo: Int64, transfer: Int64)
        /// Kept back: it says where it was taken.
        case held(photo: Int64)
    }

    let store: StormyStore

    public init(store: StormyStore) { self.store = store }

    /// Queues a photo and fills a waiting photo job (that of `storm`, or the oldest).
    ///
    /// Durable when it returns. Cost: one copy of the file (shared blocks where the file system can) and its hash.
    /// - Throws: ``PhotoUploadError``, or what the snapshot says of an unreadable, empty or changing file.
    ///
    /// - Parameter tells: raise a notification at its end, for a person who is not at a terminal.
    public func add(
        _ file: URL, to destination: PhotoDestination, keepsLocation: Bool, storm: Int64? = nil, tells: Bool = false
    ) throws -> Result {
        let path = file.standardizedFileURL.path
        let request = Self.request(to: destination)
        let task = URLSession(configuration: .background(withIdentifier: Self.sessionIdentifier))
            .uploadTask(with: request, fromFile: file)
        switch destination.kind {
        case .webdav: task.delivery = .webdav(fileName: file.lastPathComponent)
        case .put: task.delivery = .put(fileName: file.lastPathComponent)
        }
        // Judged on the copy: what is looked at is what would be sent.
        let snapshot = try task.takeSnapshot()
        if !keepsLocation, try Self.saysWhere(snapshot.file) {
            task.discardSnapshot()
            let advice = "it says where it was taken; upload it again with --keep-location to send it as it is"
            let held = try store.beginPhoto(path: path, digest: snapshot.sha256, storm: storm, as: .held, message: advice)
            return .held(photo: held.photo.id!)
        }
        // The record first: the upload may have ended before this process gets to write anything.
        let (photo, before) = try store.beginPhoto(
            path: path, digest: snapshot.sha256, storm: storm, as: .queued, message: nil)
        if photo.state == .completed, let transfer = photo.transfer {
            task.discardSnapshot()
            return .queued(photo: photo.id!, transfer: transfer)
        }
        task.submissionKey = photo.key.map { "\($0) \(destination.url.absoluteString)" }
        task.taskDescription = Label(photo: photo.id!, tells: tells).text
        task.resume()
        guard task.error == nil, let number = task.transferNumber else {
            try store.giveBack(photo, before: before)
            throw PhotoUploadError.cannotRead(path: path, reason: task.error?.localizedDescription ?? "not queued")
        }
        try store.setTransfer(number, of: photo)
        return .queued(photo: photo.id!, transfer: number)
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
final class PhotoDelivery: EventDelivery {
    private let store: StormyStore
    let lastEvent = LastEvent()

    init(_ store: StormyStore) { self.store = store }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            let label = PhotoUploads.Label(parsing: task.taskDescription),
            let photo = try? store.endPhoto(
                label.photo, transfer: number, as: Self.state(error), message: error?.localizedDescription)
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
