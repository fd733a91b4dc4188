import BackgroundLedger
import Synchronization

/// The acknowledgements of the deliveries to the app in one launch. This type decides when the ledger records the
/// acknowledgements.
final class LaunchAcknowledgements: Sendable {
    typealias Acknowledgement = @Sendable (LedgerTransaction) throws -> Void

    private enum State {
        /// Deliveries are acknowledged together with the result of the launch.
        case open([Acknowledgement])
        /// Deliveries are acknowledged at once.
        case atOnce
        /// The launch has a result. If `counting` is `true`, later deliveries are acknowledged at once. Otherwise later
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

    /// The acknowledgements that wait for the result, oldest first.
    var waiting: [Acknowledgement] {
        state.withLock { state in if case .open(let all) = state { all } else { [] } }
    }

    /// Changes the rule: from now on, deliveries are acknowledged at once.
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
    /// - Returns: the acknowledgements to write together with the result.
    func close(counting: Bool) -> [Acknowledgement] {
        state.withLock { state in
            guard case .open(let all) = state else { return [] }
            state = .closed(counting: counting)
            return counting ? all : []
        }
    }
}
