import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import ProcessSupport
import Synchronization
import TransferMachines

// Provides what an app reads about the tasks of a session: identifiers, the list of tasks, and states.
extension BackgroundSession {
    func nextTaskIdentifier() -> Int {
        let beginnings = UnsavedWork.current
        beginnings.enter()
        let identifier = identifiers.withLock { identifiers in
            identifiers.next { (count) throws(StoreError) in
                try AppRuntime.shared.patiently { (ledger) throws(StoreError) in
                    try ledger.write { try $0.reserveTaskIdentifiers(count) }
                }
            }
        }
        guard identifier < 0 else {
            beginnings.leave()
            return identifier
        }
        // If no identifier could be reserved, `resume()` reports the error. The process waits one second before it can exit, so
        // that the code that created the task has time to call `resume()`.
        DispatchQueue.global().asyncAfter(deadline: .now() + 1) { beginnings.leave() }
        return identifier
    }

    func status(of task: URLSessionTask) -> TaskStatus {
        let facts = task.facts.withLock { $0 }
        // Swift 6.3.1 with optimization fails to compile the same expression with `map` and `??`.
        let status =
            if let end = facts.end { end } else if let row = facts.row { self.status(row: row, of: task, facts) } else {
                TaskStatus(state: facts.stateBeforeRow)
            }
        return facts.completing(status)
    }

    /// Returns the status from the ledger, or the last known status if the ledger cannot be read.
    private func status(row: Int64, of task: URLSessionTask, _ facts: URLSessionTask.Facts) -> TaskStatus {
        let found = AppRuntime.shared.read("the state of a task of background session \(identifier)") { try $0.transfer(row) }
        // The default state is `running`, because the task was resumed. If the default were `suspended`, an app would resume the
        // task again.
        guard let found else { return facts.last ?? TaskStatus(state: .running) }
        guard let record = found else { return TaskStatus() }
        let status = TaskStatus(record)
        task.facts.withLock { $0.last = status }
        return status
    }

    // MARK: The list

    /// Returns all tasks. An ended task is included until the last delegate method for the task has returned. If such a task were
    /// missing in the list, the app would begin this task again.
    func allTasks() -> [URLSessionTask] {
        let calls = OutstandingCalls.shared
        calls.enter()
        defer { calls.leave() }
        let name = "the tasks of background session \(identifier)"
        let found = AppRuntime.shared.read(name, for: AppRuntime.listReadTimeout, listed)
        state.withLock { $0.isListIncomplete = found == nil }
        if found == nil { launch?.fail("\(name) cannot be read") }
        let known = state.withLock { $0.tasks }
        guard let session = state.withLock({ $0.session }) ?? known.values.first?.session ?? ownSession() else { return [] }
        let ofRows =
            found.map { $0.map { task(of: $0, session) } }
            ?? known.values.filter { $0.facts.withLock { $0.row != nil && !$0.isCompleted } }
        var tasks = known
        for task in ofRows { tasks[task.taskIdentifier] = nil }
        if ofRows.contains(where: { $0.facts.withLock { !$0.isCompleted } }) { bringAgentBack() }
        // The tasks that this process created and has not resumed.
        let unresumed = tasks.values.filter { $0.facts.withLock { $0.row == nil && $0.error == nil } }
        return (ofRows + unresumed).sorted { $0.taskIdentifier < $1.taskIdentifier }
    }

    /// Returns the transfers of all tasks that were resumed.
    private func listed(_ transaction: LedgerTransaction) throws -> [TransferRecord] {
        let unfinished = try transaction.unfinishedTransfers(session: identifier)
        let ended = try transaction.untakenEnds(session: identifier)
        let (told, called) = state.withLock { ($0.reportedEvents, $0.calledEnds) }
        // If a delegate method began another transfer, the ledger has already recorded the event of the ended task as delivered.
        // The list still contains the ended task until the last delegate method returns.
        let listed = Set(ended.map(\.event))
        let running = try called.filter { !told.contains($0.key) && !listed.contains($0.key) }.compactMap {
            try transaction.transfer($0.value.transfer)
        }
        return (unfinished + ended.filter { !told.contains($0.event) }.map { $0.transfer } + running).filter(\.isAdopted)
    }

    /// Returns whether a task was missing in the list that the app received, so the app may begin this task again.
    func mayHaveMissedTasks() -> Bool {
        guard state.withLock({ $0.isListIncomplete }) else { return false }
        guard let found = AppRuntime.shared.read("the tasks of background session \(identifier)", listed) else { return true }
        return state.withLock { state in
            if found.contains(where: { state.task(of: $0) == nil }) { return true }
            state.isListIncomplete = false
            return false
        }
    }

    /// Returns a session object for task objects of transfers that other processes began.
    private func ownSession() -> URLSession? { URLSession(configuration: configuration) }

    /// Returns the task of a transfer: the task that this process created, or a new task object.
    func task(of transfer: TransferRecord, _ session: URLSession) -> URLSessionTask {
        if let known = state.withLock({ $0.task(of: transfer) }) { return known }
        let made: URLSessionTask
        if transfer.kind == .upload {
            let upload = URLSessionUploadTask(
                session: session, request: transfer.request, body: nil, identifier: transfer.taskIdentifier)
            upload.storedSubmissionKey = transfer.key
            made = upload
        } else if transfer.taskKind == "data" {
            made = URLSessionDataTask(session: session, request: transfer.request, identifier: transfer.taskIdentifier)
        } else {
            let source = DownloadSource.request(transfer.request ?? URLRequest(url: URL(fileURLWithPath: "/")))
            made = URLSessionDownloadTask(session: session, source: source, identifier: transfer.taskIdentifier)
        }
        made.facts.withLock { facts in
            facts.entry = transfer.id.map { .row($0) } ?? .none
            facts.isCompleted = transfer.state.isTerminal
            facts.description = transfer.taskDescription
            facts.priority = Float(transfer.priority)
            facts.earliestBegin = transfer.earliestBegin
            facts.expectsToReceive = transfer.expectedToReceive
            facts.destination = transfer.destination.map { URL(fileURLWithPath: $0) }
            facts.expectedSHA256 = transfer.expectedSHA256
        }
        return state.withLock { state in
            if let known = state.task(of: transfer) { return known }
            state.tasks[transfer.taskIdentifier] = made
            return made
        }
    }
}

extension URLSessionTask.Facts {
    /// The state of a task that has no row in the ledger yet.
    fileprivate var stateBeforeRow: URLSessionTask.State {
        guard case .beginning(let beginning) = entry else { return .suspended }
        return beginning.isHeld ?? startsSuspended ? .suspended : .running
    }

    /// Returns the status from the ledger, with the additional facts that only this process has.
    fileprivate func completing(_ status: TaskStatus) -> TaskStatus {
        var status = status
        status.error = error ?? status.error
        guard isCompleted || isCanceling else { return status }
        (status.state, status.isPaused) = (isCompleted ? .completed : .canceling, false)
        return status
    }
}

extension TaskStatus {
    init(_ record: TransferRecord) {
        response = record.response
        if record.state.isTerminal, !record.hasAnswer { error = record.urlError }
        if record.kind == .upload {
            bytesSent = record.bytesDone
            bytesExpectedToSend = record.bytesTotal ?? -1
        } else {
            bytesReceived = record.bytesDone
            bytesExpectedToReceive = record.bytesTotal ?? -1
        }
        switch record.state {
        case .queued, .running, .waiting: state = record.isSuspended ? .suspended : .running
        case .paused: (state, isPaused) = (.suspended, true)
        case .completed, .failed, .cancelled: state = .completed
        }
    }
}
