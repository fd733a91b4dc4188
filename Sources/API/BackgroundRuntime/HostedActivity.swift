import Synchronization

/// Counts the callbacks and handlers of an app that are queued or running. On a test host, virtual time does not pass before all
/// callbacks and handlers have returned.
package final class HostedActivity: Sendable {
    private let state = Mutex((count: 0, whenNone: Optional<@Sendable () -> Void>.none))

    package init() {}

    package var isEmpty: Bool { state.withLock { $0.count == 0 } }

    func enter() { state.withLock { $0.count += 1 } }

    func leave() {
        let whenNone = state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.whenNone : nil
        }
        whenNone?()
    }

    /// Calls an action each time the last callback or handler has returned.
    package func whenNone(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.whenNone = action } }
}
