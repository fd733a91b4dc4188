import Glibc
import TransferMachines

/// Transfers data with libcurl. The transport uses one thread and one multi handle for any number of simultaneous transfers.
///
/// The thread sleeps in a single call, and does not wake while no transfer is running. Memory use does not depend on the size of
/// the data. The transport does not decide what to transfer. The transport logs nothing, because headers and addresses may
/// contain secrets.
package final class CurlTransport: Transport {
    private let handler: @Sendable (TransportEvent) -> Void
    private let queue: CommandQueue
    private let thread: pthread_t

    /// - Parameters:
    ///   - handler: called on the transport's thread, in the order of the events. The handler can call `start` and `cancel`, and
    ///     must not block.
    ///   - userAgent: the value of `User-Agent` for requests without this header.
    package convenience init(handler: @escaping @Sendable (TransportEvent) -> Void, userAgent: String) {
        self.init(handler: handler, userAgent: userAgent, certificateAuthorities: nil)
    }

    /// - Parameter certificateAuthorities: a file of certificates that tests use instead of the system's certificates. TLS
    ///   certificates are always verified.
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

    /// Starts an attempt, as `Transport` describes. A running attempt is not started a second time. After `stop`, an attempt ends
    /// immediately with `.cancelled`, on the caller's thread.
    package func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink) {
        if !queue.append(.start(attempt, request, source, sink)) {
            handler(.ended(attempt, WireEnd(head: nil, failure: .cancelled, bytesSent: 0, bytesReceived: 0)))
        }
    }

    /// Cancels an attempt, as `Transport` describes.
    package func cancel(_ attempt: AttemptID) {
        _ = queue.append(.cancel(attempt))
    }

    /// Continues an attempt whose sink was full or whose source was not ready.
    package func continueWork(_ attempt: AttemptID) {
        _ = queue.append(.continueWork(attempt))
    }

    /// Ends all attempts with `.cancelled`, ends the thread, and waits until the thread has ended. If the handler calls this
    /// method, the method does not wait, because a thread cannot wait for itself.
    package func stop() {
        guard queue.stop() else { return }
        if pthread_equal(pthread_self(), thread) != 0 {
            pthread_detach(thread)
        } else {
            pthread_join(thread, nil)
        }
    }
}
