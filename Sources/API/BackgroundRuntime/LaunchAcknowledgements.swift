import BackgroundLedger
import Synchronization

/// What was delivered to the app in a launch, and whether it counts without a result.
final class LaunchAcknowledgements: Sendable {
    typealias Acknowledgement = @Sendable (LedgerTransaction) throws -> Void

    private enum State {
        /// It counts with the result.
        case open([Acknowledgement])
        /// It counts at once.
        case atOnce
        /// There is a result. Later deliveries count at once if the result was a success, and do not count otherwise.
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

    /// From now on deliveries count at once.
    ///
    /// - Returns: the earlier acknowledgements. The caller has to write them now.
    func beginAtOnce() -> [Acknowledgement] {
        state.withLock { state in
            guard case .open(let earlier) = state else { return [] }
            state = .atOnce
            return earlier
        }
    }

    /// There is a result.
    ///
    /// - Returns: the acknowledgements that count with it.
    func close(counting: Bool) -> [Acknowledgement] {
        state.withLock { state in
            guard case .open(let all) = state else { return [] }
            state = .closed(counting: counting)
            return counting ? all : []
        }
    }
}
