import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// Loads one response through a ``URLProtocol`` class of the app, which responds instead of the network. The methods of the class
/// run on a separate queue.
final class CustomLoad: NSObject, URLProtocolClient, @unchecked Sendable {  // because a mutex or the queue guards what changes
    private struct State {
        var isOver = false
        var received: Int64 = 0
        /// The number of calls that the protocol object has made. If this number does not change within the timeout, the load
        /// ends.
        var words = 0
    }

    let task: URLSessionTask
    private let run: OrdinaryRun
    private let attempt: AttemptID
    private let queue = DispatchQueue(label: "url-protocol")
    private let limit: Int64?
    private let state = Mutex(State())
    private var loading: URLProtocol?
    /// The semaphore that is signalled when the receiver has room for more bytes, or does not need the rest of the response.
    private let room = DispatchSemaphore(value: 0)

    /// - Parameter limit: the maximum number of bytes of a response.
    init(_ run: OrdinaryRun, _ attempt: AttemptID, limit: Int64?) {
        (self.run, self.attempt, self.limit, task) = (run, attempt, limit, run.task)
    }

    /// - Parameter idleTimeout: the maximum number of seconds without a call of the protocol.
    func begin(_ kind: URLProtocol.Type, _ request: URLRequest, idleTimeout: Double) {
        watchForSilence(within: idleTimeout)
        queue.async { [self] in
            guard !isOver else { return }
            let loading = kind.init(request: kind.canonicalRequest(for: request), cachedResponse: nil, client: self)
            self.loading = loading
            loading.startLoading()
        }
    }

    /// Ends the load with a timeout error if the protocol object makes no call for longer than the request allows. A server that
    /// sends nothing causes the same error.
    private func watchForSilence(within seconds: Double) {
        let words = state.withLock { $0.words }
        guard seconds > 0, seconds < 86_400 else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [weak self] in
            guard let self, !isOver else { return }
            guard state.withLock({ $0.words }) == words, !run.isFull else { return watchForSilence(within: seconds) }
            fail(URLError(.timedOut))
        }
    }

    private func fail(_ error: URLError) {
        run.recordDetour(.refused(error), response: nil, of: attempt)
        end(.stoppedByOwner)
    }

    /// Continues the load, because the receiver has room for more bytes.
    func continueWork() { room.signal() }

    /// Waits while the receiver has no room for more bytes. Returns `false` if the rest of the response is not needed.
    func waitForRoom() -> Bool {
        while run.isFull, !isOver { _ = room.wait(timeout: .now() + 1) }
        return !isOver
    }

    /// Ends the load, because the response is not needed any more.
    func cancel() { end(.cancelled) }

    /// Ends the load. Later calls have no effect.
    private func end(_ failure: WireFailure?) {
        let received = state.withLock { state -> Int64? in
            guard !state.isOver else { return nil }
            state.isOver = true
            return state.received
        }
        guard let received else { return }
        room.signal()
        queue.async { [self] in
            loading?.stopLoading()
            // The reference to the protocol object is removed, because otherwise the two objects would keep each other in memory.
            loading = nil
        }
        run.ended(attempt, WireEnd(head: nil, failure: failure, bytesSent: 0, bytesReceived: received))
    }

    private var isOver: Bool { state.withLock { $0.isOver } }

    // MARK: Calls of the protocol

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        guard !isOver else { return }
        run.recordDetour(.redirect(request), response: redirectResponse, of: attempt)
        end(nil)
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        guard !isOver else { return }
        state.withLock { $0.words += 1 }
        run.receive(response, of: attempt)
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        guard !isOver else { return }
        let received = state.withLock { state in
            state.words += 1
            state.received += Int64(data.count)
            return state.received
        }
        if let limit, received > limit { return fail(URLError(.dataLengthExceedsMaximum)) }
        // If `write` returns `false`, the run has already recorded the reason.
        if data.withUnsafeBytes({ !run.write($0) }) { return end(.stoppedByOwner) }
        run.moved(attempt, sent: 0, received: received)
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { end(nil) }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        guard !isOver else { return }
        fail(URLError(bridging: error))
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        guard !isOver else { return }
        run.forward(challenge)
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}

extension URLError {
    /// Creates a `URLError` for any error, because a session reports only URL errors. If the given error has another type, it
    /// becomes the underlying error.
    init(bridging error: any Error) {
        if let error = error as? URLError {
            self = error
        } else {
            let error = error as NSError
            self =
                error.domain == NSURLErrorDomain
                ? URLError(URLError.Code(rawValue: error.code) ?? .unknown, userInfo: error.userInfo)
                : URLError(
                    .unknown,
                    userInfo: [NSUnderlyingErrorKey: error, NSLocalizedDescriptionKey: error.localizedDescription])
        }
    }
}
