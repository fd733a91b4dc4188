import Glibc
import TransferMachines

/// Moves bytes over libcurl: one thread, one multi handle, any number of transfers at once.
///
/// The thread sleeps in one wait: without running transfers nothing wakes it. Memory does not grow with the size of
/// what is moved. Nothing is decided here and nothing is logged; headers and addresses may hold secrets.
package final class CurlTransport: Transport {
    private let handler: @Sendable (TransportEvent) -> Void
    private let queue: CommandQueue
    private let thread: pthread_t

    /// - Parameters:
    ///   - handler: called on the transport's thread, in order; may call `start` and `cancel`, must not block.
    ///   - userAgent: sent unless a request has its own `User-Agent`.
    package convenience init(handler: @escaping @Sendable (TransportEvent) -> Void, userAgent: String) {
        self.init(handler: handler, userAgent: userAgent, certificateAuthorities: nil)
    }

    /// - Parameter certificateAuthorities: a file of certificates to trust instead of the system's, for tests: TLS is
    ///   always verified.
    init(
        handler: @escaping @Sendable (TransportEvent) -> Void, userAgent: String, certificateAuthorities: String? = nil,
        waker: Waker = Waker()
    ) {
        let queue = CommandQueue(waker: waker)
        self.queue = queue
        let boot = Boot {
            TransferLoop(
                queue: queue, handler: handler, userAgent: userAgent, certificateAuthorities: certificateAuthorities
            ).run()
        }
        self.handler = handler
        thread = Boot.spawn(boot)
    }

    deinit { stop() }

    /// See `Transport`. An attempt that is already running is not started again. After `stop` it ends at once,
    /// `.cancelled`, on the caller's thread.
    package func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink) {
        if !queue.append(.start(attempt, request, source, sink)) {
            handler(.ended(attempt, WireEnd(head: nil, failure: .cancelled, bytesSent: 0, bytesReceived: 0)))
        }
    }

    /// See `Transport`.
    package func cancel(_ attempt: AttemptID) {
        _ = queue.append(.cancel(attempt))
    }

    /// Asks a sink that was full, or a source that was not ready, again.
    package func goOn(_ attempt: AttemptID) {
        _ = queue.append(.goOn(attempt))
    }

    /// Ends what runs with `.cancelled` and then the thread; returns when it is gone. From inside the handler it
    /// only asks: a thread cannot wait for itself.
    package func stop() {
        guard queue.stop() else { return }
        if pthread_equal(pthread_self(), thread) != 0 {
            pthread_detach(thread)
        } else {
            pthread_join(thread, nil)
        }
    }
}
