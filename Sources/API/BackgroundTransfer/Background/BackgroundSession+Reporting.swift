import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

// Calls the delegate. The session reports the result of each ended transfer whose result the app has not received. Transfers that
// ended before this process started are reported first. Then the session reports transfers that end while this process runs. The
// session also reports progress. Results are reported one after another, in order, on the delegate's queue.
extension BackgroundSession {
    /// The state of the session's search in the ledger for events to report.
    enum ReadPhase {
        case idle
        case planned
        /// The session is calling the delegate. During the call the session does not become invalid.
        case reporting(thenAgain: Bool)

        var isReporting: Bool { if case .reporting = self { true } else { false } }

        /// Plans a read. Returns `false` if a read is already planned, or will follow the current read.
        mutating func plan() -> Bool {
            switch self {
            case .idle:
                self = .planned
                return true
            case .planned: return false
            case .reporting:
                self = .reporting(thenAgain: true)
                return false
            }
        }

        /// Returns whether another read must be planned.
        mutating func end() -> Bool {
            defer { self = .idle }
            if case .reporting(let thenAgain) = self { return thenAgain }
            return false
        }
    }

    /// The state of the reports to the delegate about ended transfers that other processes began.
    struct ReportingState {
        /// `true` if events were reported, and the delegate was not yet notified that all events were reported.
        var hasReported = false
        /// `true` if the session has reported all events that were waiting when the session was created.
        var isComplete = false
        /// The continuations of the callers that wait until all events are reported.
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// The number of transfers whose response headers were passed to the delegate, and for which the delegate has not chosen
        /// the next step. The result of such a transfer is reported after the delegate's decision.
        var undecided = 0
    }

    /// The progress that the session last reported to the delegate for a running transfer.
    struct Reported {
        var bytes: Int64 = 0
        var resumedAt: Int64?
        var isWaiting = false
    }

    /// Reads the ledger on the delegate's queue. Several change notifications before the read cause only one read.
    func scheduleLedgerRead() {
        let session = state.withLock { state -> URLSession? in
            guard state.life != .invalid, let session = state.session, state.look.plan() else { return nil }
            return session
        }
        guard let session else { return }
        // The process does not exit before all current events are reported.
        let calls = OutstandingCalls.shared
        calls.enter()
        let pause = state.withLock { $0.readPace.pause(before: .now) }
        guard pause > 0 else { return readChangesNow(session, calls) }
        DispatchQueue.global().asyncAfter(deadline: .now() + pause) { [self] in readChangesNow(session, calls) }
    }

    /// If more transfers than this number are awaited, and one read found fewer ended transfers, the session pauses before the
    /// next read.
    private static let fewEnds = 32
    /// The number of seconds of this pause. One read after the pause finds all transfers that ended during the pause.
    private static let gatheringTime = 0.08

    var deliveries: DeliveryGate { launch?.deliveries ?? DeliveryGate.ofThisProcess }

    private func readChangesNow(_ session: URLSession, _ calls: OutstandingCalls) {
        session.onDelegateQueue { [self] in
            defer { calls.leave() }
            // If the process is about to exit, the session reports no further events. Events that the session is reporting now
            // are still recorded in the ledger as delivered.
            let mayReport = deliveries.enter()
            defer { if mayReport { deliveries.leave() } }
            let isOn = state.withLock { state in
                state.readPace.add(.now)
                state.look = state.life == .invalid || !mayReport ? .idle : .reporting(thenAgain: false)
                return state.look.isReporting
            }
            if isOn { readEvents(session) }
        }
    }

    private func readEvents(_ session: URLSession) {
        // Before the process exits, the session reports all events that it has claimed from the ledger. If the ledger did not
        // record a reported event as delivered, the next process would report the event again.
        var isRead = false
        defer {
            let isWanted = state.withLock { state in
                let isWanted = state.look.end()
                if isRead, !isWanted, state.life == .ending(hasReadLedger: false) { state.life = .ending(hasReadLedger: true) }
                return isWanted
            }
            if isWanted { scheduleLedgerRead() }
            if isRead { reading.succeeded() } else { reading.failed { [weak self] in self?.scheduleLedgerRead() } }
            considerEnding()
        }
        guard
            let seen = try? AppRuntime.shared.ledger().readAfterRing({ transaction in
                (
                    hasEvents: try transaction.hasEventsToReport(session: self.identifier, process: self.process),
                    moving: try transaction.movingTransfers(session: self.identifier)
                )
            })
        else { return }
        let share = share
        for transfer in seen.moving where transfer.isAdopted && share.contains(transfer.id ?? 0) {
            reportProgress(transfer, session)
        }
        switch seen.hasEvents ? deliverEnds(session) : .done {
        case .done:
            isRead = true
            // If the delegate still has to decide about some responses, the ledger is read again after the last decision.
            if state.withLock({ $0.reporting.undecided == 0 }) { reportEventsFinished(session) }
        case .leaving: isRead = true
        case .unreadable: return
        }
    }

    /// Notifies the delegate that all waiting events were reported, if any events were waiting.
    private func reportEventsFinished(_ session: URLSession) {
        let isFirstOfLaunch = launch?.isForSession(identifier) ?? false
        let (delegate, waiting) = state.withLock { state -> (HeldDelegate?, [CheckedContinuation<Void, Never>]) in
            let isAwaited = state.reporting.hasReported || isFirstOfLaunch && !state.reporting.isComplete
            defer { state.reporting = ReportingState(isComplete: true) }
            return (isAwaited ? state.delegate : nil, state.reporting.waiting)
        }
        delegate?.object.urlSessionDidFinishEvents(forBackgroundURLSession: session)
        for waiting in waiting { waiting.resume() }
    }

    /// Returns when all events that waited for the delegate have been reported.
    func waitUntilAllReported() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.reporting.isComplete || state.life == .invalid || deliveries.isClosing { return true }
                state.reporting.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Resumes all waiting callers, because the next process reports the remaining events.
    func releaseWaitingCallers() {
        let waiting = state.withLock { state in
            defer { state.reporting.waiting = [] }
            return state.reporting.waiting
        }
        for waiting in waiting { waiting.resume() }
    }

    private enum ReportResult {
        /// The app received all events of the session.
        case done
        /// The process is about to exit, and the next process reports the remaining events.
        case leaving
        /// The ledger could not be read.
        case unreadable
    }

    private func deliverEnds(_ session: URLSession) -> ReportResult {
        while true {
            let share = shareOfEnds
            if case .only(let transfers) = share, transfers.isEmpty { return .done }
            let claimed: [(SessionEventRecord, TransferRecord)]
            do {
                claimed = try AppRuntime.shared.ledger().write { transaction in
                    try transaction.claimEvents(
                        session: self.identifier, process: self.process, isOurs: share.contains,
                        isAlive: AppRuntime.shared.isAlive
                    ).compactMap { event in
                        try transaction.transfer(event.transfer).map { (event, $0) }
                    }
                }
            } catch {
                return .unreadable
            }
            if claimed.isEmpty { return .done }
            // If the process is about to exit, the delegate finishes the current event, and the next process reports the
            // remaining events.
            let batch = DeliveredEnds { [self] in acknowledge($0) }
            let told = claimed.prefix { event, transfer in
                if deliveries.isClosing { return false }
                deliverEnd(event, transfer, session, batch)
                batch.acknowledgeIfDue()
                return true
            }
            batch.acknowledge()
            // If an event is delivered again, the event may have crashed an earlier process, and may also crash this process. For
            // this reason, no other event is claimed before the delegate has decided about this event.
            if claimed.count == 1, (launch?.repetitions ?? 0) > 0, state.withLock({ $0.reporting.undecided > 0 }) {
                return .done
            }
            // Many transfers may end one after another. Without this pause, each claim would find only one event, and the many
            // claims would block the agent.
            if claimed.count < Self.fewEnds, awaitedTransfers.count > Self.fewEnds {
                Thread.sleep(forTimeInterval: Self.gatheringTime)
            }
            if told.count < claimed.count {
                let rest = claimed.dropFirst(told.count).compactMap(\.0.id)
                DurableWrites.shared.commit("the list of undelivered events of background session \(identifier)") {
                    transaction in
                    for event in rest { try transaction.releaseClaim(of: event) }
                }
                return .leaving
            }
        }
    }

    /// Decides which events with the session's identifier this session object reports.
    private enum EventSelection {
        case only(Set<Int64>)
        case all(but: Set<Int64>)

        @Sendable func contains(_ transfer: Int64) -> Bool {
            switch self {
            case .only(let transfers): transfers.contains(transfer)
            case .all(let others): !others.contains(transfer)
            }
        }
    }

    /// The events that this session object reports. Several session objects can have the same identifier. This object reports all
    /// events of the identifier, except the events of transfers for which tasks of other objects wait. If the app has invalidated
    /// this session and created a new session with this identifier, this session reports only events of its own tasks.
    private var share: EventSelection {
        let known = AppRuntime.shared.part { SessionRegistry() }
        if state.withLock({ $0.life != .open }), known.successor(of: self) != nil { return .only(awaitedTransfers) }
        return .all(but: known.transfersOfOthers(than: self))
    }

    /// The ended transfers that this session object reports. A session without a delegate reports only transfers for which the
    /// session's tasks wait. A process in which the session has a delegate reports all other transfers.
    private var shareOfEnds: EventSelection {
        let handled = state.withLock { state -> Set<Int64>? in
            guard state.delegate == nil else { return nil }
            return Set(state.tasks.values.compactMap { task in task.isAwaitedHere ? task.facts.withLock { $0.row } : nil })
        }
        return handled.map(EventSelection.only) ?? share
    }

    /// The transfers for which tasks of this session wait.
    var awaitedTransfers: Set<Int64> {
        state.withLock { state in
            Set(state.tasks.values.compactMap { $0.facts.withLock { $0.isCompleted ? nil : $0.row } }).union(state.joined.keys)
        }
    }

    // MARK: Ends

    private func deliverEnd(
        _ event: SessionEventRecord, _ transfer: TransferRecord, _ session: URLSession, _ batch: DeliveredEnds
    ) {
        // The transfer belongs to this process only if its task object was created before the transfer ended. A task object that
        // was created later, for the app's list of tasks, is already completed.
        let isOfThisProcess =
            launch == nil && state.withLock { $0.tasks[transfer.taskIdentifier]?.facts.withLock { !$0.isCompleted } ?? false }
        if !isOfThisProcess { state.withLock { $0.reporting.hasReported = true } }
        let task = task(of: transfer, session)
        let result = TransferResult(transfer)
        let error = result.error
        // The agent may have stored the file under another name than the app requested.
        if let place = transfer.destination {
            task.facts.withLock { $0.destination = URL(fileURLWithPath: place, isDirectory: false) }
        }
        task.facts.withLock { facts in
            (facts.error, facts.remoteURL) = (error, transfer.receipt.flatMap { URL(string: $0.url) })
            facts.end = TaskStatus(transfer)
        }
        if transfer.hasAnswer { task.progress.totalUnitCount = max(transfer.bytesDone, 0) }
        task.progress.completedUnitCount = transfer.bytesDone
        defer { reportToJoinedTasks(transfer, session) }
        if let completion = task.facts.withLock({ $0.completion }) {
            finished(task, transfer.id)
            call(for: event, isLast: true) {
                result.hand { completion(TransferEnd(file: $0, response: transfer.response, error: error)) }
            }
            return forget(task, told: event.id, batch)
        }
        nonisolated(unsafe) let delegate = task.receiver(or: self.delegate)
        let recorder = delegate as? any DeliveredEndsRecorder
        let end: @Sendable () -> Void = { [self] in
            finished(task, transfer.id)
            call(for: event, isLast: recorder == nil) {
                delegate?.urlSession(session, task: task, didFinishCollecting: transfer.metrics)
                delegate?.urlSession(session, task: task, didCompleteWithError: error)
            }
            forget(task, told: event.id, batch, recorder)
        }
        if transfer.kind == .upload || transfer.taskKind == "data" {
            if let file = result.file { return hand(file, of: transfer, event, task, session, then: end) }
        } else if result.file != nil, let download = task as? URLSessionDownloadTask,
            let delegate = task.receiver(as: (any URLSessionDownloadDelegate).self, or: self.delegate)
        {
            result.hand { file in
                guard let file else { return }
                call(for: event) { delegate.urlSession(session, downloadTask: download, didFinishDownloadingTo: file) }
            }
        }
        end()
    }

    /// Reports the result of a transfer to the other tasks that joined the transfer.
    func reportToJoinedTasks(_ transfer: TransferRecord, _ session: URLSession) {
        let result = TransferResult(transfer)
        let joined = state.withLock { state in transfer.id.flatMap { state.joined.removeValue(forKey: $0) } ?? [] }
        for task in joined {
            task.facts.withLock { ($0.error, $0.end) = (result.error, TaskStatus(transfer)) }
            finished(task, nil)
            defer { forget(task) }
            if let completion = task.facts.withLock({ $0.completion }) {
                result.hand { completion(TransferEnd(file: $0, response: transfer.response, error: result.error)) }
            } else {
                let delegate = task.receiver(or: delegate)
                delegate?.urlSession(session, task: task, didCompleteWithError: result.error)
                (delegate as? any DeliveredEndsRecorder)?.recordDeliveredEnds()
            }
        }
    }

    private func finished(_ task: URLSessionTask, _ row: Int64?) {
        task.facts.withLock { $0.isCompleted = true }
        if let row { state.withLock { $0.lastReported[row] = nil } }
    }

    /// Removes a task from the list of tasks, because the last delegate method for this task has returned.
    private func forget(
        _ task: URLSessionTask, told event: Int64? = nil, _ batch: DeliveredEnds? = nil,
        _ recorder: (any DeliveredEndsRecorder)? = nil
    ) {
        state.withLock { state in
            if state.tasks[task.taskIdentifier] === task { state.tasks[task.taskIdentifier] = nil }
            if let event { state.reportedEvents.insert(event) }
        }
        if let event { batch?.add(DeliveredEnds.End(event: event, recorder: recorder)) }
    }

    // MARK: Progress

    private func reportProgress(_ transfer: TransferRecord, _ session: URLSession) {
        guard let id = transfer.id else { return }
        let before = state.withLock { $0.lastReported[id] ?? Reported() }
        var reported = before
        reported.bytes = transfer.bytesDone
        reported.resumedAt = transfer.resumedAt
        reported.isWaiting =
            before.isWaiting
            || transfer.state == .waiting && transfer.errorCode.map(TransferTrouble.isUnreachable(recordedCode:)) == true
        let now = reported
        state.withLock { $0.lastReported[id] = now }
        let task = task(of: transfer, session)
        let total = transfer.bytesTotal ?? -1
        task.progress.totalUnitCount = total
        task.progress.completedUnitCount = transfer.bytesDone
        guard let delegate = task.receiver(or: self.delegate) else { return }
        if now.isWaiting, !before.isWaiting { delegate.urlSession(session, taskIsWaitingForConnectivity: task) }
        if transfer.kind == .upload {
            guard now.bytes > before.bytes else { return }
            return delegate.urlSession(
                session, task: task, didSendBodyData: now.bytes - before.bytes, totalBytesSent: now.bytes,
                totalBytesExpectedToSend: total)
        }
        guard let task = task as? URLSessionDownloadTask,
            let delegate = task.receiver(as: (any URLSessionDownloadDelegate).self, or: self.delegate)
        else { return }
        if let offset = now.resumedAt, offset != before.resumedAt {
            delegate.urlSession(session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: total)
        }
        guard now.bytes > before.bytes else { return }
        delegate.urlSession(
            session, downloadTask: task, didWriteData: now.bytes - before.bytes, totalBytesWritten: now.bytes,
            totalBytesExpectedToWrite: total)
    }
}
