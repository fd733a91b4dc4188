import Dispatch
import Foundation
import Synchronization

/// Counts calls of the app whose completion handlers were not called yet, and events that the process is delivering to the app. A
/// process that a user started does not exit before all these calls and events are complete.
package final class OutstandingCalls: Sendable {
    package static var shared: OutstandingCalls { AppRuntime.shared.part { OutstandingCalls() } }

    private let group = DispatchGroup()
    private let count = Mutex(0)
    private let idle = Mutex<(@Sendable () -> Void)?>(nil)

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
        if isIdle { idle.withLock { $0 }?() }
    }

    /// Calls an action each time that no such call or delivery is running any more.
    package func onIdle(_ action: @escaping @Sendable () -> Void) { idle.withLock { $0 = action } }

    package func finished() async {
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
    }
}
