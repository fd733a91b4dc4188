import BackgroundLedger
import Foundation

/// The work of one launch. The app registers a handler for an identifier, and the handler receives the task. `BGTask` is an
/// abstract class.
///
/// The class and the subclasses are open, like Apple's classes. A test can therefore create a mock that overrides members of the
/// class.
open class BGTask: NSObject, @unchecked Sendable {  // Unchecked, because the lock guards all mutable state
    /// The identifier of the request that this launch belongs to.
    public let identifier: String
    private let lock = NSLock()
    private var handler: (() -> Void)?
    private var isCompleted = false
    private var isExpired = false
    private let complete: @Sendable (Bool) -> Void

    /// Creates a task for tests (a mock). The ledger does not record the mock's completion. Differs from Apple: on iOS, an app
    /// cannot create a task.
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

    /// A handler that is called once, shortly before the launch's time limit, and then removed. The handler and the work run on
    /// different threads. The handler must stop the work and make sure that ``setTaskCompleted(success:)`` is called. If the app
    /// sets the handler after the time limit, the handler is called immediately.
    ///
    /// If no handler is set, the task ends as unsuccessful at the time limit.
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

    /// Ends the task. Call this method for every task as soon as the work ends. Only the first call has an effect. Values that
    /// the app set in `UserDefaults` are written to the disk before the ledger records the launch's result.
    ///
    /// Differs from Apple: the process ends after the call, so values in variables of the app are lost. If the launch began a
    /// transfer whose attempt is still running, the process first waits for the attempt. The maximum wait is
    /// ``BackgroundSettings/continuation``.
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
open class BGAppRefreshTask: BGTask, @unchecked Sendable {}  // Unchecked, because the base class is unchecked Sendable

/// The work of a processing request.
open class BGProcessingTask: BGTask, @unchecked Sendable {}  // Unchecked, because the base class is unchecked Sendable

/// A task for health research. Differs from Apple: Linux desktops have no health research, so no launch creates this task.
open class BGHealthResearchTask: BGProcessingTask, @unchecked Sendable {}  // because the base class is unchecked Sendable
