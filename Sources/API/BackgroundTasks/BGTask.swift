import BackgroundLedger
import Foundation

/// The work of one launch. The handler that was registered for the task's identifier receives the task. This class is abstract.
///
/// The class and its subclasses are open, like Apple's classes, so that a mock can override the members that its test examines.
open class BGTask: NSObject, @unchecked Sendable {  // because the lock guards all mutable state
    /// The identifier of the request that this launch belongs to.
    public let identifier: String
    private let lock = NSLock()
    private var handler: (() -> Void)?
    private var isCompleted = false
    private var isExpired = false
    private let complete: @Sendable (Bool) -> Void

    /// Creates a mock for tests. The completion of the mock is not recorded. Differs from Apple: on iOS, an app cannot create a
    /// task.
    ///
    /// - Parameter identifier: any identifier that the test needs.
    public init(identifier: String) {
        self.identifier = identifier
        complete = { _ in }
        super.init()
    }

    init(identifier: String, complete: @escaping @Sendable (Bool) -> Void) {
        self.identifier = identifier
        self.complete = complete
        super.init()
    }

    /// A handler that is called once, shortly before the time ends, and then cleared. The handler runs on another thread than the
    /// work. The handler must stop the work and make sure that ``setTaskCompleted(success:)`` is called. If the time has already
    /// ended when the handler is set, the handler is called at once.
    ///
    /// Without a handler, the task is completed unsuccessfully when its time is up.
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

    /// Ends the task. Call this method for every task as soon as the work ends. Calls after the first call have no effect. Values
    /// that the app set in `UserDefaults` before the call are written to the disk before the result of the launch is recorded.
    ///
    /// Differs from Apple: after the call the process ends, so values in variables of the app are lost. If an attempt at a transfer
    /// that the launch began is running, the process first waits for the attempt, for at most ``BackgroundSettings/continuation``.
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
        case .appRefresh, .continuedProcessing, .urlSession, .notificationResponse, .significantTimeChange:
            BGAppRefreshTask(identifier: launch.identifier, complete: complete)
        }
    }
}

/// The work of an app refresh.
open class BGAppRefreshTask: BGTask, @unchecked Sendable {}  // because its base class is unchecked Sendable

/// The work of a processing request.
open class BGProcessingTask: BGTask, @unchecked Sendable {}  // because its base class is unchecked Sendable

/// Differs from Apple: health research does not exist on a Linux desktop. A launch never creates this task.
open class BGHealthResearchTask: BGProcessingTask, @unchecked Sendable {}  // because its base class is unchecked Sendable
