import BackgroundTransfer
import Foundation
import Synchronization

/// Told of what ended in a background session while the app was away; the launch for it lasts until all of it was told.
protocol EventDelivery: URLSessionTaskDelegate {
    var lastEvent: LastEvent { get }
}

/// Comes once; who waits for it later does not wait. One may wait.
final class LastEvent: Sendable {
    private enum State {
        case ahead
        case awaited(CheckedContinuation<Void, Never>)
        case came
    }

    private let state = Mutex(State.ahead)

    func wait(_ begin: () -> Void = {}) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if case .came = state { return true }
                state = .awaited(continuation)
                return false
            }
            if isOver { continuation.resume() }
            begin()
        }
    }

    func came() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .came }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume()
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
