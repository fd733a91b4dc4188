import BackgroundLedger
import BackgroundRuntime
import Synchronization

/// The ends of transfers for which the last delegate method has returned. Only these ends are acknowledged in the ledger.
///
/// The ends that one read of the ledger found are acknowledged together. An end whose delegate decided late is acknowledged alone.
final class DeliveredEnds: Sendable {
    private enum State {
        /// `since` is the time at which the first of these ends was delivered.
        case collecting([Int64], since: ContinuousClock.Instant?)
        case over
    }

    private let state = Mutex(State.collecting([], since: nil))
    private let write: @Sendable ([Int64]) -> Void

    /// - Parameter write: acknowledges events.
    init(_ write: @escaping @Sendable ([Int64]) -> Void) { self.write = write }

    func add(_ event: Int64) {
        let isLate = state.withLock { state in
            guard case .collecting(let events, let since) = state else { return true }
            state = .collecting(events + [event], since: since ?? .now)
            return false
        }
        if isLate { write([event]) }
    }

    /// Acknowledges the ends so far if the first of these ends has waited for a tenth of a second. So only few ends are delivered
    /// again if a delegate is slow and its process ends.
    func acknowledgeIfDue() {
        let events = state.withLock { state -> [Int64] in
            guard case .collecting(let events, let since?) = state, since.duration(to: .now) > .milliseconds(100) else {
                return []
            }
            state = .collecting([], since: nil)
            return events
        }
        if !events.isEmpty { write(events) }
    }

    /// Acknowledges the ends so far. Later ends are acknowledged one by one.
    func acknowledge() {
        let events = state.withLock { state -> [Int64] in
            guard case .collecting(let events, _) = state else { return [] }
            state = .over
            return events
        }
        if !events.isEmpty { write(events) }
    }
}

// The time at which an end counts as delivered.
extension BackgroundSession {
    /// An end whose delegate was called.
    struct CalledEnd {
        let transfer: Int64
        /// `true` if the last delegate method has returned.
        var hasReturned = false
    }

    /// Calls a delegate method for an end. A transfer that the method begins records the end as delivered.
    func call(for event: SessionEventRecord, isLast: Bool = false, _ body: () -> Void) {
        guard let id = event.id else { return body() }
        state.withLock { $0.calledEnds[id] = CalledEnd(transfer: event.transfer) }
        let delivery = HandledDelivery { try $0.eventWasDelivered(id, now: AppRuntime.shared.now) }
        HandledDelivery.$current.withValue(delivery, operation: body)
        if isLast { state.withLock { $0.calledEnds[id]?.hasReturned = true } }
    }

    /// Acknowledges events. In a launch for this session's events, the events are acknowledged together with the launch's result.
    /// If the process is killed before that, the events are delivered again, unless the app began a transfer. The result of any
    /// other launch is about other work.
    func acknowledge(_ events: [Int64]) {
        let acknowledge: @Sendable (LedgerTransaction) throws -> Void = { transaction in
            for event in events { try transaction.eventWasDelivered(event, now: AppRuntime.shared.now) }
        }
        if let launch, launch.isForSession(identifier) {
            launch.acknowledgeAtEnd(acknowledge)
        } else {
            DurableWrites.shared.commit("background session \(identifier): the delivered events", acknowledge)
        }
        state.withLock { state in for event in events { state.calledEnds[event] = nil } }
    }

    /// Records the delivered events in the transaction that adds a transfer. Otherwise an app that receives an end again after a
    /// crash would begin the same transfer again.
    func recordDeliveries(
        _ recorded: inout Int, _ handled: HandledDelivery?, _ transaction: LedgerTransaction
    ) throws {
        try handled?.record(transaction)
        recorded = try launch?.recordDeliveries(in: transaction) ?? 0
        for event in AppRuntime.shared.part({ SessionRegistry() }).returnedEnds(processNumber) {
            try transaction.eventWasDelivered(event, now: AppRuntime.shared.now)
        }
    }
}
