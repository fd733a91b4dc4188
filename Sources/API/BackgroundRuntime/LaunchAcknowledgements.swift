import BackgroundLedger
import Synchronization

/// Collects, in one launch, the acknowledgements of events that were delivered to the app. This type decides when the ledger
/// records the acknowledgements.
final class LaunchAcknowledgements: Sendable {
    typealias Acknowledgement = @Sendable (LedgerTransaction) throws -> Void

    private enum State {
        /// Deliveries are acknowledged together with the result of the launch.
        case open([Acknowledgement])
        /// Each delivery is acknowledged immediately.
        case atOnce
        /// The launch has a result. If `counting` is `true`, each later delivery is acknowledged immediately. Otherwise later
        /// deliveries are not acknowledged.
        case closed(counting: Bool)
    }

    private let state = Mutex(State.open([]))

    /// - Returns: `true` if the caller has to write the acknowledgement to the ledger now.
    func add(_ acknowledgement: @escaping Acknowledgement) -> Bool {
        state.withLock { state in
            switch state {
            case .open(let earlier):
                state = .open(earlier + [acknowledgement])
                return false
            case .atOnce: return true
            case .closed(let counting): return counting
            }
        }
    }

    /// The acknowledgements that wait for the result of the launch, oldest first.
    var waiting: [Acknowledgement] {
        state.withLock { state in if case .open(let all) = state { all } else { [] } }
    }

    /// Changes the state, so that each later delivery is acknowledged immediately.
    ///
    /// - Returns: the earlier acknowledgements, which the caller has to write to the ledger now.
    func stopDeferring() -> [Acknowledgement] {
        state.withLock { state in
            guard case .open(let earlier) = state else { return [] }
            state = .atOnce
            return earlier
        }
    }

    /// Ends the launch with a result.
    ///
    /// - Returns: the acknowledgements that the caller has to write together with the result.
    func close(counting: Bool) -> [Acknowledgement] {
        state.withLock { state in
            guard case .open(let all) = state else { return [] }
            state = .closed(counting: counting)
            return counting ? all : []
        }
    }
}
