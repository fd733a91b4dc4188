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
    public func add(_ file: URL, to destination: PhotoDestination, keepsLocation: Bool, storm: Int64? = nil) throws -> Result {
        let path = file.standardizedFileURL.path
        let request = Self.request(to: destination)
        let task = URLSession(configuration: .background(withIdentifier: Self.sessionIdentifier))
            .uploadTask(with: request, fromFile: file)
        switch destination.kind {
        case .webdav: task.delivery = .webdav(fileName: file.lastPathComponent)
        case .put: task.delivery = .put(fileName: file.lastPathComponent)
        }
        var photo =
            try store.heldPhoto(path: path) ?? store.waitingJob(storm: storm)
            ?? PhotoRecord(id: nil, storm: storm, state: .queued, path: path, transfer: nil, message: nil, createdAt: Date())
        photo.path = path
        // Judged on the copy: what is looked at is what would be sent.
        let snapshot = try task.takeSnapshot()
        if !keepsLocation, try Self.saysWhere(snapshot.file) {
            task.discardSnapshot()
            photo.state = .held
            photo.message = "it says where it was taken; upload it again with --keep-location to send it as it is"
            return .held(photo: try store.save(photo).id!)
        }
        task.resume()
        if let error = task.error { throw PhotoUploadError.cannotRead(path: path, reason: error.localizedDescription) }
        photo.state = .queued
        photo.message = nil
        photo.transfer = task.transferNumber
        return .queued(photo: try store.save(photo).id!, transfer: task.transferNumber ?? 0)
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
final class PhotoDelivery: URLSessionTaskDelegate {
    private let store: StormyStore
    private let finished = Mutex<CheckedContinuation<Void, Never>?>(nil)

    private init(_ store: StormyStore) { self.store = store }

    static func finish(_ store: StormyStore) async {
        let delegate = PhotoDelivery(store)
        let made = Mutex<URLSession?>(nil)
        await withCheckedContinuation { continuation in
            delegate.finished.withLock { $0 = continuation }
            let session = URLSession(
                configuration: .background(withIdentifier: PhotoUploads.sessionIdentifier), delegate: delegate)
            made.withLock { $0 = session }
        }
        made.withLock { $0?.finishTasksAndInvalidate() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let upload = task as? URLSessionUploadTask, let number = upload.transferNumber,
            var photo = try? store.photo(transfer: number)
        else { return }
        photo.state = error == nil ? .completed : .failed
        photo.message = error?.localizedDescription
        guard (try? store.save(photo)) != nil else { return }
        // The terminal shows its own uploads; a photo given to a notification's button has only this way to be heard of.
        if photo.storm != nil { tell(photo) }
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

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        finished.withLock { finished in
            finished?.resume()
            finished = nil
        }
    }
}
