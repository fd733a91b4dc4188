import BackgroundLedger
import BackgroundRuntime
import Synchronization

/// The ends that were delivered completely: the last delegate method for the transfer has returned. Only such ends are
/// acknowledged in the ledger.
///
/// Ends that were found in one read of the ledger are acknowledged together. If the delegate decides late about a response, the
/// end of this transfer is acknowledged separately.
final class DeliveredEnds: Sendable {
    /// The end of one transfer.
    struct End: Sendable {
        let event: Int64
        /// Stores the end before the end is acknowledged. `nil` if the delegate has stored the end, or does not have to.
        var recorder: (any DeliveredEndsRecorder)?
    }

    private enum State {
        /// `since` is the time at which the first of these ends was delivered.
        case collecting([End], since: ContinuousClock.Instant?)
        case over
    }

    private let state = Mutex(State.collecting([], since: nil))
    private let write: @Sendable ([End]) -> Void

    /// - Parameter write: acknowledges ends.
    init(_ write: @escaping @Sendable ([End]) -> Void) { self.write = write }

    func add(_ end: End) {
        let isLate = state.withLock { state in
            guard case .collecting(let ends, let since) = state else { return true }
            state = .collecting(ends + [end], since: since ?? .now)
            return false
        }
        if isLate { write([end]) }
    }

    /// Acknowledges the collected ends if the first of them was delivered more than 0.1 s ago. If a delegate is slow and the
    /// process ends, only few ends are then delivered again.
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

    /// Acknowledges the collected ends. Later ends are acknowledged one by one.
    func acknowledge() {
        let ends = state.withLock { state -> [End] in
            guard case .collecting(let ends, _) = state else { return [] }
            state = .over
            return ends
        }
        if !ends.isEmpty { write(ends) }
    }
}

/// A delegate of tasks that stores several ends together, because each durable commit takes about a millisecond.
package protocol DeliveredEndsRecorder: URLSessionTaskDelegate, Sendable {
    /// Stores the ends that the delegate has received since the last call. The session calls this method before these ends count as
    /// delivered. If the process is killed before this call, the session delivers these ends again in the next process.
    func recordDeliveredEnds()
}

// The time at which an end counts as delivered.
extension BackgroundSession {
    /// An end whose delegate was called.
    struct CalledEnd {
        let transfer: Int64
        /// `true` if the last delegate method has returned and the delegate has stored the end.
        var hasReturned = false
    }

    /// Calls a delegate method for an end. If the method begins a transfer, the same transaction records the end as delivered.
    func call(for event: SessionEventRecord, isLast: Bool = false, _ body: () -> Void) {
        guard let id = event.id else { return body() }
        state.withLock { $0.calledEnds[id] = CalledEnd(transfer: event.transfer) }
        let delivery = HandledDelivery { try $0.eventWasDelivered(id, now: AppRuntime.shared.now) }
        HandledDelivery.$current.withValue(delivery, operation: body)
        if isLast { state.withLock { $0.calledEnds[id]?.hasReturned = true } }
    }

    /// Stores ends and acknowledges their events. In a launch for this session's events, the events are acknowledged together with the launch's result.
    /// If the process is killed before that, the events are delivered again, unless the app began a transfer. The result of any
    /// other launch is about other work.
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

    /// Ends a task that never became a transfer.
    func end(_ task: URLSessionTask, _ error: URLError?) {
        let isFirst = task.facts.withLock { facts -> Bool in
            defer { facts.isCompleted = true }
            return !facts.isCompleted
        }
        guard isFirst else { return }
        state.withLock { $0.tasks[task.taskIdentifier] = nil }
        let completion = task.facts.withLock { $0.completion }
        let error = error?.concerning(task.originalRequest?.url)
        nonisolated(unsafe) let delegate = task.receiver(or: delegate)
        task.session.onDelegateQueue {
            if let completion { return completion(TransferEnd(error: error)) }
            delegate?.urlSession(task.session, task: task, didCompleteWithError: error)
            (delegate as? any DeliveredEndsRecorder)?.recordDeliveredEnds()
        }
    }
}
