import Foundation
import FoundationNetworking
import ProcessSupport
import Synchronization
import TransferMachines

/// An ordinary session. The session uses the same transport as the agent, but in this process, and makes one attempt for each
/// task. Only the bytes of downloads are written to the disk.
final class OrdinarySession: SessionEngine {
    private struct State {
        weak var session: URLSession?
        /// The session object, stored while the session has tasks. Running tasks must continue even if the app keeps no reference
        /// to the session object.
        var kept: URLSession?
        var delegate: HeldDelegate?
        var lastIdentifier = 0
        var tasks: [Int: URLSessionTask] = [:]
        var runs: [Int: any TaskRun] = [:]
        var life = Life.open
    }

    private enum Life {
        case open
        /// The session accepts no more tasks, and becomes invalid when the last task has ended.
        case ending
        case invalid
    }

    let configuration: URLSessionConfiguration
    let cookies = CookieQueue()
    private let state = Mutex(State())

    init(configuration: URLSessionConfiguration, isShared: Bool) {
        (self.configuration, self.isShared) = (configuration, isShared)
    }

    /// `true` for the process's shared session, which cannot be invalidated and which uses all registered protocol classes.
    private let isShared: Bool

    var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate }?.object }

    func attach(_ session: URLSession, delegate: (any URLSessionDelegate)?) {
        let held = HeldDelegate(delegate)
        state.withLock { ($0.session, $0.delegate) = (session, held) }
    }

    // MARK: The choice of a protocol

    /// Returns the protocol class that responds instead of the network, or `nil` if no class responds.
    /// - Throws: `URLError.unsupportedURL` if a class is not a subclass of this module's ``URLProtocol``. Without this error, the
    ///   request would be sent to the network, although the app wants its own class to respond.
    func protocolClass(for request: URLRequest, _ task: URLSessionTask) throws -> URLProtocol.Type? {
        let chosen = isShared ? URLProtocol.registeredClasses(for: request.url) : configuration.protocolClasses ?? []
        for kind in chosen + AddressProtocols.all {
            guard let kind = kind as? URLProtocol.Type else { throw Self.noProtocol(kind) }
            // A task that was created from resume data has no request of its own.
            if task.currentRequest == nil ? kind.canInit(with: request) : kind.canInit(with: task) { return kind }
        }
        return nil
    }

    static func noProtocol(_ kind: AnyClass) -> URLError {
        URLError(
            .unsupportedURL,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\(kind) in protocolClasses is not a subclass of BackgroundTransfer.URLProtocol. "
                    + "If the source file of this class imports FoundationNetworking, import BackgroundTransfer instead."
            ])
    }

    // MARK: Tasks

    func nextTaskIdentifier() -> Int {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    func add(_ task: URLSessionTask) {
        let (delegate, isOver) = state.withLock { state in
            if state.life == .open { state.tasks[task.taskIdentifier] = task }
            return (state.delegate, state.life != .open)
        }
        guard !isOver else {
            return task.facts.withLock { $0.error = URLError(.cancelled).concerning(task.originalRequest?.url) }
        }
        let session = task.session
        guard let delegate, delegate.object is any URLSessionTaskDelegate else { return }
        session.onDelegateQueue {
            (delegate.object as? any URLSessionTaskDelegate)?.urlSession(session, didCreateTask: task)
        }
    }

    func resume(_ tasks: [URLSessionTask]) { for task in tasks { resume(task) } }

    func resume(_ task: URLSessionTask) {
        guard task.facts.withLock({ !$0.isCompleted }) else { return }
        let (run, isNew) = state.withLock { state -> (any TaskRun, Bool) in
            if let run = state.runs[task.taskIdentifier] { return (run, false) }
            let run = makeRun(task)
            state.runs[task.taskIdentifier] = run
            state.kept = task.session
            return (run, true)
        }
        if isNew { run.begin() } else { run.release() }
    }

    private func makeRun(_ task: URLSessionTask) -> any TaskRun {
        if let task = task as? URLSessionWebSocketTask { WebSocketRun(task, self) } else { OrdinaryRun(task, self) }
    }

    /// Suspends the task. If the task is a download, the connection is closed. After `resume()`, the next attempt requests only
    /// the bytes that the partial file does not contain. The response of any other task still arrives, and is delivered after
    /// `resume()`.
    func suspend(_ task: URLSessionTask) { state.withLock { $0.runs[task.taskIdentifier] }?.suspend() }

    func cancel(_ task: URLSessionTask) {
        let isOver = task.facts.withLock { facts in
            if !facts.isCompleted { facts.isCanceling = true }
            return facts.isCompleted
        }
        guard !isOver else { return }
        // If the app cancels a task that it never resumed, the delegate also receives the end of this task, once.
        let (run, isNew) = state.withLock { state -> (any TaskRun, Bool) in
            if let run = state.runs[task.taskIdentifier] { return (run, false) }
            let run = makeRun(task)
            state.runs[task.taskIdentifier] = run
            return (run, true)
        }
        guard isNew else { return run.cancel() }
        forget(task)
        run.finish(URLError(.cancelled))
    }

    /// Sends the close frame of a web socket to its server.
    func close(_ task: URLSessionWebSocketTask, _ code: Int, _ reason: Data) {
        guard let run = state.withLock({ $0.runs[task.taskIdentifier] }) as? WebSocketRun else { return cancel(task) }
        task.facts.withLock { facts in if !facts.isCompleted { facts.isCanceling = true } }
        run.close(code, reason)
    }

    func cancelProducingResumeData(_ task: URLSessionTask) async -> Data? {
        guard task is URLSessionDownloadTask, let run = state.withLock({ $0.runs[task.taskIdentifier] }) as? OrdinaryRun
        else {
            cancel(task)
            return nil
        }
        task.facts.withLock { $0.isCanceling = true }
        return await run.cancelKeepingPart()
    }

    func update(_ task: URLSessionTask) {}

    func status(of task: URLSessionTask) -> TaskStatus {
        let facts = task.facts.withLock { $0 }
        var status = state.withLock { $0.runs[task.taskIdentifier] }?.status ?? facts.last ?? TaskStatus()
        status.error = facts.error
        if facts.isCompleted { status.state = .completed } else if facts.isCanceling { status.state = .canceling }
        return status
    }

    func allTasks() -> [URLSessionTask] { state.withLock { $0.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier } } }

    /// Removes a task from the list of tasks. The app receives the task's result after this call.
    func forget(_ task: URLSessionTask) { state.withLock { $0.tasks[task.taskIdentifier] = nil } }

    /// Replaces a data task in the list of tasks by the download task that continues the data task's work.
    ///
    /// - Returns: `false` if the data task has ended.
    func replace(_ old: URLSessionTask, by new: URLSessionTask) -> Bool {
        state.withLock { state in
            guard let run = state.runs.removeValue(forKey: old.taskIdentifier) else { return false }
            state.tasks[old.taskIdentifier] = nil
            if state.life == .open { state.tasks[new.taskIdentifier] = new }
            state.runs[new.taskIdentifier] = run
            return true
        }
    }

    func ended(_ task: URLSessionTask) {
        state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            state.runs[task.taskIdentifier] = nil
            if state.runs.isEmpty { state.kept = nil }
        }
        considerEnding()
    }

    // MARK: The end of the session

    func invalidate(cancelling: Bool) {
        guard !isShared else { return }
        let tasks = state.withLock { state in
            if state.life == .open { state.life = .ending }
            return Array(state.tasks.values)
        }
        if cancelling {
            for task in tasks { cancel(task) }
            // The delegates still receive the results of the tasks, but the list of tasks does not contain the tasks any more.
            state.withLock { $0.tasks = [:] }
        }
        considerEnding()
    }

    private func considerEnding() {
        let ended = state.withLock { state -> (URLSession?, HeldDelegate?)? in
            // If the app has created a task that it has not resumed yet, the session stays valid.
            guard state.life == .ending, state.runs.isEmpty, state.tasks.isEmpty else { return nil }
            state.life = .invalid
            defer { (state.delegate, state.tasks) = (nil, [:]) }
            return (state.session, state.delegate)
        }
        guard let (session, delegate) = ended, let session, let delegate else { return }
        session.onDelegateQueue { delegate.object.urlSession(session, didBecomeInvalidWithError: nil) }
    }

    // MARK: Awaited

    func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (Data, URLResponse) {
        let end = try await end(of: URLSessionDataTask(session: session(), request: request), delegate)
        return (end.data ?? Data(), try Self.response(of: end))
    }

    func download(_ source: DownloadSource, delegate: (any URLSessionTaskDelegate)?) async throws -> (URL, URLResponse) {
        let end = try await end(of: URLSessionDownloadTask(session: session(), source: source), delegate) { file in
            // The file is moved to another path, because the task removes its file when the handler returns, and the caller needs
            // the file for longer.
            let place = file.deletingLastPathComponent()
                .appendingPathComponent("download-\(UUID.random().uuidString.lowercased()).tmp")
            return (try? FileManager.default.moveItem(at: file, to: place)) == nil ? nil : place
        }
        guard let file = end.file else { throw URLError(.cannotMoveFile) }
        return (file, try Self.response(of: end))
    }

    func upload(
        for request: URLRequest, from body: UploadBody, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        let end = try await end(of: URLSessionUploadTask(session: session(), request: request, body: body), delegate)
        return (end.data ?? Data(), try Self.response(of: end))
    }

    func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URLSession.AsyncBytes, URLResponse) {
        let task = URLSessionDataTask(session: session(), request: request)
        add(task)
        let feed = ByteFeed()
        let (held, refused) = (HeldDelegate(delegate), task.facts.withLock { $0.error })
        if let refused { throw refused }
        task.facts.withLock { ($0.delegate, $0.feed) = (held, feed) }
        task.resume()
        let run = state.withLock { $0.runs[task.taskIdentifier] } as? OrdinaryRun
        feed.onRoom { [weak run] in run?.continueWork() }
        let response = try await withTaskCancellationHandler(operation: { try await feed.head() }, onCancel: { task.cancel() })
        await cookies.stored()
        return (URLSession.AsyncBytes(task: task, feed: feed), response)
    }

    private func session() -> URLSession { state.withLock { $0.session } ?? URLSession(configuration: configuration) }

    private static func response(of end: TransferEnd) throws -> URLResponse {
        guard let response = end.response else { throw URLError(.badServerResponse) }
        return response
    }

    private func end(
        of task: URLSessionTask, _ delegate: (any URLSessionTaskDelegate)?, keeping: @escaping @Sendable (URL) -> URL? = { $0 }
    ) async throws -> TransferEnd {
        add(task)
        let held = HeldDelegate(delegate)
        task.facts.withLock { $0.delegate = held }
        let end = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<TransferEnd, Never>) in
                let isCancelled = task.facts.withLock { facts in
                    // If the task was already cancelled, the task never calls the handler.
                    if facts.isCanceling || facts.isCompleted { return true }
                    facts.completion = { end in
                        var end = end
                        end.file = end.file.flatMap(keeping)
                        continuation.resume(returning: end)
                    }
                    return false
                }
                if isCancelled {
                    let error = URLError(.cancelled).concerning(task.originalRequest?.url)
                    return continuation.resume(returning: TransferEnd(error: error))
                }
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
        if let error = end.error { throw error }
        return end
    }
}
