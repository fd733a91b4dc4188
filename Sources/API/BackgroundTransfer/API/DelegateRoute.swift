import Foundation
import FoundationNetworking

// Chooses between a task's own delegate and the session's delegate. If the task's delegate does not implement a method, the
// session's delegate is called (see `DelegateDefaults.swift`). The session's delegate is also called if the task's delegate does
// not conform to the method's protocol.

/// A reference to a delegate that can be passed to the delegate's queue. Apple's API does not require a delegate to be Sendable,
/// because the delegate is called only on its queue.
struct HeldDelegate: @unchecked Sendable {  // Unchecked, because it is called only on the delegate's queue
    let object: any URLSessionDelegate

    init?(_ object: (any URLSessionDelegate)?) {
        guard let object else { return nil }
        self.object = object
    }
}

extension URLSessionTask {
    /// `true` if the task has a completion handler or its own delegate, which waits for the task's result. The session's delegate
    /// is not considered.
    var isAwaitedHere: Bool { facts.withLock { $0.completion != nil || $0.delegate != nil } }

    /// Returns the task's own delegate, or the session's delegate if the task has no delegate.
    func receiver(or sessionDelegate: (any URLSessionDelegate)?) -> (any URLSessionTaskDelegate)? {
        delegate ?? sessionDelegate as? any URLSessionTaskDelegate
    }

    /// Returns the delegate for the methods of one protocol: the task's own delegate if it conforms to the protocol, otherwise
    /// the session's delegate.
    func receiver<Hearer>(as kind: Hearer.Type, or sessionDelegate: (any URLSessionDelegate)?) -> Hearer? {
        delegate as? Hearer ?? sessionDelegate as? Hearer
    }
}
