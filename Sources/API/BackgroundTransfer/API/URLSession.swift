import BackgroundRuntime
import Foundation
import ProcessSupport
import FoundationNetworking

/// A session of transfers over HTTP. Transfers of a background session run in the app's agent, and other transfers run in this
/// process.
///
/// **Differs from Apple.** The async methods and the methods with completion handlers work on a background session: these methods
/// submit the transfer and await it. If the await is cancelled, the connection continues for the grace time. During this time a
/// task with an equal request (``downloadTask(with:)-(URLRequest)``, ``uploadTask(with:fromFile:)``) adopts the transfer and
/// delivers it through `.backgroundTask(.urlSession(…))`. Awaits of equal requests on one background session share one transfer.
/// Several processes can have sessions with one identifier at the same time. Each event is reported by only one of these sessions.
///
/// Not supported on both kinds of session: stream tasks (they fail with `URLError.unsupportedURL`), informational responses,
/// `willBeginDelayedRequest` (declared, never called). Not supported on background sessions: authentication challenges (a 401 is
/// the response; the app sets the `Authorization` header), upload streams, ``bytes(for:delegate:)``, web sockets, cookies, caches,
/// stored credentials and ``URLProtocol``.
///
/// Import only this module, because FoundationNetworking also has a type of this name.
open class URLSession: NSObject, @unchecked Sendable {  // because its engine guards all mutable state
    /// The decisions about a delayed request.
    public enum DelayedRequestDisposition: Int, Sendable {
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }

    /// The decisions about a request for a credential.
    public enum AuthChallengeDisposition: Int, Sendable {
        case useCredential = 0
        case performDefaultHandling = 1
        case cancelAuthenticationChallenge = 2
        case rejectProtectionSpace = 3
    }

    /// The decisions after the response headers.
    public enum ResponseDisposition: Int, Sendable {
        case cancel = 0
        case allow = 1
        case becomeDownload = 2
        case becomeStream = 3
    }

    /// An ordinary session of the default configuration, without a delegate. It cannot be invalidated.
    open class var shared: URLSession { sharedSession }
    private static let sharedSession = URLSession(shared: .default)

    private let ownConfiguration: URLSessionConfiguration
    let engine: any SessionEngine
    /// The queue on which the delegate is called. The queue runs one operation at a time.
    open var delegateQueue: OperationQueue { queue }
    private let queue: OperationQueue
    /// The context of the work that created the session. `nil` for the session that all code of a process shares.
    private let context: WorkContext?
    /// A label that the app sets.
    open var sessionDescription: String?

    /// A copy of the configuration. Changes to the copy have no effect.
    open var configuration: URLSessionConfiguration { ownConfiguration.copied() }

    /// Creates a session. For a background session, `delegate` receives the unreported events of all ended transfers, first of
    /// earlier processes. The session holds its delegate until the session is invalidated. If a session with the same identifier is
    /// open in this process, the new session uses that session's tasks and delegate.
    ///
    /// - Parameters:
    ///   - configuration: the properties of the session. The session copies these properties, so later changes have no effect.
    ///   - delegate: the receiver of the events of the session and its tasks.
    ///   - delegateQueue: the queue for the delegate. If `nil`, the session creates a serial queue.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) {
        let configuration = configuration.copied()
        ownConfiguration = configuration
        queue = delegateQueue ?? Self.serialQueue()
        context = WorkContext()
        if let identifier = configuration.identifier {
            engine = BackgroundSession.named(identifier, configuration)
        } else {
            engine = OrdinarySession(configuration: configuration, isShared: false)
        }
        super.init()
        engine.attach(self, delegate: delegate)
    }

    /// Creates an ordinary session of the default configuration, for the mocks of an app's tests (subclasses of this class).
    public override init() {
        ownConfiguration = .default
        queue = Self.serialQueue()
        context = WorkContext()
        engine = OrdinarySession(configuration: ownConfiguration, isShared: false)
        super.init()
        engine.attach(self, delegate: nil)
    }

    /// Creates the shared session of the process.
    private init(shared configuration: URLSessionConfiguration) {
        ownConfiguration = configuration
        queue = Self.serialQueue()
        context = nil
        engine = OrdinarySession(configuration: configuration, isShared: true)
        super.init()
        engine.attach(self, delegate: nil)
    }

    /// Calls the app on the delegate queue, as part of the process that created this session.
    func onDelegateQueue(_ body: @escaping @Sendable () -> Void) {
        delegateQueue.addOperation(context?.block(body) ?? body)
    }

    private static func serialQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    /// The delegate of the session. `nil` after the session became invalid.
    open var delegate: (any URLSessionDelegate)? { engine.delegate }

    /// Resumes many tasks of this session at once. A background session resumes these tasks in one durable commit. For hundreds of
    /// tasks, this takes much less time than one commit for each task. Beyond Apple.
    public func resume(_ tasks: [URLSessionTask]) { engine.resume(tasks) }

    /// Releases the delegate when the tasks that this process resumed have ended. Transfers of earlier processes continue.
    open func finishTasksAndInvalidate() { engine.invalidate(cancelling: false) }

    /// Cancels every transfer of the session, also transfers from earlier processes, and releases the delegate.
    open func invalidateAndCancel() { engine.invalidate(cancelling: true) }

    // MARK: Tasks

    /// The session's tasks, also of earlier processes. A task leaves the list when its last delegate method has returned.
    ///
    /// In a background session, the list also has tasks that ended while this process was not running. The ``URLSessionTask/state``
    /// of such a task is ``URLSessionTask/State/completed``. `resume()` and `cancel()` have no effect on it.
    ///
    /// If the agent's database (ledger) cannot be read for a minute, a message is printed on standard error. The list then has only
    /// the tasks of this process. A new task then fails if the list lacks a task, because both tasks may be the same.
    open var allTasks: [URLSessionTask] { get async { engine.allTasks() } }

    /// The tasks of ``allTasks``, separated by kind.
    open var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            let all = engine.allTasks()
            let uploads = all.compactMap { $0 as? URLSessionUploadTask }
            let datas = all.compactMap { $0 as? URLSessionDataTask }.filter { !($0 is URLSessionUploadTask) }
            return (datas, uploads, all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// Passes ``allTasks`` to a handler. The handler is called on the delegate's queue.
    @preconcurrency open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        onDelegateQueue { completionHandler(self.engine.allTasks()) }
    }

    /// Passes ``tasks`` to a handler.
    @preconcurrency open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        Task {
            let (datas, uploads, downloads) = await tasks
            onDelegateQueue { completionHandler(datas, uploads, downloads) }
        }
    }

    private func made<Made: URLSessionTask>(_ task: Made) -> Made {
        engine.add(task)
        return task
    }

    /// Makes a task whose response the delegate receives as data. In a background session, a later launch may receive it.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        made(URLSessionDataTask(session: self, request: request))
    }

    /// Makes a task for a GET of this address. `resume()` starts the task.
    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// Makes a task that downloads into a file. In a background session the download continues after this process ends. `resume()`
    /// starts the download, or adopts a download of an equal request whose await was cancelled.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .request(request)))
    }

    /// Makes a task that stores the response to a GET of this address in a file. `resume()` starts the task.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// Makes a task that continues a cancelled or failed download. If the partial file is missing or the server's file has changed,
    /// the download begins from the start. If the data is not valid resume data, the task fails with `URLError.unsupportedURL`.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .resumeData(resumeData)))
    }

    /// Makes a task that uploads a file. In a background session the upload continues after this process ends. `resume()` copies
    /// the file, so the app can change or delete the file later. The method GET becomes PUT.
    open func uploadTask(with request: URLRequest, fromFile file: URL) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .file(file)))
    }

    /// Makes an upload of bytes.
    ///
    /// Differs from Apple: in a background session the upload also continues after this process ends.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .data(bodyData)))
    }

    /// Makes an upload of a stream, which ``URLSessionTaskDelegate/urlSession(_:task:needNewBodyStream:)`` provides. The stream is
    /// sent in chunks, because its length is not known. In a background session the task fails with `URLError.unsupportedURL`.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .stream))
    }

    /// Makes a task that always fails with `URLError.unsupportedURL`, because uploads give no resume data.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: nil, body: nil))
    }

    // MARK: Tasks with completion handlers

    /// Makes a data task with a handler, which is called instead of the delegate while this process is running.
    @preconcurrency open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        let task = dataTask(with: request)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Makes a data task with a handler, which is called on the session's delegate queue when the task ends.
    @preconcurrency open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { dataTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Makes a download with a handler, which is called instead of the delegate while this process is running. The file exists
    /// until the handler returns.
    @preconcurrency open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(with: request)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// Makes a download with a handler, called on the session's delegate queue at the end. The file is then removed.
    @preconcurrency open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Makes a task with a handler that continues a cancelled or failed download.
    @preconcurrency open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(withResumeData: resumeData)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// Makes an upload of a file with a handler, which is called instead of the delegate while this process is running.
    @preconcurrency open func uploadTask(
        with request: URLRequest, fromFile file: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, fromFile: file)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Makes an upload of bytes with a handler, which is called instead of the delegate while this process is running.
    @preconcurrency open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, from: bodyData ?? request.httpBody ?? Data())
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Makes a task that always fails with `URLError.unsupportedURL`, because uploads give no resume data.
    @preconcurrency open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(withResumeData: resumeData)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Removes the cookies, cached responses and credentials from this session's stores, and calls the handler.
    ///
    /// Differs from Apple: connections stay open, because they contain no secrets.
    @preconcurrency open func reset(completionHandler: @escaping @Sendable () -> Void) {
        let ownConfiguration = ownConfiguration.resolved()
        onDelegateQueue {
            ownConfiguration.urlCache?.removeAllCachedResponses()
            ownConfiguration.httpCookieStorage?.removeCookies(since: .distantPast)
            if let storage = ownConfiguration.urlCredentialStorage {
                for (space, users) in storage.allCredentials {
                    for credential in users.values { storage.remove(credential, for: space) }
                }
            }
            completionHandler()
        }
    }

    /// Calls the handler. Nothing needs to be flushed, because all data is written at once.
    @preconcurrency open func flush(completionHandler: @escaping @Sendable () -> Void) {
        onDelegateQueue { completionHandler() }
    }

    /// Does the same as ``reset(completionHandler:)``.
    public func reset() async { await withCheckedContinuation { done in reset { done.resume() } } }

    /// Does the same as ``flush(completionHandler:)``.
    public func flush() async { await withCheckedContinuation { done in flush { done.resume() } } }

    private static func taking(
        _ handler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> @Sendable (TransferEnd) -> Void {
        { end in
            guard end.error == nil else { return handler(nil, end.response, end.error) }
            let data = try? end.data ?? end.file.flatMap { try RetriedFileRead.contents(of: $0) } ?? Data()
            handler(data, end.response, data == nil ? URLError(.cannotOpenFile) : nil)
        }
    }

    // MARK: Async

    /// See ``data(for:delegate:)``.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Returns the complete response, for any HTTP status.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - delegate: receives redirects and challenges. Ordinary sessions only.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { try await awaited { try await engine.data(for: request, delegate: delegate) } }

    /// See ``download(for:delegate:)``.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        URL, URLResponse
    ) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Returns the complete response in a file, for any HTTP status. The file is in the temporary folder and belongs to the caller.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.request(request), delegate: delegate) }
    }

    /// Continues a cancelled or failed download, and returns the complete response in a file.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.resumeData(resumeData), delegate: delegate) }
    }

    /// Sends a file and returns the response, for any HTTP status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func upload(
        for request: URLRequest, fromFile file: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited { try await engine.upload(for: request, from: .file(file), delegate: delegate) }
    }

    /// Sends bytes and returns the response, for any HTTP status.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited { try await engine.upload(for: request, from: .data(bodyData), delegate: delegate) }
    }

    /// See ``bytes(for:delegate:)``.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func bytes(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// Returns the response headers, for any HTTP status, and the bytes in the order in which they arrive. Ordinary sessions only.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled, `.unsupportedURL` in a background session.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) { try await engine.bytes(for: request, delegate: delegate) }
}
