import Synchronization

/// Prevents a process from exiting during a delivery, which means while the process passes an event to the app's code. If the
/// ledger does not record a delivery as acknowledged, the next process delivers the event again.
///
/// The code that makes a delivery enters the gate, calls the app, records the acknowledgement in the ledger, and leaves the gate.
/// After the gate is closed, ``enter()`` returns `false`. The next process then makes the remaining deliveries.
package final class DeliveryGate: Sendable {
    private enum State {
        case open(inside: Int)
        /// The gate accepts no more deliveries. The actions are called when the last delivery inside the gate has ended.
        case closing(inside: Int, whenEmpty: [@Sendable () -> Void])
        case closed
    }

    private let state = Mutex(State.open(inside: 0))

    package init() {}

    /// The gate of a process that a user started.
    package static var ofThisProcess: DeliveryGate { AppRuntime.shared.part { DeliveryGate() } }

    /// `true` if the process is about to exit. A delivery that has entered the gate completes its current call of the app, and
    /// makes no other calls.
    package var isClosing: Bool { state.withLock { if case .open = $0 { false } else { true } } }

    /// Begins a delivery to the app. Returns `false` if the process is ending, and the caller must not deliver anything.
    package func enter() -> Bool {
        state.withLock { state in
            guard case .open(let inside) = state else { return false }
            state = .open(inside: inside + 1)
            return true
        }
    }

    package func leave() {
        let whenEmpty = state.withLock { state -> [@Sendable () -> Void] in
            switch state {
            case .open(let inside):
                state = .open(inside: inside - 1)
                return []
            case .closing(let inside, let whenEmpty) where inside > 1:
                state = .closing(inside: inside - 1, whenEmpty: whenEmpty)
                return []
            case .closing(_, let whenEmpty):
                state = .closed
                return whenEmpty
            case .closed: return []
            }
        }
        for action in whenEmpty { action() }
    }

    /// Closes the gate. The action is called when the last delivery has left the gate, or immediately if no delivery is running.
    package func close(_ whenEmpty: @escaping @Sendable () -> Void) {
        let isEmpty = state.withLock { state -> Bool in
            switch state {
            case .open(0), .closed:
                state = .closed
                return true
            case .open(let inside): state = .closing(inside: inside, whenEmpty: [whenEmpty])
            case .closing(let inside, let earlier): state = .closing(inside: inside, whenEmpty: earlier + [whenEmpty])
            }
            return false
        }
        if isEmpty { whenEmpty() }
    }
}
