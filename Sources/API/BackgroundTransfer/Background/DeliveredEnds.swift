import BackgroundLedger
import BackgroundRuntime
import Synchronization

/// Collects ended transfers whose results the delegate has received completely, which means that the last delegate method for the
/// transfer has returned. Only the events of such transfers are recorded as delivered in the ledger.
///
/// The events that one read of the ledger found are recorded in one write. If the delegate decides late about a response, the
/// event of this transfer is recorded in a separate write.
final class DeliveredEnds: Sendable {
    /// An ended transfer whose result was delivered.
    struct End: Sendable {
        let event: Int64
        /// The delegate that must store the result before the ledger records the event as delivered. `nil` if the delegate has
        /// already stored the result, or does not store results.
        let recorder: (any DeliveredEndsRecorder)?
    }

    private enum State {
        /// `since` is the time at which the first of these results was delivered.
        case collecting([End], since: ContinuousClock.Instant?)
        case over
    }

    private let state = Mutex(State.collecting([], since: nil))
    private let write: @Sendable ([End]) -> Void

    /// - Parameter write: a closure that records the events of these transfers as delivered.
    init(_ write: @escaping @Sendable ([End]) -> Void) { self.write = write }

    func add(_ end: End) {
        let isLate = state.withLock { state in
            guard case .collecting(let ends, let since) = state else { return true }
            state = .collecting(ends + [end], since: since ?? .now)
            return false
        }
        if isLate { write([end]) }
    }

    /// Records the collected events as delivered if the first result was delivered more than 0.1 s ago. If a delegate is slow and
    /// the process is killed, the next process therefore delivers only a few results again.
    func acknowledgeIfDue() {
        let ends = state.withLock { state -> [End] in
            guard case .collecting(let ends, let since?) = state, since.duration(to: .now) > .milliseconds(100) else {
                return []
            }
            state = .collecting([], since: nil)
            return ends
        }
        if !ends.isEmpty { write(ends) }
    }

    /// Records the collected events as delivered. Events that are added after this call are recorded one by one.
    func acknowledge() {
        let ends = state.withLock { state -> [End] in
            guard case .collecting(let ends, _) = state else { return [] }
            state = .over
            return ends
        }
        if !ends.isEmpty { write(ends) }
    }
}

/// A delegate of tasks that stores several results in one commit, because each durable commit takes about a millisecond.
package protocol DeliveredEndsRecorder: URLSessionTaskDelegate, Sendable {
    /// Stores the results that the delegate has received since the last call. The session calls this method before the ledger
    /// records these results as delivered. If the process is killed before this call, the session delivers these results again in
    /// the next process.
    func recordDeliveredEnds()
}

// Decides when the ledger records the event of an ended transfer as delivered.
extension BackgroundSession {
    /// An ended transfer that the delegate was notified about.
    struct CalledEnd {
        let transfer: Int64
        /// `true` if the last delegate method has returned and the delegate has stored the result.
        var hasReturned = false
    }

    /// Calls a delegate method for an ended transfer. If the method begins a new transfer, the transaction that adds the new
    /// transfer also records the event of the ended transfer as delivered.
    func call(for event: SessionEventRecord, isLast: Bool = false, _ body: () -> Void) {
        guard let id = event.id else { return body() }
        state.withLock { $0.calledEnds[id] = CalledEnd(transfer: event.transfer) }
        let delivery = HandledDelivery { try $0.eventWasDelivered(id, now: AppRuntime.shared.now) }
        HandledDelivery.$current.withValue(delivery, operation: body)
        if isLast { state.withLock { $0.calledEnds[id]?.hasReturned = true } }
    }

    /// Stores results and records their events as delivered. In a launch for this session's events, the events are recorded
    /// together with the launch's result. If the process is killed before the launch has a result, the events are delivered
    /// again, unless the app began a transfer. In any other launch the events are recorded now, because the result of that launch
    /// is about other work.
    func acknowledge(_ ends: [DeliveredEnds.End]) {
        for recorder in ends.compactMap(\.recorder) { recorder.recordDeliveredEnds() }
        let events = ends.map(\.event)
        let acknowledge: @Sendable (LedgerTransaction) throws -> Void = { transaction in
            for event in events { try transaction.eventWasDelivered(event, now: AppRuntime.shared.now) }
        }
        if let launch, launch.isForSession(identifier) {
            launch.acknowledgeAtEnd(acknowledge)
        } else {
            DurableWrites.shared.commit("the delivery of the events of background session \(identifier)", acknowledge)
        }
        state.withLock { state in for event in events { state.calledEnds[event] = nil } }
    }

    /// Records the delivered events in the transaction that adds a transfer. Without this record, an app that receives a result
    /// again after a crash would begin the same transfer again.
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
