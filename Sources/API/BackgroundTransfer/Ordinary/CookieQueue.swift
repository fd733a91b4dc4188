import BackgroundRuntime
import Dispatch
import Synchronization

/// The queue that stores the cookies of a session's responses, one response after another. A cookie store may write a file for
/// each cookie. Because of the queue, the thread that all sessions share does not wait for these writes.
final class CookieQueue: Sendable {
    private let queue = DispatchQueue(label: "session-cookies")
    /// The number of operations that are not complete.
    private let pending = Mutex(0)

    /// The number of operations that are not complete.
    var pendingCount: Int { pending.withLock { $0 } }

    /// Queues the storage of a response's cookies.
    func store(_ work: @escaping @Sendable () -> Void) {
        let calls = OutstandingCalls.shared
        calls.enter()
        pending.withLock { $0 += 1 }
        queue.async { [self] in
            work()
            pending.withLock { $0 -= 1 }
            calls.leave()
        }
    }

    /// Calls `continueWork` when all earlier operations are complete. If no operation is pending, calls `continueWork`
    /// immediately.
    func whenStored(_ continueWork: @escaping @Sendable () -> Void) {
        if pendingCount == 0 { continueWork() } else { store(continueWork) }
    }

    /// Waits until all earlier operations are complete.
    func stored() async { await withCheckedContinuation { done in whenStored { done.resume() } } }
}
