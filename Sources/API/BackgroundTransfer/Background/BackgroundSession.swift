import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// A background session in this process. The session reads the ledger and calls its delegate. The agent sends and receives the
/// bytes.
final class BackgroundSession: SessionEngine {
    struct State {
        /// The app's session object. The session object is stored only while the session has a delegate or a handler to call. At
        /// other times, only the app keeps the session object alive.
        var session: URLSession?
        var delegate: HeldDelegate?
        /// The tasks whose results this process has not reported to the app yet. The keys are the task identifiers.
        var tasks: [Int: URLSessionTask] = [:]
        /// The numbers of the events whose last delegate method has returned.
        var reportedEvents: Set<Int64> = []
        /// The ended transfers that the delegate was notified about and that the ledger has not recorded as delivered yet. The
        /// keys are the event numbers.
        var calledEnds: [Int64: CalledEnd] = [:]
        /// The transfers whose await was cancelled in this process. If the app later creates a task with an equal request, the
        /// task continues such a transfer.
        var cancelledAwaits: Set<Int64> = []
        var watch: DatabaseWatch.Token?
        var look = ReadPhase.idle
        var readPace = LedgerReadPace()
        var reporting = ReportingState()
        /// `true` if the app requested the list of tasks, and the list that it received may lack some tasks.
        var isListIncomplete = false
        /// `true` if the ledger has recorded that this process has a delegate.
        var isAttached = false
        var life = Life.open
        /// The number of running calls that still have to queue delegate methods. The session does not become invalid during these
        /// calls, because `didBecomeInvalidWithError` is the last delegate method.
        var pendingCalls = 0
        var lastReported: [Int64: Reported] = [:]
        /// The tasks of this process that joined the transfer of another task, by the number of the transfer.
        var joined: [Int64: [URLSessionTask]] = [:]
        /// Keeps an agent running while code in this process waits for tasks to end.
        var keeper: AgentKeeper?

        /// Returns the known task of a transfer. If the transfer was retried, a task whose result the app has already received is
        /// not returned.
        func task(of transfer: TransferRecord) -> URLSessionTask? {
            tasks[transfer.taskIdentifier].flatMap { task in
                transfer.state.isTerminal || !task.facts.withLock { $0.isCompleted } ? task : nil
            }
        }
    }

    enum Life: Equatable {
        case open
        /// The session accepts no more tasks. The session becomes invalid when all tasks have ended.
        case ending(hasReadLedger: Bool)
        case invalid
    }

    let identifier: String
    let configuration: URLSessionConfiguration
    let state = Mutex(State())
    /// The reserved and unused task identifiers. The lock of ``state`` is not used, because a reservation commits to the ledger,
    /// and the commit calls this session.
    let identifiers = Mutex(TaskIdentifiers())
    let (listening, reading) = (ReadRetry(), ReadRetry())

    // MARK: One per identifier

    static func named(_ identifier: String, _ configuration: URLSessionConfiguration) -> BackgroundSession {
        let launch = LaunchContext.current
        return AppRuntime.shared.part { SessionRegistry() }.session(identifier, LaunchContext.currentNumber) {
            BackgroundSession(identifier, configuration, launch)
        }
    }

    /// The process of this session. On a test host, this process is one of several simulated processes.
    let process: ProcessIdentity
    let launch: LaunchContext?
    /// The number of the process on a test host.
    let processNumber: Int64?

    private init(_ identifier: String, _ configuration: URLSessionConfiguration, _ launch: LaunchContext?) {
        (self.identifier, self.configuration, self.launch) = (identifier, configuration, launch)
        (process, processNumber) = (AppRuntime.shared.identity, LaunchContext.currentNumber)
    }

    /// Removes all objects and does not call the delegate, because the session's simulated process has ended on a test host.
    func abandon() {
        let waiting = state.withLock { state in
            state.life = .invalid
            state.watch?.cancel()
            (state.watch, state.session, state.delegate, state.tasks) = (nil, nil, nil, [:])
            defer { state.reporting = ReportingState() }
            return state.reporting.waiting
        }
        for waiting in waiting { waiting.resume() }
    }

    var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate }?.object }

    /// Connects a session object of the app, and the object's delegate, to this session.
    func attach(_ session: URLSession, delegate: (any URLSessionDelegate)?) {
        guard let delegate = HeldDelegate(delegate) else { return }
        let isFirst = state.withLock { state -> Bool in
            guard state.delegate == nil else { return false }
            (state.session, state.delegate) = (session, delegate)
            return true
        }
        guard isFirst else {
            return logError("another session with this identifier exists, so the delegate of this session is not called")
        }
        launch?.add(
            .init(
                session: identifier, hasReceivedAll: { self.state.withLock { $0.reporting.isComplete } },
                waitForAllEvents: { await self.waitUntilAllReported() }, skipRemainingEvents: { self.releaseWaitingCallers() }))
        listen(session)
        bringAgentBack()
    }

    /// Starts an agent if an earlier process left unfinished work and no agent is running. A launched process needs no new agent.
    func bringAgentBack() {
        guard launch == nil else { return }
        AppRuntime.shared.startAgentIfWorkIsLeft()
        startKeepingAgent()
    }

    /// Starts to receive the session's events.
    private func listen(_ session: URLSession) {
        AppRuntime.shared.part { SessionRegistry() }.add(self)
        let (isListening, isNewlyAttached) = state.withLock { state in
            if state.session == nil { state.session = session }
            // The app may set a delegate after it created a task with a completion handler.
            defer { state.isAttached = state.isAttached || state.delegate != nil }
            return (state.watch != nil, state.delegate != nil && !state.isAttached)
        }
        // While the ledger records that this process has a delegate, the agent launches no other process for the session's
        // events. Without a delegate, this process receives only the events of tasks with a completion handler.
        if isNewlyAttached {
            DurableWrites.shared.commit("the delegate of background session \(identifier)", startsAgent: false) {
                [identifier, process] in try $0.attach(session: identifier, process: process)
            }
        }
        if !isListening { observeCommits() }
        scheduleLedgerRead()
    }

    /// Starts to receive change notifications of the ledger. If the ledger cannot be opened now, the method tries again later.
    /// While the ledger records that this process has a delegate, no other process receives the session's events.
    private func observeCommits() {
        do throws(StoreError) {
            let token = try AppRuntime.shared.onCommit { [weak self] in self?.scheduleLedgerRead() }
            state.withLock { $0.watch = $0.life == .invalid ? nil : token }
            if listening.isFailing { scheduleLedgerRead() }
            listening.succeeded()
        } catch {
            if !listening.isFailing { logError("\(error)") }
            if error.isPassing { listening.failed { [weak self] in self?.observeCommits() } }
        }
    }

    func logError(_ text: String) {
        AppRuntime.shared.report("background session \(identifier): \(text)")
    }

    // MARK: Tasks

    func add(_ task: URLSessionTask) {
        let (session, delegate, isOver) = state.withLock { state in
            if state.life == .open { state.tasks[task.taskIdentifier] = task }
            return (state.session, state.delegate, state.life != .open)
        }
        guard !isOver else { return task.facts.withLock { $0.error = URLError(.cancelled) } }
        if let refusal = identifiers.withLock({ $0.refusal(of: task.taskIdentifier) }) {
            return task.facts.withLock { $0.error = $0.error ?? Self.failure(refusal) }
        }
        guard let session, let delegate, delegate.object is any URLSessionTaskDelegate else { return }
        session.onDelegateQueue {
            (delegate.object as? any URLSessionTaskDelegate)?.urlSession(session, didCreateTask: task)
        }
    }

    func resume(_ task: URLSessionTask) { resume([task]) }

    /// Resumes the tasks in one transaction, because each durable commit takes a long time.
    func resume(_ tasks: [URLSessionTask]) { UnsavedWork.current.run { begin(tasks) } }

    private func begin(_ tasks: [URLSessionTask]) {
        var (new, others): ([URLSessionTask], [URLSessionTask]) = ([], [])
        for task in tasks {
            switch task.claim() {
            case .begin: new.append(task)
            case .elsewhere:
                // If another thread is writing the task to the ledger, this call waits until the ledger contains the task's row.
                if let row = task.row(orNoting: { $0.entry.updateBeginning { $0.isHeld = false } }) { release(row) }
                others.append(task)
            case .release(let row): release(row)
            case .refused(let error): refuse(task, error)
            }
        }
        submitClaimedTasks(new)
        for task in new { task.endBeginning() }
        // This wait comes last, because otherwise two threads that resume the same tasks could wait for each other.
        for task in others { task.waitForBeginning() }
        considerEnding()
    }

    private func submitClaimedTasks(_ new: [URLSessionTask]) {
        if let missing = AppRuntime.shared.missingAgent {
            let why = [NSLocalizedDescriptionKey: "no transfer can run, because \(missing)"]
            for task in new { refuse(task, URLError(.backgroundSessionWasDisconnected, userInfo: why)) }
            return
        }
        if !new.isEmpty, mayHaveMissedTasks() {
            let why = "this task may exist already, because the list of tasks could not be read. Request the tasks again"
            let failure = URLError(.cannotOpenFile, userInfo: [NSLocalizedDescriptionKey: why])
            for task in new { refuse(task, failure) }
            return
        }
        var submissions: [(task: URLSessionTask, order: Submission)] = []
        for task in new {
            if task.isAwaitedHere { listen(task.session) }
            do { submissions.append((task, try submission(of: task))) } catch { refuse(task, error) }
        }
        let written = submissions.compactMap {
            task, order -> (task: URLSessionTask, order: Submission, meanwhile: TaskEntry.Beginning)? in
            if let meanwhile = task.beginCommitting() { return (task, order, meanwhile) }
            (task as? URLSessionUploadTask)?.discardSnapshot()
            return nil
        }
        guard !written.isEmpty else { return }
        var refusal: URLError?
        var recorded = 0
        // A handler that runs again joins the earlier uploads that have a submission key, and begins only other uploads.
        let isRepeatable = written.allSatisfy { ($0.task as? URLSessionUploadTask)?.storedSubmissionKey != nil }
        let handled = HandledDelivery.current
        do {
            // The first closure stores the row numbers in this process, before an agent can complete the transfers.
            try AppRuntime.shared.commit(usesReserve: false) { records in
                for (entry, record) in zip(written, records) { began(entry.task, entry.order, record) }
            } _: { transaction -> [TransferRecord] in
                if let launch { try transaction.recordTransfer(inLaunch: launch.id) }
                if !isRepeatable { try recordDeliveries(&recorded, handled, transaction) }
                do { return try written.map { try submit($0.task, $0.order, $0.meanwhile, transaction) } } catch let error
                    as URLError
                {
                    refusal = error
                    throw error
                }
            }
            if !isRepeatable { launch?.acknowledgeAtOnce(recorded: recorded) }
            AppRuntime.shared.installLoginEntry()
            startKeepingAgent()
        } catch {
            for entry in written { refuse(entry.task, refusal ?? error) }
        }
    }

    /// Writes one task to the ledger. If the task has a delegate, the same transaction records that this process reports the
    /// transfer's result to the delegate.
    private func submit(
        _ task: URLSessionTask, _ order: Submission, _ meanwhile: TaskEntry.Beginning, _ transaction: LedgerTransaction
    ) throws -> TransferRecord {
        var record = try order.write(transaction)
        let now = AppRuntime.shared.now
        if let isHeld = meanwhile.isHeld {
            let event: TransferLife.Event = isHeld ? .suspended : .released(notBefore: record.earliestBegin, now: now)
            try transaction.handle(event, &record, now: now)
        }
        if meanwhile.isChanged, let id = record.id { try change(id, of: task, now, transaction) }
        // If several tasks joined the transfer, the ledger records only the process of the first task.
        if task.delegate != nil, let id = record.id, try !transaction.isAwaited(id) {
            try transaction.attach(session: identifier, transfer: id, process: process)
        }
        return record
    }

    private func began(_ task: URLSessionTask, _ order: Submission, _ record: TransferRecord) {
        order.afterwards(record)
        KillPoint.reach(.taskResumed)
        task.endBeginning(row: record.id)
        // If the task has no handler and the session has no delegate, no code in this process waits for the transfer's result.
        let isWaitedFor =
            launch == nil ? task.facts.withLock { $0.completion != nil } : state.withLock { $0.watch != nil }
        if let id = record.id, isWaitedFor { (launch?.begun ?? ActiveTransfers.current).insert(id) }
        guard let id = record.id, record.taskIdentifier != task.taskIdentifier else { return }
        state.withLock { $0.joined[id, default: []].append(task) }
        // If the transfer had ended before the task joined it, the ledger has no event for the task, so the result is reported
        // now.
        guard record.state.isTerminal else { return }
        task.session.onDelegateQueue { [self] in reportToJoinedTasks(record, task.session) }
    }

    private static func failure(_ error: any Error) -> URLError {
        error as? URLError ?? URLError(.cannotCreateFile, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
    }

    private func refuse(_ task: URLSessionTask, _ error: any Error) {
        let failure = Self.failure(error)
        let facts = task.facts.withLock { facts in
            facts.error = failure
            return facts
        }
        end(task, failure)
        let isReceived = facts.completion != nil || facts.isRefusalRead || task.receiver(or: delegate) != nil
        // If the app cancelled the task or invalidated the session, no message is printed, because the app caused the error.
        guard !facts.isCompleted, !isReceived, failure.code != .cancelled else { return }
        let address = task.originalRequest?.url.map { PublicAddress.of($0.absoluteString) } ?? "an unknown address"
        logError("the transfer for \(address) was not queued: \(failure.localizedDescription)")
    }

    /// Keeps an agent running while code in this process waits for tasks to end. If the agent is killed, another agent is
    /// started.
    private func startKeepingAgent() {
        let begins = state.withLock { state in
            guard state.watch != nil, state.keeper == nil else { return false }
            state.keeper = AgentKeeper()
            return true
        }
        if begins { keepAgentRunning() }
    }

    private func keepAgentRunning() {
        let shouldContinue = state.withLock { state in
            let waits =
                state.watch != nil && state.tasks.values.contains { $0.facts.withLock { $0.row != nil && !$0.isCompleted } }
            if !waits || state.keeper?.tick() != true { state.keeper = nil }
            return state.keeper != nil
        }
        if shouldContinue { DispatchQueue.global().asyncAfter(deadline: .now() + 1) { [weak self] in self?.keepAgentRunning() } }
    }

    private func release(_ row: Int64) {
        let now = AppRuntime.shared.now
        handle("a resume", { .released(notBefore: $0.earliestBegin, now: now) }, row)
    }

    /// Applies an event to a transfer in one durable transaction. If the ledger cannot be written now, the event is written
    /// later.
    func handle(_ name: String, _ event: @escaping @Sendable (TransferRecord) -> TransferLife.Event, _ row: Int64) {
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("\(name) of background session \(identifier)") { transaction in
            guard let transfer = try transaction.transfer(row) else { return }
            try transaction.handle(event(transfer), transfer: row, now: now)
        }
    }
}
