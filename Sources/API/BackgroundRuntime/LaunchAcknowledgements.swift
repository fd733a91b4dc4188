import BackgroundLedger
import Synchronization

/// The deliveries to the app in one launch. This type decides when the deliveries are acknowledged in the ledger.
final class LaunchAcknowledgements: Sendable {
    typealias Acknowledgement = @Sendable (LedgerTransaction) throws -> Void

    private enum State {
        /// Deliveries are acknowledged together with the result of the launch.
        case open([Acknowledgement])
        /// Deliveries are recorded at once.
        case atOnce
        /// The launch has a result. Later deliveries are recorded at once if `counting` is `true`. Otherwise they are not
        /// recorded.
        case closed(counting: Bool)
    }

    private let state = Mutex(State.open([]))

    /// - Returns: `true` if the caller has to write the acknowledgement now.
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

    /// Records deliveries at once from now on.
    ///
    /// - Returns: the earlier acknowledgements. The caller has to write them now.
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
