import BackgroundTransfer
import Foundation
import Synchronization

/// A delegate that receives the events of a background session that occurred while the app was not running. The launch ends only
/// after all events are delivered.
package protocol EventDelivery: URLSessionTaskDelegate {
    var lastEvent: LastEvent { get }
    /// The first error of the delivery. The session counts events as delivered only if no error occurred.
    var trouble: FirstError { get }
}

/// Keeps the first of several errors. Safe to use from several threads.
package final class FirstError: Sendable {
    private let error = Mutex<(any Error)?>(nil)

    func record(_ new: any Error) { error.withLock { $0 = $0 ?? new } }

    func recordingErrors(_ body: () throws -> Void) {
        do { try body() } catch { record(error) }
    }

    func check() throws {
        if let error = error.withLock({ $0 }) { throw error }
    }
}

/// An event that occurs once. If the event has already occurred, a call that waits for the event returns immediately. At most one
/// caller may wait.
package final class LastEvent: Sendable {
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
    /// Waits until all events of the session that have not been delivered yet are delivered.
    ///
    /// - Throws: The first error of the delivery. After an error, the events are delivered again later.
    func finish(_ configuration: URLSessionConfiguration) async throws {
        let made = Mutex<URLSession?>(nil)
        await lastEvent.wait {
            let session = URLSession(configuration: configuration, delegate: self)
            made.withLock { $0 = session }
        }
        made.withLock { $0?.finishTasksAndInvalidate() }
        try trouble.check()
    }

    package func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { lastEvent.came() }
}
