import Dispatch
import Foundation
import Synchronization

/// Calls whose answer is on its way, and events that are being told: a process that a person started does not leave before
/// they came through.
public final class OutstandingCalls: Sendable {
    public static var shared: OutstandingCalls { AppRuntime.shared.part { OutstandingCalls() } }

    private let group = DispatchGroup()
    private let count = Mutex(0)

    package init() {}

    public var isEmpty: Bool { count.withLock { $0 == 0 } }

    /// Runs the call on a queue of the system's.
    public func run(_ body: @escaping @Sendable () -> Void) {
        enter()
        DispatchQueue.global().async {
            body()
            self.leave()
        }
    }

    /// Something began that ends with ``leave()``.
    public func enter() {
        count.withLock { $0 += 1 }
        group.enter()
    }

    public func leave() {
        count.withLock { $0 -= 1 }
        group.leave()
    }

    public func finished() async {
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
    }
}
