import BackgroundTransfer
import Foundation
import Synchronization

/// Told of what ended in a background session while the app was away; the launch for it lasts until all of it was told.
package protocol EventDelivery: URLSessionTaskDelegate {
    var lastEvent: LastEvent { get }
    /// What was told counts as delivered only where nothing is noted here.
    var trouble: FirstError { get }
}

/// The first of what went wrong, side by side or one after the other.
package final class FirstError: Sendable {
    private let error = Mutex<(any Error)?>(nil)

    func note(_ new: any Error) { error.withLock { $0 = $0 ?? new } }

    func noting(_ body: () throws -> Void) {
        do { try body() } catch { note(error) }
    }

    func check() throws {
        if let error = error.withLock({ $0 }) { throw error }
    }
}

/// Comes once; who waits for it later does not wait. One may wait.
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
    /// Returns when every waiting event was delivered.
    ///
    /// - Throws: what could not be kept of them: they are to be told again.
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
