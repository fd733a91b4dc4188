import Synchronization

/// Ends of transfers whose delegate has returned from its last method. Only these are acknowledged.
///
/// The ends that one read of the ledger found are acknowledged together. An end whose delegate decided late is acknowledged alone.
final class DeliveredEnds: Sendable {
    private enum State {
        case collecting([Int64])
        case over
    }

    private let state = Mutex(State.collecting([]))
    private let write: @Sendable ([Int64]) -> Void

    /// - Parameter write: acknowledges events.
    init(_ write: @escaping @Sendable ([Int64]) -> Void) { self.write = write }

    func add(_ event: Int64) {
        let isLate = state.withLock { state in
            guard case .collecting(let events) = state else { return true }
            state = .collecting(events + [event])
            return false
        }
        if isLate { write([event]) }
    }

    /// Acknowledges the ends so far. Later ends are acknowledged one by one.
    func acknowledge() {
        let events = state.withLock { state -> [Int64] in
            guard case .collecting(let events) = state else { return [] }
            state = .over
            return events
        }
        if !events.isEmpty { write(events) }
    }
}
