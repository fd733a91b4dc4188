import Synchronization

/// Between a process that wants to leave and what it tells the app: what was told has to be acknowledged, or the next process
/// tells it again.
///
/// Whoever tells something enters, tells, acknowledges, and leaves. A gate that was closed lets nobody in: what is not told stays in
/// the ledger for the next process.
package final class DeliveryGate: Sendable {
    private enum State {
        case open(inside: Int)
        /// To be called by the last who leaves.
        case closing(inside: Int, whenEmpty: [@Sendable () -> Void])
        case closed
    }

    private let state = Mutex(State.open(inside: 0))

    package init() {}

    /// Of a process that a person started.
    package static var ofThisProcess: DeliveryGate { AppRuntime.shared.part { DeliveryGate() } }

    /// The process wants to leave: whoever is inside tells to the end what it is telling, and no more.
    package var isClosing: Bool { state.withLock { if case .open = $0 { false } else { true } } }

    /// `false`: the process is leaving, and nothing may be told any more.
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

    /// Lets nobody in from now on. The action is called when the last one inside has left: at once if nobody is.
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
