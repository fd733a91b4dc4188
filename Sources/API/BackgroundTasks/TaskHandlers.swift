import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Synchronization

/// The handlers that the app registered, and the actions of its scenes. The handlers and actions run in launches.
final class TaskHandlers: Sendable {
    static var shared: TaskHandlers { AppRuntime.shared.part { TaskHandlers() } }

    private struct Registered: @unchecked Sendable {  // Unchecked, because the handler is called only on its queue
        let queue: DispatchQueue
        let handler: (BGTask) -> Void
    }

    /// The values of a launch that the app's action receives.
    struct Payload: Sendable {
        let identifier: String
        var continued: BGContinuedProcessingTask?
    }

    struct SceneAction: Sendable {
        let kind: LaunchKind
        let matches: @Sendable (String) -> Bool
        let run: @Sendable (Payload) async -> Void
    }

    private struct State {
        var registered: [String: Registered] = [:]
        var actions: [SceneAction] = []
        var isClosed = false

        /// Returns the handler of the identifier. If the app registered no handler for this identifier, returns the handler of
        /// the longest wildcard that matches the identifier.
        func handler(of identifier: String) -> Registered? {
            if let own = registered[identifier] { return own }
            let wildcards = registered.keys.filter {
                AppManifest.isWildcard($0) && AppManifest.wildcard($0, covers: identifier)
            }
            return wildcards.max { $0.utf8.count < $1.utf8.count }.flatMap { registered[$0] }
        }
    }

    private let state = Mutex(State())

    private init() {
        for kind in [LaunchKind.appRefresh, .processing, .urlSession, .notificationResponse, .significantTimeChange] {
            LaunchHandlers.shared.add(kind) { launch in await TaskHandlers.shared.run(launch) }
        }
    }

    /// - Parameter isLateAllowed: `true` for a handler of continued processing, because such a handler can be registered after
    ///   the scenes were built.
    func register(
        _ identifier: String, queue: DispatchQueue?, isLateAllowed: Bool, handler: @escaping (BGTask) -> Void
    ) {
        let registered = Registered(queue: queue ?? DispatchQueue(label: "task-\(identifier)"), handler: handler)
        state.withLock { state in
            precondition(
                !state.isClosed || isLateAllowed, "all launch handlers must be registered before run(): \(identifier)")
            precondition(state.registered[identifier] == nil, "a launch handler for \(identifier) is already registered")
            state.registered[identifier] = registered
        }
        ContinuedTasks.shared.handlersChanged()
    }

    /// Adds an action. After ``close()`` the method has no effect, because a GUI library evaluates the scenes many times and
    /// would add each action again.
    func add(_ action: SceneAction) { state.withLock { if !$0.isClosed { $0.actions.append(action) } } }

    func close() { state.withLock { $0.isClosed = true } }

    var hasActions: Bool { state.withLock { !$0.actions.isEmpty } }

    /// Returns whether a scene of the app handles this kind of launch.
    func handles(_ kind: LaunchKind) -> Bool { state.withLock { $0.actions.contains { $0.kind == kind } } }

    func canRun(_ launch: LaunchRecord) -> Bool {
        let (registered, actions) = handlers(of: launch)
        return registered != nil || !actions.isEmpty
    }

    /// Returns the registered handler and the scene actions for a launch. Only launches for tasks use registered handlers,
    /// because a registered handler receives a task.
    private func handlers(of launch: LaunchRecord) -> (Registered?, [SceneAction]) {
        state.withLock { state in
            let actions = state.actions.filter { $0.kind == launch.kind && $0.matches(launch.identifier) }
            switch launch.kind {
            case .appRefresh, .processing, .continuedProcessing: return (state.handler(of: launch.identifier), actions)
            case .urlSession, .notificationResponse, .significantTimeChange: return (nil, actions)
            }
        }
    }

    /// Runs the registered handler, then all matching scene actions. Returns `false` if the handler failed, or `nil` if this
    /// process has no handler and no action.
    private func run(_ launch: LaunchRecord) async -> Bool? {
        let (registered, actions) = handlers(of: launch)
        guard registered != nil || !actions.isEmpty else { return nil }
        var success = true
        if let registered { success = await run(launch, registered) }
        await run(actions, Payload(identifier: launch.identifier))
        // An action may start a Swift task and return before this task ends. For this reason the process continues for a short
        // time.
        if registered == nil, AppRuntime.shared.continuation > 0 {
            LaunchContext.current?.stayForGrace()
        }
        return success
    }

    private func run(_ actions: [SceneAction], _ payload: Payload) async {
        await withTaskGroup(of: Void.self) { group in
            for action in actions { group.addTask { await action.run(payload) } }
        }
    }

    /// Runs a registered handler. Returns when the app calls `setTaskCompleted`. The expiration handler is called on the thread
    /// that receives the warning, because the registered handler may block its queue. The process continues until the handler has
    /// returned, and for a short time afterwards. The reason is that many handlers first call `setTaskCompleted` and then submit
    /// the next request.
    private func run(_ launch: LaunchRecord, _ registered: Registered) async -> Bool {
        await withCheckedContinuation { continuation in
            let task = BGTask.make(for: launch) { continuation.resume(returning: $0) }
            LaunchContext.current?.recordUnseenWork()
            LaunchContext.current?.onWarning { _ in task.expire() }
            LaunchContext.current?.onTermination { task.setTaskCompleted(success: false) }
            let (returned, hasReturned) = AsyncStream.makeStream(of: Void.self)
            LaunchContext.current?.stay { for await _ in returned {} }
            LaunchContext.current?.stayForGrace()
            registered.queue.async(
                execute: WorkContext().block {
                    registered.handler(task)
                    hasReturned.finish()
                })
        }
    }

    /// Runs a task of continued processing in the process that requested the task. Several tasks can run at the same time. The
    /// stream `completions` contains the result when the app completes the task.
    func runContinued(_ launch: LaunchRecord, _ task: BGContinuedProcessingTask, _ completions: AsyncStream<Bool>) async -> Bool {
        let (registered, actions) = handlers(of: launch)
        if let registered { registered.queue.async(execute: WorkContext().block { registered.handler(task) }) }
        await run(actions, Payload(identifier: launch.identifier, continued: task))
        if registered == nil { task.setTaskCompleted(success: true) }
        // The wait runs in a detached Swift task, so that a cancellation of the current Swift task does not end the wait. The app
        // decides when the work is complete.
        return await Task.detached { await completions.first { _ in true } ?? false }.value
    }
}
