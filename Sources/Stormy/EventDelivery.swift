import BackgroundTransfer
import Foundation
import Synchronization

/// Told of what ended in a background session while the app was away; the launch for it lasts until all of it was told.
protocol EventDelivery: URLSessionTaskDelegate {
    var lastEvent: LastEvent { get }
}

/// Comes once.
final class LastEvent: Sendable {
    private let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)

    func wait(_ begin: () -> Void) async {
        await withCheckedContinuation { continuation in
            waiting.withLock { $0 = continuation }
            begin()
        }
    }

    func came() {
        waiting.withLock { waiting in
            waiting?.resume()
            waiting = nil
        }
    }
}

extension EventDelivery {
    /// Returns when every waiting event was delivered.
    func finish(_ configuration: URLSessionConfiguration) async {
        let made = Mutex<URLSession?>(nil)
        await lastEvent.wait {
            let session = URLSession(configuration: configuration, delegate: self)
            made.withLock { $0 = session }
        }
        made.withLock { $0?.finishTasksAndInvalidate() }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { lastEvent.came() }
}
