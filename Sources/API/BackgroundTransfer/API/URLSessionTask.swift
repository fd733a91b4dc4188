import Spool
import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// A transfer of a session. A new task is suspended, and ``resume()`` starts it. A resumed task of a background session continues
/// after this process ends.
///
/// Differs from Apple: a task of a background session that is never resumed ends with its process.
open class URLSessionTask: NSObject, ProgressReporting, @unchecked Sendable {  // because the mutex guards all mutable state
    /// The states of a task.
    public enum State: Int, Sendable {
        case running = 0
        case suspended = 1
        case canceling = 2
        case completed = 3
    }

    /// The priority of a task whose priority was not set.
    public static let defaultPriority: Float = 0.5
    /// A priority below the default. The task begins after other tasks for the same host.
    public static let lowPriority: Float = 0.25
    /// A priority above the default. The task begins before other tasks for the same host.
    public static let highPriority: Float = 0.75

    /// The properties that the app set, and the data that the engine stores for the task.
    struct Facts: Sendable {
        var description: String?
        var priority = URLSessionTask.defaultPriority
        var earliestBegin: Date?
        var expectsToSend: Int64?
        var expectsToReceive: Int64?
        var startsSuspended = false
        var destination: URL?
        /// `nil` if the app has not set ``URLSessionDownloadTask/replacesDestination``.
        var replacesDestination: Bool?
        var listedPath: String?
        var claimsDestination = false
        var isRefusalRead = false
        var expectedSHA256: String?
        var delegate: HeldDelegate?
        /// The step that a background task has reached between `resume()` and the write of its row to the ledger.
        var entry = TaskEntry.none
        /// The number of the transfer in the ledger, or `nil` if the ledger does not contain the task.
        var row: Int64? { entry.row }
        /// `true` if the task belongs to a background session and was resumed.
        var isBegun: Bool { if case .none = entry { false } else { true } }
        /// The address of an uploaded file on its server.
        var remoteURL: URL?
        /// The error that prevented the start of the task, or that ended it.
        var error: URLError?
        var isCanceling = false
        var isCompleted = false
        /// The completion handler. If a handler is set, the delegate does not receive the result.
        var completion: (@Sendable (TransferEnd) -> Void)?
        /// If this buffer is set, the buffer receives the response's bytes, and the delegate does not.
        var feed: ByteFeed?
        /// The request after a redirect.
        var currentRequest: URLRequest?
        var prefersIncrementalDelivery = true
        /// The last status of an ended ordinary task, or the last status that was read from the ledger.
        var last: TaskStatus?
        /// The final status of an ended background task. The delegate needs this status even if the ledger cannot be read.
        var end: TaskStatus?
    }

    let session: URLSession
    let facts = Mutex(Facts())

    /// The identifier of the task, which is unique in the session, also after relaunches of the app. If no identifier could be
    /// reserved, the identifier is negative, and `resume()` ends the task with an error.
    open var taskIdentifier: Int { identifier }
    private let identifier: Int
    /// The request with which the app made the task, or the request in the resume data.
    open var originalRequest: URLRequest? { request }
    private let request: URLRequest?
    /// The request that is being sent.
    ///
    /// Differs from Apple: for a background task the value is always the original request. After a redirect, the URL of the
    /// response is the new address.
    open var currentRequest: URLRequest? { facts.withLock { $0.currentRequest } ?? originalRequest }

    init(session: URLSession, request: URLRequest?, identifier: Int? = nil) {
        self.session = session
        self.request = request
        self.identifier = identifier ?? session.engine.nextTaskIdentifier()
        super.init()
    }

    /// Creates a task for tests. A test uses a subclass of this class (a mock) instead of a real task.
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

    /// A label that the app sets. The label is kept after a relaunch of the app.
    open var taskDescription: String? {
        get { facts.withLock { $0.description } }
        set { change(\.description, newValue) }
    }

    /// The priority from 0 to 1. A task with a higher priority begins first. With equal priorities, the oldest task begins first.
    open var priority: Float {
        get { facts.withLock { $0.priority } }
        set { change(\.priority, min(1, max(0, newValue.isNaN ? Self.defaultPriority : newValue))) }
    }

    /// The earliest time at which a task of a background session begins.
    open var earliestBeginDate: Date? {
        get { facts.withLock { $0.earliestBegin }.map(AppRuntime.shared.date(forApp:)) }
        set { change(\.earliestBegin, newValue.map(AppRuntime.shared.date(fromApp:))) }
    }

    /// The number of bytes that the app expects to send. The value is stored and has no effect.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { facts.withLock { $0.expectsToSend } ?? NSURLSessionTransferSizeUnknown }
        set { change(\.expectsToSend, newValue) }
    }

    /// The number of bytes that the app expects to receive. The value is stored and has no effect.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { facts.withLock { $0.expectsToReceive } ?? NSURLSessionTransferSizeUnknown }
        set { change(\.expectsToReceive, newValue) }
    }

    /// A delegate for this task, called instead of the session's delegate. If this delegate does not implement a method, the
    /// session's delegate is called. Set this delegate before ``resume()``.
    ///
    /// Differs from Apple: tasks of background sessions can also have a delegate. If the session has no delegate, this process
    /// receives only the end of this task. If this process has ended before, the agent launches the app for this end.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { facts.withLock { $0.delegate }?.object as? any URLSessionTaskDelegate }
        set {
            let held = HeldDelegate(newValue)
            facts.withLock { $0.delegate = held }
        }
    }

    /// A Boolean value that indicates whether the app receives bytes as they arrive. The value is stored and has no effect,
    /// because the delegate of an ordinary data task always receives bytes as they arrive.
    open var prefersIncrementalDelivery: Bool {
        get { facts.withLock { $0.prefersIncrementalDelivery } }
        set { facts.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    /// The number of the transfer in the agent's database (ledger), or `nil` before `resume()`. The command `transfers` lists
    /// this number. Apple's API has no equivalent.
    public var transferNumber: Int64? { facts.withLock { $0.row } }

    /// `true` if the code that calls ``resume()`` reads ``error`` after the call. If the value is `false` and the task has no
    /// delegate, a failure to start is printed on standard error.
    package var isRefusalRead: Bool {
        get { facts.withLock { $0.isRefusalRead } }
        set { facts.withLock { $0.isRefusalRead = newValue } }
    }

    /// The current state of the task. Cost: in a background session this property and the byte counts read the ledger.
    open var state: State { session.engine.status(of: self).state }
    /// A Boolean value that indicates whether the user paused the transfer. Only the user can end the pause. The state is
    /// ``State/suspended``, and `resume()` does not change it. Apple's API has no equivalent.
    public var isPausedByPerson: Bool { session.engine.status(of: self).isPaused }
    /// The error that prevented the start of the task, or that ended it.
    open var error: (any Error)? { session.engine.status(of: self).error }
    /// The response headers, or `nil` if they have not arrived.
    open var response: URLResponse? { session.engine.status(of: self).response }
    /// The number of received bytes of the response body.
    open var countOfBytesReceived: Int64 { session.engine.status(of: self).bytesReceived }
    /// The expected number of bytes of the response body, or -1 if the number is not known.
    open var countOfBytesExpectedToReceive: Int64 { session.engine.status(of: self).bytesExpectedToReceive }
    /// The number of sent bytes of the request body.
    open var countOfBytesSent: Int64 { session.engine.status(of: self).bytesSent }
    /// The number of bytes of the request body, or ``NSURLSessionTransferSizeUnknown`` if the number is not known.
    open var countOfBytesExpectedToSend: Int64 { session.engine.status(of: self).bytesExpectedToSend }

    /// The progress in bytes of the request body, or of the response body if the request has no body. The progress is updated
    /// while this process receives events of the session's tasks.
    open var progress: Progress { counts }
    private let counts = Progress(totalUnitCount: -1)

    /// Starts or continues the task. In a background session the task is stored in the ledger when this method returns. If the
    /// task cannot start, ``error`` contains the reason, and the delegate is called.
    open func resume() { session.engine.resume(self) }

    /// Suspends the task. Received bytes are kept. ``resume()`` continues the task, in this process or in a later process.
    open func suspend() { session.engine.suspend(self) }

    /// Ends the task. The task's delegate receives `URLError.cancelled`.
    open func cancel() { session.engine.cancel(self) }
}

/// The value that represents an unknown size.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// The result of an ended transfer, for the code that waits for the transfer.
struct TransferEnd: Sendable {
    var file: URL?
    var response: URLResponse?
    var error: URLError?
    /// The response body, if it was stored in memory.
    var data: Data?
}

/// A task whose response is received as data.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}  // Unchecked, because the base class is unchecked Sendable

/// A task that downloads into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {  // because the base class is unchecked Sendable
    let source: DownloadSource

    /// Creates a task for a mock in a test.
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

    /// The path of the complete file, as an absolute file URL. The incomplete file has a hidden name in the same folder. When the
    /// file is complete and verified, the file is renamed to this path in one step.
    ///
    /// If a file exists at this path when the task is resumed, the download replaces this file. A file that is created later is
    /// replaced only if ``replacesDestination`` is `true`. Otherwise the download gets a numbered name, and this property
    /// contains the new path after the end.
    ///
    /// If the response is not a file (for example 404), the task fails. Set this property before `resume()`. If the property is
    /// `nil`, the delegate receives a temporary file. Only background tasks use the property. Apple's API has no equivalent.
    public var destination: URL? {
        get { facts.withLock { $0.destination } }
        set { facts.withLock { $0.destination = newValue } }
    }

    /// The rule for an existing file at ``destination``. If `true`, a file that exists at the end of the download is replaced. If
    /// the app sets `false`, no file is replaced. If the app sets no value, only a file that exists when `resume()` is called is
    /// replaced. Set the rule before `resume()`. Only background tasks use the rule. Apple's API has no equivalent.
    public var replacesDestination: Bool {
        get { facts.withLock { $0.replacesDestination ?? false } }
        set { facts.withLock { $0.replacesDestination = newValue } }
    }

    /// `true` if `resume()` fails when another unfinished download has the same ``destination``.
    package var claimsDestination: Bool {
        get { facts.withLock { $0.claimsDestination } }
        set { facts.withLock { $0.claimsDestination = newValue } }
    }

    /// The expected SHA-256 of the file, as 64 hex digits. If the file has another SHA-256, the task fails. Set this property
    /// before `resume()`. Only background tasks use this value. Apple's API has no equivalent.
    public var expectedSHA256: String? {
        get { facts.withLock { $0.expectedSHA256 } }
        set { facts.withLock { $0.expectedSHA256 = newValue } }
    }

    /// Ends the download and calls the handler with resume data for ``URLSession/downloadTask(withResumeData:)``. If no byte has
    /// arrived, or the response has no strong validator, the data is `nil`. The partial file is kept for a week.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        Task { completionHandler(await session.engine.cancelProducingResumeData(self)) }
    }

    /// Ends the download and returns resume data for ``URLSession/downloadTask(withResumeData:)``, or `nil`.
    open func cancelByProducingResumeData() async -> Data? { await session.engine.cancelProducingResumeData(self) }
}

/// A task that uploads a file, data or a stream.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {  // because the base class is unchecked Sendable
    /// A Boolean value that indicates whether the first `resume()` only copies and queues the file. The file is sent after a
    /// second `resume()`, in this or a later process. Set the value before the first `resume()`. Apple's API has no equivalent.
    public var startsSuspended: Bool {
        get { facts.withLock { $0.startsSuspended } }
        set { facts.withLock { $0.startsSuspended = newValue } }
    }

    /// The address of the uploaded file, without passwords, if the ``UploadDelivery`` provides it. Apple's API has no equivalent.
    public var remoteURL: URL? { facts.withLock { $0.remoteURL } }

    let body: UploadBody?
    private let chosenDelivery = Mutex(UploadDelivery.plain)
    private let keys = Mutex<(chosen: String?, stored: String?)>((nil, nil))
    private let snapshot = Mutex<Snapshot?>(nil)

    /// Creates a task for a mock in a test.
    public override init() {
        body = nil
        super.init()
    }

    init(session: URLSession, request: URLRequest?, body: UploadBody?, identifier: Int? = nil) {
        self.body = body
        super.init(session: session, request: request, identifier: identifier)
    }

    /// The path that lists of transfers show for the file. If the uploaded file is a copy, set this property before `resume()`.
    /// Apple's API has no equivalent.
    public var listedPath: String? {
        get { facts.withLock { $0.listedPath } }
        set { facts.withLock { $0.listedPath = newValue } }
    }

    /// The method by which the file is stored on the server. Set this property before `resume()`. Apple's API has no equivalent.
    public var delivery: UploadDelivery {
        get { chosenDelivery.withLock { $0 } }
        set { chosenDelivery.withLock { $0 = newValue } }
    }

    /// A name for this upload, unique in its session. If a running or successful upload has the same key, `resume()` joins that
    /// upload. A process that was killed after `resume()` can therefore submit the same upload again. If `nil`, every task is a
    /// separate upload. Set the key before `resume()`. Apple's API has no equivalent.
    ///
    /// Set a key if a handler begins several uploads. If the process is killed while the handler runs, the handler is called
    /// again, and begins the missing uploads. Without keys, the handler is not called again after it has begun the first upload.
    public var submissionKey: String? {
        get { keys.withLock { $0.chosen } }
        set { keys.withLock { $0 = (newValue, newValue.map(BackgroundTransfers.stored)) } }
    }

    /// The stored form of the submission key. A process that knows only the stored form of a key sets this property instead of
    /// ``submissionKey``. If another process began an upload, the task of this upload also has this value.
    package var storedSubmissionKey: String? {
        get { keys.withLock { $0.stored } }
        set { keys.withLock { $0.stored = newValue } }
    }

    /// Ends the upload. The handler always receives `nil`, because uploads provide no resume data.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        Task { completionHandler(await session.engine.cancelProducingResumeData(self)) }
    }

    /// Ends the upload and returns `nil`, because uploads provide no resume data.
    open func cancelByProducingResumeData() async -> Data? { await session.engine.cancelProducingResumeData(self) }

    /// Copies the file now instead of in `resume()`, so that the app detects an unreadable file early. Apple's API has no
    /// equivalent.
    ///
    /// - Returns: the copy, and the digest and size of the data that will be sent.
    /// - Throws: an error with the reason why the file cannot be queued, for example because the file is missing.
    ///
    /// - Parameters:
    ///   - preparing: a closure that can change the copy before the copy is hashed, for example to remove metadata from a photo.
    ///     The closure returns whether it changed the copy. If the closure throws, this method throws the same error and keeps no
    ///     copy. Only the closure of the first call is used.
    ///   - checking: a closure that checks the file's descriptor before the copy, because the file at a path can change at any
    ///     moment. If the closure throws, this method throws the same error and makes no copy.
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
                try Snapshot.make(
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

    /// Removes the agent's copy of a file that will not be sent. Apple's API has no equivalent.
    public func discardSnapshot() {
        let taken = snapshot.withLock { snapshot in
            defer { snapshot = nil }
            return snapshot
        }
        taken?.discard()
    }
}
