import BackgroundRuntime
import Dispatch
import Synchronization

/// Where a session stores the cookies of its answers, one answer after the other. A store may write a file for each cookie; the engine's thread is all
/// sessions', and does not wait for it.
final class CookieQueue: Sendable {
    private let queue = DispatchQueue(label: "session-cookies")
    /// What was given and is not done.
    private let pending = Mutex(0)

    /// How much that is.
    var pendingCount: Int { pending.withLock { $0 } }

    /// Stores an answer's cookies, later.
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

    /// Goes on when everything given before is done: at once where nothing is pending.
    func whenStored(_ goOn: @escaping @Sendable () -> Void) {
        if pendingCount == 0 { goOn() } else { store(goOn) }
    }

    /// The same, awaited.
    func stored() async { await withCheckedContinuation { done in whenStored { done.resume() } } }
}
