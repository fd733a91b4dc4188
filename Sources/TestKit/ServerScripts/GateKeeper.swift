import Synchronization

/// Named gates. Scripts wait at gates, and tests open the gates.
package final class GateKeeper: Sendable {
    private struct State {
        var open: Set<String> = []
        var waiting: [Int: (gate: String, resume: @Sendable () -> Void)] = [:]
        var nextNumber = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func open(_ gate: String) {
        let released = state.withLock { state in
            state.open.insert(gate)
            let numbers = state.waiting.filter { $0.value.gate == gate }.keys.sorted()
            return numbers.compactMap { state.waiting.removeValue(forKey: $0)?.resume }
        }
        for resume in released { resume() }
    }

    package func close(_ gate: String) {
        state.withLock { _ = $0.open.remove(gate) }
    }

    /// Calls `resume` once when the gate is open. If the gate is open already, calls `resume` immediately. The returned ticket
    /// cancels the wait.
    package func wait(at gate: String, resume: @escaping @Sendable () -> Void) -> Int? {
        let ticket: Int? = state.withLock { state in
            if state.open.contains(gate) { return nil }
            state.nextNumber += 1
            state.waiting[state.nextNumber] = (gate, resume)
            return state.nextNumber
        }
        if ticket == nil { resume() }
        return ticket
    }

    package func forget(_ ticket: Int) {
        state.withLock { _ = $0.waiting.removeValue(forKey: ticket) }
    }
}
