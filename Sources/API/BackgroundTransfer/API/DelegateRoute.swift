import Foundation
import FoundationNetworking

// Who hears. What a task's own delegate lacks the session's hears: a method that is left out (see the defaults), and the methods of a protocol
// that the task's delegate does not conform to.

/// A delegate on its way to its queue. Apple's delegates need not be Sendable: they are called on one queue.
struct HeldDelegate: @unchecked Sendable {  // because it is called on the delegate's queue alone
    let object: any URLSessionDelegate

    init?(_ object: (any URLSessionDelegate)?) {
        guard let object else { return nil }
        self.object = object
    }
}

extension URLSessionTask {
    /// Somebody in this process waits for its end, whether the session has a delegate or not.
    var isAwaitedHere: Bool { facts.withLock { $0.completion != nil || $0.delegate != nil } }

    /// Who hears of this task: its own delegate, or the session's.
    func hearer(or sessionDelegate: (any URLSessionDelegate)?) -> (any URLSessionTaskDelegate)? {
        delegate ?? sessionDelegate as? any URLSessionTaskDelegate
    }

    /// The same for the methods of one protocol.
    func hearer<Hearer>(as kind: Hearer.Type, or sessionDelegate: (any URLSessionDelegate)?) -> Hearer? {
        delegate as? Hearer ?? sessionDelegate as? Hearer
    }
}
