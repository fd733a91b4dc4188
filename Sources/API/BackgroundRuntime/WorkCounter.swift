import Synchronization

/// Counts running work of one kind, so that a process can wait until all work is complete.
package final class WorkCounter: Sendable {
    private struct State {
        var begun = 0
        var underWay = 0
        /// The actions that are called when all work has ended.
        var whenNone: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of times that work has begun, including work that has ended.
    package var begun: Int { state.withLock { $0.begun } }

    package var isEmpty: Bool { state.withLock { $0.underWay == 0 } }

    package func run<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        enter()
        defer { leave() }
        return try body()
    }

    /// Counts work as running until ``leave()`` is called.
    package func enter() {
        state.withLock { state in
            state.begun += 1
            state.underWay += 1
        }
    }

    package func leave() {
        let actions = state.withLock { state -> [@Sendable () -> Void] in
            state.underWay -= 1
            guard state.underWay == 0 else { return [] }
            defer { state.whenNone = [] }
            return state.whenNone
        }
        for action in actions { action() }
    }

    /// Calls an action as soon as no work is running.
    package func whenNone(_ action: @escaping @Sendable () -> Void) {
        let isNone = state.withLock { state in
            if state.underWay > 0 { state.whenNone.append(action) }
            return state.underWay == 0
        }
        if isNone { action() }
    }

    package func finished() async {
        await withCheckedContinuation { continuation in whenNone { continuation.resume() } }
    }
}
