import Dispatch
import Foundation
import Synchronization

/// Counts calls of the app whose completion handlers were not called yet, and events that the process is delivering to the app. A
/// process that a user started does not exit before all these calls and events are complete.
package final class OutstandingCalls: Sendable {
    package static var shared: OutstandingCalls { AppRuntime.shared.part { OutstandingCalls() } }

    private let group = DispatchGroup()
    private let count = Mutex(0)
    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Listener {
        var onIdle: (@Sendable () -> Void)?
    }

    private let listener = Mutex(Listener())

    package init() {}

    package var isEmpty: Bool { count.withLock { $0 == 0 } }

    /// Runs the closure on a global dispatch queue.
    package func run(_ body: @escaping @Sendable () -> Void) {
        enter()
        let body = WorkContext().block(body)
        DispatchQueue.global().async {
            body()
            self.leave()
        }
    }

    /// Adds one call to the count of running calls. ``leave()`` removes the call from the count.
    package func enter() {
        count.withLock { $0 += 1 }
        group.enter()
    }

    package func leave() {
        let isIdle = count.withLock { count in
            count -= 1
            return count == 0
        }
        group.leave()
        if isIdle { listener.withLock { $0.onIdle }?() }
    }

    /// Calls an action each time that no such call or delivery is running any more.
    package func onIdle(_ action: @escaping @Sendable () -> Void) { listener.withLock { $0.onIdle = action } }

    package func finished() async {
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
    }
}
