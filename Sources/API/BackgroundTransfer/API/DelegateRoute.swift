import Foundation
import FoundationNetworking

// The choice of the delegate for a call. The session's delegate is called for a method that the task's delegate does not implement
// (see `DelegateDefaults.swift`). The session's delegate is also called if the task's delegate does not conform to the method's
// protocol.

/// A delegate that is passed to its queue. Apple's delegates need not be Sendable, because they are called on one queue.
struct HeldDelegate: @unchecked Sendable {  // because it is called only on the delegate's queue
    let object: any URLSessionDelegate

    init?(_ object: (any URLSessionDelegate)?) {
        guard let object else { return nil }
        self.object = object
    }
}

extension URLSessionTask {
    /// `true` if code in this process waits for the task's end, whether or not the session has a delegate.
    var isAwaitedHere: Bool { facts.withLock { $0.completion != nil || $0.delegate != nil } }

    /// Returns the delegate of this task: the task's own delegate, or else the session's delegate.
    func receiver(or sessionDelegate: (any URLSessionDelegate)?) -> (any URLSessionTaskDelegate)? {
        delegate ?? sessionDelegate as? any URLSessionTaskDelegate
    }

    /// Returns the delegate for the methods of one protocol: the task's own delegate, or else the session's delegate.
    func receiver<Hearer>(as kind: Hearer.Type, or sessionDelegate: (any URLSessionDelegate)?) -> Hearer? {
        delegate as? Hearer ?? sessionDelegate as? Hearer
    }
}
