import BackgroundLedger
import Foundation

/// The work of one launch, given to the handler that was registered for it. Abstract.
///
/// It and its subclasses are open, as Apple's are: a mock overrides what its test looks at.
open class BGTask: NSObject, @unchecked Sendable {  // because the lock guards what changes
    /// That of the request which asked for this launch.
    public let identifier: String
    private let lock = NSLock()
    private var handler: (() -> Void)?
    private var isCompleted = false
    private var isExpired = false
    private let complete: @Sendable (Bool) -> Void

    /// For a mock: what it completes is told to nobody. Differs from Apple: nobody there can make one.
    ///
    /// - Parameter identifier: whatever the test likes.
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

    /// Ends the task. Required for every task as soon as its work ends. The first call counts, later ones are harmless. What the app set in `UserDefaults`
    /// before is on the disk before the launch has its result.
    ///
    /// Differs from Apple: the process then ends, and its memory is lost. The process continues while an attempt at a transfer that the
    /// launch began is under way, for ``BackgroundSettings/continuation`` at most.
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
open class BGAppRefreshTask: BGTask, @unchecked Sendable {}  // because its base is

/// The work of a processing request.
open class BGProcessingTask: BGTask, @unchecked Sendable {}  // because its base is

/// Differs from Apple: there is no health research on a Linux desktop; no launch ever brings one.
open class BGHealthResearchTask: BGProcessingTask, @unchecked Sendable {}  // because its base is
