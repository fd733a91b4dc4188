import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// One answer that a ``URLProtocol`` gives in the network's place, on a queue of its own.
final class CustomLoad: NSObject, URLProtocolClient, @unchecked Sendable {  // because a mutex or the queue guards what changes
    private struct State {
        var isOver = false
        var received: Int64 = 0
    }

    let task: URLSessionTask
    private let run: OrdinaryRun
    private let attempt: AttemptID
    private let queue = DispatchQueue(label: "url-protocol")
    private let state = Mutex(State())
    private var loading: URLProtocol?

    init(_ run: OrdinaryRun, _ attempt: AttemptID) {
        (self.run, self.attempt, task) = (run, attempt, run.task)
    }

    func begin(_ kind: URLProtocol.Type, _ request: URLRequest) {
        queue.async { [self] in
            let loading = kind.init(request: kind.canonicalRequest(for: request), cachedResponse: nil, client: self)
            self.loading = loading
            if !isOver { loading.startLoading() }
        }
    }

    /// Nobody wants it any more.
    func cancel() { end(.cancelled) }

    /// The first end counts.
    private func end(_ failure: WireFailure?) {
        let received = state.withLock { state -> Int64? in
            guard !state.isOver else { return nil }
            state.isOver = true
            return state.received
        }
        guard let received else { return }
        queue.async { [self] in
            loading?.stopLoading()
            // The protocol holds its client: without this neither would go.
            loading = nil
        }
        run.ended(attempt, WireEnd(head: nil, failure: failure, bytesSent: 0, bytesReceived: received))
    }

    private var isOver: Bool { state.withLock { $0.isOver } }

    // MARK: What the protocol says

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        guard !isOver else { return }
        run.leave(.redirect(request), response: redirectResponse)
        end(nil)
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        guard !isOver else { return }
        run.receive(response)
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        guard !isOver else { return }
        state.withLock { $0.received += Int64(data.count) }
        // A refusal is in the run, which says why.
        if data.withUnsafeBytes({ !run.write($0) }) { return end(.stoppedByOwner) }
        run.moved(attempt, sent: 0, received: state.withLock { $0.received })
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { end(nil) }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        guard !isOver else { return }
        run.leave(.refused(URLError(bridging: error)), response: nil)
        end(.stoppedByOwner)
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        guard !isOver else { return }
        run.ask(challenge)
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}

extension URLError {
    /// A session's errors are URL errors: what is none is kept beneath one.
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
