import BackgroundTransfer
import Foundation
import Synchronization

/// The background sessions of the uploads of one command. Each destination has a separate `URLSession`, because the speed limits
/// of the destinations differ.
final class PhotoSessions: Sendable {
    /// `true` if the tasks only check whether the server has the photos, and never send a photo.
    let onlyChecks: Bool
    private let made = Mutex<[String: URLSession]>([:])

    init(onlyChecks: Bool) { self.onlyChecks = onlyChecks }

    /// A delegate, because the end of a task without a delegate would stay undelivered.
    private final class Receiver: NSObject, URLSessionTaskDelegate {}

    func session(for destination: PhotoDestination) -> URLSession {
        made.withLock { made in
            if let session = made[destination.name] { return session }
            let configuration = onlyChecks ? PhotoUploads.checkConfiguration() : PhotoUploads.configuration()
            configuration.maximumBytesPerSecond = destination.bytesPerSecond
            let session = URLSession(
                configuration: configuration, delegate: onlyChecks ? Receiver() : nil, delegateQueue: nil)
            made[destination.name] = session
            return session
        }
    }

    func finish() { for session in made.withLock({ $0.values }) { session.finishTasksAndInvalidate() } }
}

extension PhotoUploads {
    func serverCheck(_ destination: PhotoDestination) -> PhotoServerCheck { PhotoServerCheck(sessions, destination) }

    /// The session of the tasks that only check whether a server has a photo.
    package static let checkSessionIdentifier = "StormyPhotoChecks"

    static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: sessionIdentifier)
        // An upload may take a year. After a week without a byte, a failure is reported and can be retried.
        configuration.timeoutIntervalForResource = 365 * 86_400
        return configuration
    }

    /// The app is not launched for the ends of checks, because a command waits for them.
    static func checkConfiguration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: checkSessionIdentifier)
        configuration.sessionSendsLaunchEvents = false
        return configuration
    }

    static func request(to destination: PhotoDestination, folder: URL? = nil) -> URLRequest {
        var request = URLRequest(url: folder ?? destination.url)
        request.httpMethod = "PUT"
        if let credential = destination.credential {
            request.setValue(credential.value, forHTTPHeaderField: credential.header)
        }
        return request
    }

    /// Returns the transfers of photos. The keys of the dictionary are the submission keys.
    package static func transfers(of photos: [PhotoRecord]) throws -> [String: BackgroundTransferStatus] {
        try BackgroundTransfers.statuses(ofKeys: photos.compactMap(\.submission), session: sessionIdentifier)
    }

    /// Returns the states of the transfers of photos, by their submission keys.
    static func states(of photos: [PhotoRecord]) throws -> [String: BackgroundTransferStatus.State] {
        try BackgroundTransfers.states(ofKeys: photos.compactMap(\.submission), session: sessionIdentifier)
    }

    /// - Throws: ``PhotoUploadError/cannotRead(path:reason:)``.
    static func format(of copy: URL, _ path: String) throws -> PhotoFormat? {
        switch PhotoFormat.detect(at: copy) {
        case .photo(let format): return format
        case .other: return nil
        case .unreadable(let code):
            throw PhotoUploadError.cannotRead(
                path: path, reason: "the copy of the file cannot be read: \(String(cString: strerror(code)))")
        }
    }
}
