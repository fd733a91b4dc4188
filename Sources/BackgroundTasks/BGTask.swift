import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Synchronization

/// The work of one launch, given to the handler that was registered for it. Abstract.
open class BGTask: NSObject, @unchecked Sendable {  // because the lock guards what changes
    public let identifier: String
    private let lock = NSLock()
    private var handler: (() -> Void)?
    private var isCompleted = false
    private var isExpired = false
    private let complete: @Sendable (Bool) -> Void

    init(identifier: String, complete: @escaping @Sendable (Bool) -> Void) {
        self.identifier = identifier
        self.complete = complete
        super.init()
    }

    /// Called once, off the work's own thread, shortly before the time ends; then cleared. It must stop the work
    /// and see to it that ``setTaskCompleted(success:)`` is called. Set late it is called at once.
    ///
    /// Without one, the task is completed unsuccessfully when its time is up.
    open var expirationHandler: (() -> Void)? {
        get { lock.withLock { handler } }
        set {
            let callNow = lock.withLock { () -> (() -> Void)? in
                guard !isCompleted else { return nil }
                if isExpired { return newValue }
                handler = newValue
                return nil
            }
            callNow?()
        }
    }

    /// Ends the task. Required for every task as soon as its work ends. The first call counts, later ones are harmless.
    open func setTaskCompleted(success: Bool) {
        let isFirst = lock.withLock { () -> Bool in
            defer {
                isCompleted = true
                handler = nil
            }
            return !isCompleted
        }
        if isFirst { complete(success) }
    }

    func expire() {
        let (handler, isOpen) = lock.withLock { () -> ((() -> Void)?, Bool) in
            isExpired = true
            defer { self.handler = nil }
            return (self.handler, !isCompleted)
        }
        guard isOpen else { return }
        if let handler { handler() } else { setTaskCompleted(success: false) }
    }

    static func make(for launch: LaunchRecord, complete: @escaping @Sendable (Bool) -> Void) -> BGTask {
        switch launch.kind {
        case .processing: BGProcessingTask(identifier: launch.identifier, complete: complete)
        case .appRefresh, .continuedProcessing, .urlSession, .notificationResponse:
            BGAppRefreshTask(identifier: launch.identifier, complete: complete)
        }
    }
}

public final class BGAppRefreshTask: BGTask, @unchecked Sendable {}  // because its base is

public final class BGProcessingTask: BGTask, @unchecked Sendable {}  // because its base is

/// Which handler takes which launch, in both styles.
final class TaskHandlers: Sendable {
    static let shared = TaskHandlers()

    private struct Registered: @unchecked Sendable {  // because the handler is called on its own queue only
        let queue: DispatchQueue
        let handler: (BGTask) -> Void
    }

    struct SceneAction: Sendable {
        let kind: LaunchKind
        let matches: @Sendable (String) -> Bool
        let run: @Sendable (String) async -> Void
    }

    private struct State {
        var registered: [String: Registered] = [:]
        var actions: [SceneAction] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    private init() {
        for kind in [LaunchKind.appRefresh, .processing, .continuedProcessing, .urlSession] {
            LaunchHandlers.shared.set(kind) { launch in await TaskHandlers.shared.run(launch) }
        }
    }

    func register(_ identifier: String, queue: DispatchQueue?, handler: @escaping (BGTask) -> Void) {
        let registered = Registered(queue: queue ?? DispatchQueue(label: "task-\(identifier)"), handler: handler)
        state.withLock { state in
            precondition(!state.isClosed, "all launch handlers must be registered before run(): \(identifier)")
            precondition(state.registered[identifier] == nil, "a launch handler for \(identifier) is already registered")
            state.registered[identifier] = registered
        }
    }

    func add(_ actions: [SceneAction]) { state.withLock { $0.actions += actions } }

    func close() { state.withLock { $0.isClosed = true } }

    /// All scene actions that match run; a registered handler is for tasks. `false`: nobody handled it, or it failed.
    private func run(_ launch: LaunchRecord) async -> Bool {
        let (registered, actions) = state.withLock { state in
            (
                state.registered[launch.identifier],
                state.actions.filter { $0.kind == launch.kind && $0.matches(launch.identifier) }
            )
        }
        var handled = false
        var success = true
        if launch.kind != .urlSession, let registered {
            handled = true
            success = await run(launch, registered)
        }
        await withTaskGroup(of: Void.self) { group in
            for action in actions {
                handled = true
                group.addTask { await action.run(launch.identifier) }
            }
        }
        if !handled {
            FileHandle.standardError.write(Data("no handler for \(launch.kind.rawValue) \(launch.identifier)\n".utf8))
        }
        return handled && success
    }

    /// The scheduler holds the task until it completes. Expiry comes from the warning's own thread, so it arrives
    /// also while the handler blocks its queue.
    private func run(_ launch: LaunchRecord, _ registered: Registered) async -> Bool {
        await withCheckedContinuation { continuation in
            let task = BGTask.make(for: launch) { continuation.resume(returning: $0) }
            LaunchContext.current?.onWarning { _ in task.expire() }
            registered.queue.async { registered.handler(task) }
        }
    }
}
