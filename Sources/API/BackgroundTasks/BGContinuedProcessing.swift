import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// A request to go on with something that a person just began, shown with its progress and a Cancel button.
///
/// Submit it from the foreground, as the result of what the person did; it runs in this process, also when the app's
/// last command has returned. `earliestBeginDate` and `recurrence` mean nothing here.
///
/// Differs from Apple: what is shown is a desktop notification. At most ``BGTaskScheduler/continuedProcessingRoom`` of an
/// app run at once.
open class BGContinuedProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base is
    /// What to do when there is no room.
    public enum SubmissionStrategy: Int, Sendable {
        /// Fail with ``BGTaskScheduler/Error/immediateRunIneligible``.
        case fail = 0
        /// Wait for room. The request goes with its process.
        case queue = 1
    }

    /// What the task needs besides processor and network.
    public struct Resources: OptionSet, Sendable {
        /// The bits.
        public let rawValue: Int

        /// From the bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// A GPU, by a render node of the kernel's.
        public static let gpu = Resources(rawValue: 1 << 0)
    }

    /// What the notification says, in its first line and below.
    open var title: String
    /// The second line, under the title.
    open var subtitle: String
    /// What to do without room.
    open var strategy: SubmissionStrategy = .queue
    /// What this machine must have, or the submit fails with ``BGTaskScheduler/Error/notPermitted``.
    open var requiredResources: Resources = []

    /// - Parameters:
    ///   - identifier: a concrete one that the permitted list names or that a wildcard of it (`app.export.*`) covers.
    ///   - title: the notification's first line.
    ///   - subtitle: its second line.
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

/// Something that a person began and that goes on, with its progress on the desktop.
///
/// ``progress`` is required: without any for a minute the task's time ends. Cancel in the notification ends it too, and
/// arrives as ``BGTask/expirationHandler`` like any other end.
open class BGContinuedProcessingTask: BGTask, ProgressReporting, @unchecked Sendable {  // because its base is
    private let lock = NSLock()
    private var shown: (title: String, subtitle: String)
    private let update: @Sendable (String, String) -> Void

    /// How far it is. Seen twice a second, children included. Without a total it counts as moving, and no per cent is shown.
    public let progress = Progress(totalUnitCount: 0)

    /// For a mock: what it completes, and its title, are told to nobody. Differs from Apple: nobody there can make one.
    ///
    /// - Parameter identifier: whatever the test likes.
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

    /// What the notification says now.
    open var title: String { lock.withLock { shown.title } }
    /// The line under the title, now.
    open var subtitle: String { lock.withLock { shown.subtitle } }

    /// Changes what the notification says. Cost: one durable transaction when something changed.
    open func updateTitle(_ title: String, subtitle: String) {
        let isNew = lock.withLock { () -> Bool in
            defer { shown = (title, subtitle) }
            return shown != (title, subtitle)
        }
        if isNew { update(title, subtitle) }
    }
}

extension BGTaskScheduler {
    /// How many continued-processing tasks of an app run at once. Beyond Apple, whose system does not say.
    public static let continuedProcessingRoom = ContinuedProcessing.room

    /// What a continued-processing request may ask for on this machine: a GPU where a render node is.
    public class var supportedResources: BGContinuedProcessingTaskRequest.Resources {
        let nodes = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/dri")) ?? []
        return nodes.contains { $0.hasPrefix("renderD") } ? .gpu : []
    }

    func submitContinued(_ request: BGContinuedProcessingTaskRequest) throws {
        guard LaunchContext.current == nil else {
            throw Error(.notPermitted, "\(request.identifier): continued processing is asked for from the foreground")
        }
        guard request.requiredResources.isSubset(of: Self.supportedResources) else {
            throw Error(.notPermitted, "\(request.identifier): this machine has no GPU for it")
        }
        let record = request.record(now: AppRuntime.shared.now)
        // Heard from before the row is there: the agent may be quick.
        try hearing { try ContinuedTasks.shared.listen() }
        let refusal = try hearing { () -> Error? in
            try AppRuntime.shared.ledger().write { transaction -> Error? in
                let live = try transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
                let queued = try transaction.requests(of: .continuedProcessing).filter { $0.identifier != record.identifier }
                let isRunning = live.contains { $0.identifier == record.identifier }
                if request.strategy == .fail, isRunning || live.count + queued.count >= ContinuedProcessing.room {
                    return Error(.immediateRunIneligible, "\(request.identifier): no room to run at once")
                }
                try transaction.save(record)
                return nil
            }
        }
        if let refusal { throw refusal }
        try requireAgent(for: request)
        ContinuedTasks.shared.becomeBusy()
    }

    /// Nobody would ever start it: said at once, where other requests wait in the ledger.
    private func requireAgent(for request: BGContinuedProcessingTaskRequest) throws {
        let why: String
        switch AppRuntime.shared.startAgent() {
        case .alreadyRunning, .started: return
        case .forbidden: why = "no agent may be started"
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
