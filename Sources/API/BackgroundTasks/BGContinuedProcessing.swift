import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// A request to continue work that the user just began. A notification shows the progress of the work and a Cancel button.
///
/// Submit the request when the user requests the work, in a process that the user started. The task runs in the same process,
/// even after the app's last command has returned. `earliestBeginDate` and `recurrence` have no effect.
///
/// Differs from Apple: a desktop notification shows the progress. At most ``BGTaskScheduler/continuedProcessingRoom`` tasks of an
/// app run at the same time.
open class BGContinuedProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because the base class is unchecked Sendable
    /// The behavior if the task cannot run immediately because too many tasks are running.
    public enum SubmissionStrategy: Int, Sendable {
        /// The submission fails with ``BGTaskScheduler/Error/immediateRunIneligible``.
        case fail = 0
        /// The request waits until another task ends. The request is removed when the process that submitted it ends.
        case queue = 1
    }

    /// The resources that the task needs in addition to the processor and the network.
    public struct Resources: OptionSet, Sendable {
        /// The bits of the set.
        public let rawValue: Int

        /// Creates a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// A GPU. A machine has a GPU if its kernel provides a render node.
        public static let gpu = Resources(rawValue: 1 << 0)
    }

    /// The first line of the notification.
    open var title: String
    /// The second line of the notification, under the title.
    open var subtitle: String
    /// The behavior if the task cannot run immediately because too many tasks are running.
    open var strategy: SubmissionStrategy = .queue
    /// The resources that this machine must have. If a resource is missing, the submission fails with
    /// ``BGTaskScheduler/Error/notPermitted``.
    open var requiredResources: Resources = []

    /// - Parameters:
    ///   - identifier: an identifier without a wildcard. The permitted list must contain this identifier, or a wildcard
    ///     (`app.export.*`) that covers it.
    ///   - title: the first line of the notification.
    ///   - subtitle: the second line of the notification.
    public init(identifier: String, title: String, subtitle: String) {
        self.title = title
        self.subtitle = subtitle
        super.init(identifier: identifier)
    }

    convenience init(_ record: RequestRecord) {
        self.init(identifier: record.identifier, title: record.title ?? "", subtitle: record.subtitle ?? "")
        strategy = record.strategy.flatMap(SubmissionStrategy.init) ?? .queue
        requiredResources = Resources(rawValue: record.resources ?? 0)
    }

    override var kind: LaunchKind { .continuedProcessing }

    override func record(now: Date, _ ledgerDate: (Date) -> Date = { $0 }) -> RequestRecord {
        RequestRecord(
            identifier: identifier, kind: kind, title: title, subtitle: subtitle, host: AppRuntime.shared.identity,
            strategy: strategy.rawValue, resources: requiredResources.rawValue, submittedAt: now)
    }
}

/// A task that the user began and that continues in the background. The progress of the task is shown on the desktop.
///
/// The app must update ``progress``, because the agent ends a task that makes no progress for a minute. The agent also ends the
/// task if the user presses the Cancel button in the notification. Before the task ends, ``BGTask/expirationHandler`` is called.
open class BGContinuedProcessingTask: BGTask, ProgressReporting, @unchecked Sendable {  // Unchecked, because the base class is
    private let lock = NSLock()
    private var shown: (title: String, subtitle: String)
    private let update: @Sendable (String, String) -> Void

    /// The progress of the task, including the child progress objects. The process reads the progress twice a second. If the
    /// progress has no total, each change of `completedUnitCount` counts as progress, and the notification shows no percentage.
    public let progress = Progress(totalUnitCount: 0)

    /// Creates a task for tests (a mock). The ledger does not record the mock's completion or title. Differs from Apple: on iOS,
    /// an app cannot create a task.
    ///
    /// - Parameter identifier: any identifier that the test needs.
    public override init(identifier: String) {
        shown = ("", "")
        update = { _, _ in }
        super.init(identifier: identifier)
    }

    init(
        _ launch: LaunchRecord, update: @escaping @Sendable (String, String) -> Void,
        complete: @escaping @Sendable (Bool) -> Void
    ) {
        shown = (launch.title ?? "", launch.subtitle ?? "")
        self.update = update
        super.init(identifier: launch.identifier, complete: complete)
    }

    /// The current first line of the notification.
    open var title: String { lock.withLock { shown.title } }
    /// The text of the second line of the progress notification.
    open var subtitle: String { lock.withLock { shown.subtitle } }

    /// Changes the two lines of the notification. Cost: one transaction that is synced to the disk, if a line changes.
    open func updateTitle(_ title: String, subtitle: String) {
        let isNew = lock.withLock { () -> Bool in
            defer { shown = (title, subtitle) }
            return shown != (title, subtitle)
        }
        if isNew { update(title, subtitle) }
    }
}

extension BGTaskScheduler {
    /// The maximum number of continued-processing tasks of an app that run at the same time. Apple does not document the maximum
    /// number on iOS.
    public static let continuedProcessingRoom = ContinuedProcessing.room

    /// The resources that a continued-processing request can require on this machine: a GPU if the kernel provides a render node.
    public class var supportedResources: BGContinuedProcessingTaskRequest.Resources {
        let nodes = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/dri")) ?? []
        return nodes.contains { $0.hasPrefix("renderD") } ? .gpu : []
    }

    func submitContinued(_ request: BGContinuedProcessingTaskRequest) throws {
        guard LaunchContext.current == nil else {
            throw Error(.notPermitted, "\(request.identifier): continued processing can be requested only in the foreground")
        }
        guard request.requiredResources.isSubset(of: Self.supportedResources) else {
            throw Error(.notPermitted, "\(request.identifier): this machine has no GPU that the task can use")
        }
        let record = request.record(now: AppRuntime.shared.now)
        // The process starts to receive change notifications before it writes the request, because the agent may start the task
        // immediately.
        try hearing { try ContinuedTasks.shared.listen() }
        let refusal = try hearing { () -> Error? in
            try AppRuntime.shared.ledger().write { transaction -> Error? in
                let live = try transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
                let queued = try transaction.requests(of: .continuedProcessing).filter { $0.identifier != record.identifier }
                let isRunning = live.contains { $0.identifier == record.identifier }
                if request.strategy == .fail, isRunning || live.count + queued.count >= ContinuedProcessing.room {
                    return Error(
                        .immediateRunIneligible,
                        "\(request.identifier): the task cannot run now, because too many tasks are running")
                }
                try transaction.save(record)
                return nil
            }
        }
        if let refusal { throw refusal }
        try requireAgent(for: request)
        ContinuedTasks.shared.becomeBusy()
    }

    /// Throws an error if no agent can start the task. Requests of other kinds would wait in the ledger until an agent runs.
    private func requireAgent(for request: BGContinuedProcessingTaskRequest) throws {
        let why: String
        switch AppRuntime.shared.startAgent() {
        case .alreadyRunning, .started: return
        case .forbidden: why = "an environment variable forbids the start of an agent"
        case .notFound: why = "background-agent was not found"
        case .failed(let reason): why = reason
        }
        cancel(taskRequestWithIdentifier: request.identifier)
        throw Error(request.strategy == .fail ? .immediateRunIneligible : .unavailable, "\(request.identifier): \(why)")
    }

    private func hearing<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw Error(.unavailable, "\(error)", underlyingError: error)
        }
    }
}
