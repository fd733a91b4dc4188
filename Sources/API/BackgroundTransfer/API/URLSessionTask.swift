import Spool
import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// A transfer of a session. Made suspended: ``resume()`` starts it, in a background session durably.
///
/// Differs from Apple: a task of a background session that was never resumed goes with its process.
open class URLSessionTask: NSObject, ProgressReporting, @unchecked Sendable {  // because the mutex guards what changes
    /// Where a task is in its life.
    public enum State: Int, Sendable {
        case running = 0
        case suspended = 1
        case canceling = 2
        case completed = 3
    }

    /// What a task has that nobody gave another.
    public static let defaultPriority: Float = 0.5
    /// Behind the others of its host.
    public static let lowPriority: Float = 0.25
    /// Before the others of its host.
    public static let highPriority: Float = 0.75

    /// What the app set, and what the engine keeps of the task.
    struct Facts: Sendable {
        var description: String?
        var priority = URLSessionTask.defaultPriority
        var earliestBegin: Date?
        var expectsToSend: Int64?
        var expectsToReceive: Int64?
        var startsSuspended = false
        var destination: URL?
        /// `nil`: what stands there when the task is resumed.
        var replacesDestination: Bool?
        var listedPath: String?
        /// ``URLSessionDownloadTask/claimsDestination``.
        var claimsDestination = false
        /// ``URLSessionTask/isRefusalRead``.
        var isRefusalRead = false
        var expectedSHA256: String?
        var delegate: HeldDelegate?
        /// In a background session: the steps from `resume()` to the row in the ledger.
        var entry = TaskEntry.none
        /// Number in the ledger, once resumed in a background session.
        var row: Int64? { entry.row }
        /// The task was resumed in a background session.
        var isBegun: Bool { if case .none = entry { false } else { true } }
        /// Where an upload is on its server.
        var remoteURL: URL?
        /// Why it could not be started, or how it ended.
        var error: URLError?
        var isCanceling = false
        var isCompleted = false
        /// Of the call that made it; the delegate then does not hear of its end.
        var completion: (@Sendable (TransferEnd) -> Void)?
        /// Who reads its bytes as they come, in place of the delegate.
        var feed: ByteFeed?
        /// Where a redirect led.
        var currentRequest: URLRequest?
        var prefersIncrementalDelivery = true
        /// How it got on, of an ordinary task that ended, or when the ledger could be read last.
        var last: TaskStatus?
        /// The status of a background task at its end. Its delegate receives that, also if the ledger cannot be read in that moment.
        var end: TaskStatus?
    }

    let session: URLSession
    let facts = Mutex(Facts())

    /// Unique in the session, also over relaunches. Negative if none could be reserved: `resume()` then ends the task with the reason.
    open var taskIdentifier: Int { identifier }
    private let identifier: Int
    /// What was asked for.
    open var originalRequest: URLRequest? { request }
    private let request: URLRequest?
    /// What is asked for now.
    ///
    /// Differs from Apple: for a background task always the same; redirects show in the response's URL.
    open var currentRequest: URLRequest? { facts.withLock { $0.currentRequest } ?? originalRequest }

    init(session: URLSession, request: URLRequest?, identifier: Int? = nil) {
        self.session = session
        self.request = request
        self.identifier = identifier ?? session.engine.nextTaskIdentifier()
        super.init()
    }

    /// A task of nobody's: for the mocks of an app's tests, which subclass this class and its kinds.
    public override init() {
        session = .shared
        request = nil
        identifier = 0
        super.init()
    }

    private func change<Value>(_ key: WritableKeyPath<Facts, Value>, _ value: Value) {
        facts.withLock { $0[keyPath: key] = value }
        session.engine.update(self)
    }

    /// The app's own label; survives relaunch.
    open var taskDescription: String? {
        get { facts.withLock { $0.description } }
        set { change(\.description, newValue) }
    }

    /// 0…1, the greater first. Among equals the older first.
    open var priority: Float {
        get { facts.withLock { $0.priority } }
        set { change(\.priority, min(1, max(0, newValue.isNaN ? Self.defaultPriority : newValue))) }
    }

    /// Not before this moment. Background sessions only.
    open var earliestBeginDate: Date? {
        get { facts.withLock { $0.earliestBegin }.map(AppRuntime.shared.date(forApp:)) }
        set { change(\.earliestBegin, newValue.map(AppRuntime.shared.date(fromApp:))) }
    }

    /// The app's guess. Kept; nothing is decided by it yet.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { facts.withLock { $0.expectsToSend } ?? NSURLSessionTransferSizeUnknown }
        set { change(\.expectsToSend, newValue) }
    }

    /// The app's guess. Kept; nothing is decided by it yet.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { facts.withLock { $0.expectsToReceive } ?? NSURLSessionTransferSizeUnknown }
        set { change(\.expectsToReceive, newValue) }
    }

    /// Hears of this task in place of the session's delegate; what it leaves out the session's delegate hears. Set it before
    /// ``resume()``.
    ///
    /// Differs from Apple: background sessions have it, too. Where the session has no delegate, this process hears of the end of
    /// this task alone; once it is gone the app is launched for it.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { facts.withLock { $0.delegate }?.object as? any URLSessionTaskDelegate }
        set {
            let held = HeldDelegate(newValue)
            facts.withLock { $0.delegate = held }
        }
    }

    /// The app wants bytes as they come. Kept, without effect: an ordinary data task's delegate always gets them so.
    open var prefersIncrementalDelivery: Bool {
        get { facts.withLock { $0.prefersIncrementalDelivery } }
        set { facts.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    /// Number of the transfer in the ledger, once resumed: what `transfers` lists. Beyond Apple.
    public var transferNumber: Int64? { facts.withLock { $0.row } }

    /// The code that resumes the task reads ``error`` after that. If it is `false` and the task has no delegate, a failure to start is
    /// reported on standard error.
    package var isRefusalRead: Bool {
        get { facts.withLock { $0.isRefusalRead } }
        set { facts.withLock { $0.isRefusalRead = newValue } }
    }

    /// Each of these looks at the transfer as it is now. Cost: a read of the ledger, in a background session.
    open var state: State { session.engine.status(of: self).state }
    /// A person paused it, who alone lets it go on: it is ``State/suspended``, and `resume()` leaves it so. Beyond Apple.
    public var isPausedByPerson: Bool { session.engine.status(of: self).isPaused }
    /// Why it could not be started, or how it ended.
    open var error: (any Error)? { session.engine.status(of: self).error }
    /// The answer's head, once there is one.
    open var response: URLResponse? { session.engine.status(of: self).response }
    /// Bytes of the answer's body that are here.
    open var countOfBytesReceived: Int64 { session.engine.status(of: self).bytesReceived }
    /// -1 while nobody knows it.
    open var countOfBytesExpectedToReceive: Int64 { session.engine.status(of: self).bytesExpectedToReceive }
    /// Bytes of the request's body that went out.
    open var countOfBytesSent: Int64 { session.engine.status(of: self).bytesSent }
    /// Bytes of the request's body; ``NSURLSessionTransferSizeUnknown``: nobody knows.
    open var countOfBytesExpectedToSend: Int64 { session.engine.status(of: self).bytesExpectedToSend }

    /// Counts the task's bytes: those of the body it sends, else those it receives. Follows while this process hears of the
    /// session's tasks.
    open var progress: Progress { counts }
    private let counts = Progress(totalUnitCount: -1)

    /// Starts it, or lets it go on. In a background session durable when it returns; a failure to start is in ``error`` and
    /// told to the delegate.
    open func resume() { session.engine.resume(self) }

    /// Holds it; what has arrived is kept. It goes on with ``resume()``, in this process or a later one.
    open func suspend() { session.engine.suspend(self) }

    /// Ends it for good; its delegate hears `URLError.cancelled`.
    open func cancel() { session.engine.cancel(self) }
}

/// Of a size that nobody knows.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// How a transfer ended, for the call that made it.
struct TransferEnd: Sendable {
    var file: URL?
    var response: URLResponse?
    var error: URLError?
    /// The answer, where it came to memory.
    var data: Data?
}

/// An answer taken as data.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}  // because its base is

/// A download into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {  // because its base is
    let source: DownloadSource

    /// A task of nobody's, for mocks.
    public override init() {
        source = .resumeData(Data())
        super.init()
    }

    init(session: URLSession, source: DownloadSource, identifier: Int? = nil) {
        self.source = source
        switch source {
        case .request(let request): super.init(session: session, request: request, identifier: identifier)
        case .resumeData(let data):
            let resume = ResumeData(data)
            super.init(session: session, request: resume?.request, identifier: identifier)
            facts.withLock { $0.description = resume?.taskDescription }
        }
    }

    /// Where the whole file goes. Until it is whole and proven it grows beside it under a hidden name; then it takes its place
    /// in one step. What stood there when it was resumed is replaced; what appeared since is not, unless
    /// ``replacesDestination`` says so: the download then gets a numbered name beside it, which stands here when it has ended. An
    /// answer that is no file (404, say) is then an error. Set before `resume()`; an absolute file URL. Background sessions only;
    /// beyond Apple. `nil`: the delegate gets a temporary file.
    public var destination: URL? {
        get { facts.withLock { $0.destination } }
        set { facts.withLock { $0.destination = newValue } }
    }

    /// `true`: whatever stands at ``destination`` in the end is replaced. `false`, once set: nothing is, also what stands there when
    /// the task is resumed. Never set, only the latter is. Set before `resume()`. Background sessions only; beyond Apple.
    public var replacesDestination: Bool {
        get { facts.withLock { $0.replacesDestination ?? false } }
        set { facts.withLock { $0.replacesDestination = newValue } }
    }

    /// `resume()` fails if another unfinished download has the same ``destination``.
    package var claimsDestination: Bool {
        get { facts.withLock { $0.claimsDestination } }
        set { facts.withLock { $0.claimsDestination = newValue } }
    }

    /// 64 hex digits: a file with another SHA-256 is a failure. Set before `resume()`. Background sessions only; beyond Apple.
    public var expectedSHA256: String? {
        get { facts.withLock { $0.expectedSHA256 } }
        set { facts.withLock { $0.expectedSHA256 = newValue } }
    }

    /// Ends the download and gives what ``URLSession/downloadTask(withResumeData:)`` goes on from. `nil` where nothing can be:
    /// no byte is here yet, or the server gave no strong validator. What is kept is kept for a week.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        Task { completionHandler(await session.engine.cancelProducingResumeData(self)) }
    }

    /// Ends the download and gives what ``URLSession/downloadTask(withResumeData:)`` goes on from, or `nil`.
    open func cancelByProducingResumeData() async -> Data? { await session.engine.cancelProducingResumeData(self) }
}

/// An upload.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {  // because its base is
    /// `resume()` queues it suspended: its file is copied and safe, and nothing is sent before another `resume()`, in this
    /// process or a later one. Set before. Beyond Apple.
    public var startsSuspended: Bool {
        get { facts.withLock { $0.startsSuspended } }
        set { facts.withLock { $0.startsSuspended = newValue } }
    }

    /// Where the server has the file, once it was uploaded by an ``UploadDelivery`` that knows; without passwords. Beyond Apple.
    public var remoteURL: URL? { facts.withLock { $0.remoteURL } }

    let body: UploadBody?
    private let chosenDelivery = Mutex(UploadDelivery.plain)
    private let keys = Mutex<(chosen: String?, stored: String?)>((nil, nil))
    private let snapshot = Mutex<Snapshot?>(nil)

    /// A task of nobody's, for mocks.
    public override init() {
        body = nil
        super.init()
    }

    init(session: URLSession, request: URLRequest?, body: UploadBody?, identifier: Int? = nil) {
        self.body = body
        super.init(session: session, request: request, identifier: identifier)
    }

    /// The path that lists and messages name the file by, where it is not that of the file itself: it is a copy, say. Set before
    /// `resume()`. Beyond Apple.
    public var listedPath: String? {
        get { facts.withLock { $0.listedPath } }
        set { facts.withLock { $0.listedPath = newValue } }
    }

    /// How the file is put on the server. Set before `resume()`. Beyond Apple.
    public var delivery: UploadDelivery {
        get { chosenDelivery.withLock { $0 } }
        set { chosenDelivery.withLock { $0 = newValue } }
    }

    /// A name for this upload within its session, so that a process that died after `resume()` can do the same again:
    /// a task resumed under the key of an upload that runs or succeeded joins that one. Set before `resume()`.
    /// Beyond Apple; `nil`: every task is an upload of its own.
    public var submissionKey: String? {
        get { keys.withLock { $0.chosen } }
        set { keys.withLock { $0 = (newValue, newValue.map(BackgroundTransfers.stored)) } }
    }

    /// The submission key as it is stored. A process that has only the stored form of a key sets this instead of ``submissionKey``. A task of an upload
    /// that another process began has it as well.
    package var storedSubmissionKey: String? {
        get { keys.withLock { $0.stored } }
        set { keys.withLock { $0.stored = newValue } }
    }

    /// Always `nil`: no server that Stormy's plain uploads know can take an upload up again in its middle.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        Task { completionHandler(await session.engine.cancelProducingResumeData(self)) }
    }

    /// Always `nil`, see ``cancel(byProducingResumeData:)``.
    open func cancelByProducingResumeData() async -> Data? { await session.engine.cancelProducingResumeData(self) }

    /// Makes the snapshot now instead of in `resume()`, to learn early whether the file can be read. Beyond Apple.
    ///
    /// - Returns: the copy, and digest and size of what will be sent.
    /// - Throws: a description of why the file cannot be queued: missing, unreadable, not a file, changing.
    ///
    /// - Parameters:
    ///   - preparing: changes the copy before it is hashed (takes something out of a photo, say), and says whether it did. Whatever it
    ///     throws is thrown on, and nothing is kept. Only the first call's counts.
    ///   - checking: looks at the descriptor of the file that is to be copied: what its name leads to may change at any moment. What it throws is
    ///     thrown on, and nothing is copied.
    @discardableResult
    public func takeSnapshot(
        preparing: ((URL) throws -> Bool)? = nil, checking: ((Int32) throws -> Void)? = nil
    ) throws -> (file: URL, sha256: String, byteCount: Int64) {
        let taken = try currentSnapshot(preparing: preparing, checking: checking)
        return (AppRuntime.shared.directories.spooled(taken.name), taken.sha256, taken.byteCount)
    }

    func currentSnapshot(
        preparing: ((URL) throws -> Bool)? = nil, checking: ((Int32) throws -> Void)? = nil
    ) throws -> Snapshot {
        if let earlier = snapshot.withLock({ $0 }) { return earlier }
        guard let body else { throw URLError(.fileDoesNotExist) }
        _ = try AppRuntime.shared.ledger()
        let directories = AppRuntime.shared.directories
        let taken =
            switch body {
            case .file(let file):
                try Snapshot.take(
                    of: file, in: directories, allowsEmpty: delivery == .plain, preparing: preparing ?? { _ in false },
                    checking: checking ?? { _ in })
            case .data(let data): try Snapshot.store(data, in: directories)
            case .stream:
                throw URLError(
                    .unsupportedURL,
                    userInfo: [NSLocalizedDescriptionKey: "a background session uploads data and files, not streams"])
            }
        snapshot.withLock { $0 = taken }
        return taken
    }

    /// Removes a snapshot that will not be sent after all. Beyond Apple.
    public func discardSnapshot() {
        let taken = snapshot.withLock { snapshot in
            defer { snapshot = nil }
            return snapshot
        }
        taken?.discard()
    }
}
