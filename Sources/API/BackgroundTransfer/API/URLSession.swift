import BackgroundRuntime
import Foundation
import ProcessSupport
import FoundationNetworking

/// A session of transfers over HTTP. The agent makes the transfers of background sessions. This process makes all others.
///
/// **Differs from Apple.** The async methods and the methods with completion handlers also work on a background session. If an
/// await is cancelled, its transfer continues for the grace time. If the app resumes a task with an equal request within this
/// time, the task takes over the transfer (``downloadTask(with:)-(URLRequest)``, ``uploadTask(with:fromFile:)``). The action of
/// `.backgroundTask(.urlSession(…))` then receives the result. Awaits of equal requests on one background session share one
/// transfer. Several processes can have sessions with the same identifier. Only one of these sessions reports each event.
///
/// No session supports stream tasks (which fail with `URLError.unsupportedURL`), informational responses, or
/// `willBeginDelayedRequest` (which is never called). Background sessions also do not support authentication challenges (the app
/// receives the 401 response and must set the `Authorization` header), upload streams, ``bytes(for:delegate:)``, web sockets,
/// cookies, caches, stored credentials and ``URLProtocol``.
///
/// Do not import FoundationNetworking, because it also has a type with the name `URLSession`.
open class URLSession: NSObject, @unchecked Sendable {  // Unchecked, because its engine guards all mutable state
    /// The decisions of a delegate about a delayed request.
    public enum DelayedRequestDisposition: Int, Sendable {
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }

    /// The decisions of a delegate about a request for a credential.
    public enum AuthChallengeDisposition: Int, Sendable {
        case useCredential = 0
        case performDefaultHandling = 1
        case cancelAuthenticationChallenge = 2
        case rejectProtectionSpace = 3
    }

    /// The decisions of a delegate after the response headers have arrived.
    public enum ResponseDisposition: Int, Sendable {
        case cancel = 0
        case allow = 1
        case becomeDownload = 2
        case becomeStream = 3
    }

    /// An ordinary session of the default configuration, without a delegate. This session cannot be invalidated.
    open class var shared: URLSession { sharedSession }
    private static let sharedSession = URLSession(shared: .default)

    private let ownConfiguration: URLSessionConfiguration
    let engine: any SessionEngine
    /// The queue on which the delegate is called. The queue runs one operation at a time.
    open var delegateQueue: OperationQueue { queue }
    private let queue: OperationQueue
    /// The simulated process (on a test host) that created the session, or `nil` for ``shared``.
    private let context: WorkContext?
    /// A label that the app sets.
    open var sessionDescription: String?

    /// A copy of the configuration. Changes to the copy have no effect.
    open var configuration: URLSessionConfiguration { ownConfiguration.copied() }

    /// Creates a session. For a background session, `delegate` receives the unreported events of all ended transfers, and the
    /// transfers of earlier processes come first. The session keeps a reference to the delegate until the session is invalidated.
    /// If this process has an open session with this identifier, the sessions share the tasks and the first delegate.
    ///
    /// - Parameters:
    ///   - configuration: the properties of the session. The session copies these properties, so later changes have no effect.
    ///   - delegate: the object that receives the events of the session and of the session's tasks.
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

    /// Creates an ordinary session of the default configuration. A subclass can replace a session in a test.
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

    /// Runs code of the app on the delegate queue. On a test host, the code belongs to the process that created this session.
    func onDelegateQueue(_ body: @escaping @Sendable () -> Void) {
        delegateQueue.addOperation(context?.block(body) ?? body)
    }

    private static func serialQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    /// The delegate of the session, or `nil` after the session became invalid.
    open var delegate: (any URLSessionDelegate)? { engine.delegate }

    /// Resumes several tasks of this session together. A background session resumes the tasks in one durable commit, which takes
    /// little time. Apple's API has no equivalent.
    public func resume(_ tasks: [URLSessionTask]) { engine.resume(tasks) }

    /// Releases the delegate when the tasks that this process resumed have ended. Transfers of earlier processes continue.
    open func finishTasksAndInvalidate() { engine.invalidate(cancelling: false) }

    /// Cancels every transfer of the session, also transfers that earlier processes began, and releases the delegate.
    open func invalidateAndCancel() { engine.invalidate(cancelling: true) }

    // MARK: Tasks

    /// The session's tasks, including tasks of earlier processes. A task is removed from the list when the last delegate method
    /// for this task has returned.
    ///
    /// In a background session, the list also contains tasks that ended while this process was not running. Such a task is
    /// ``URLSessionTask/State/completed``, and `resume()` and `cancel()` have no effect.
    ///
    /// If the agent's database (ledger) cannot be read for a minute, a message is printed on standard error. The list then
    /// contains only the tasks of this process. A task that the app then creates fails, because the ledger may contain an equal task.
    open var allTasks: [URLSessionTask] { get async { engine.allTasks() } }

    /// The tasks of ``allTasks``, as one array for each kind of task.
    open var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            let all = engine.allTasks()
            let uploads = all.compactMap { $0 as? URLSessionUploadTask }
            let datas = all.compactMap { $0 as? URLSessionDataTask }.filter { !($0 is URLSessionUploadTask) }
            return (datas, uploads, all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// Calls a handler on the delegate's queue with the value of ``allTasks``.
    @preconcurrency open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        onDelegateQueue { completionHandler(self.engine.allTasks()) }
    }

    /// Calls a handler on the delegate's queue with the value of ``tasks``.
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

    /// Creates a task whose response the delegate receives as data. A later launch may receive the response of a background task.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        made(URLSessionDataTask(session: self, request: request))
    }

    /// Creates a task that requests this address with GET. `resume()` starts the task.
    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// Creates a task that downloads into a file. In a background session the download continues after this process ends.
    /// `resume()` starts the download, or takes over the download of an equal request whose await was cancelled.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .request(request)))
    }

    /// Creates a task that requests this address with GET and stores the response in a file. `resume()` starts the task.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// Creates a task that continues a cancelled or failed download. If the partial file is missing or the server's file has
    /// changed, the download begins from the start. If the data is not valid, the task fails with `URLError.unsupportedURL`.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .resumeData(resumeData)))
    }

    /// Creates a task that uploads a file. In a background session the upload continues after this process ends. `resume()`
    /// copies the file, so the app can change or delete the file later. If the method is GET, PUT is used.
    open func uploadTask(with request: URLRequest, fromFile file: URL) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .file(file)))
    }

    /// Creates a task that uploads bytes.
    ///
    /// Differs from Apple: in a background session the upload also continues after this process ends.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .data(bodyData)))
    }

    /// Creates a task that uploads a stream, which ``URLSessionTaskDelegate/urlSession(_:task:needNewBodyStream:)`` provides. The
    /// stream is sent in chunks, because its length is not known. In a background session the task fails with
    /// `URLError.unsupportedURL`.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .stream))
    }

    /// Creates a task that always fails with `URLError.unsupportedURL`, because uploads do not provide resume data.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: nil, body: nil))
    }

    // MARK: Tasks with completion handlers

    /// Creates a data task with a handler. While this process is running, the session calls the handler instead of the delegate.
    @preconcurrency open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        let task = dataTask(with: request)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Creates a data task with a handler. The session calls the handler on the delegate queue when the task ends.
    @preconcurrency open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { dataTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Creates a download task with a handler. Until this process ends, the handler is called instead of the delegate. The file
    /// exists until the handler returns.
    @preconcurrency open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(with: request)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// Creates a download task with a handler. The downloaded file exists until the handler returns.
    @preconcurrency open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Creates a task, with a completion handler, that continues a cancelled or failed download.
    @preconcurrency open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(withResumeData: resumeData)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// Creates a task that uploads a file. While this process is running, the session calls the handler instead of the delegate.
    @preconcurrency open func uploadTask(
        with request: URLRequest, fromFile file: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, fromFile: file)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Creates a task that uploads bytes. While this process is running, the session calls the handler instead of the delegate.
    @preconcurrency open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, from: bodyData ?? request.httpBody ?? Data())
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Creates a task that always fails with `URLError.unsupportedURL`, because uploads do not provide resume data.
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
    /// Differs from Apple: open connections are not closed, because connections contain no secrets.
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

    /// Calls the handler. The method does nothing else, because each change is written to the disk immediately.
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

    /// Requests an address with GET, like ``data(for:delegate:)``.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends a request and returns the complete response, for any HTTP status.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - delegate: the delegate for redirects and challenges. Only ordinary sessions call this delegate.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { try await awaited { try await engine.data(for: request, delegate: delegate) } }

    /// Requests an address with GET, like ``download(for:delegate:)``.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        URL, URLResponse
    ) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends a request and returns the complete response in a file, for any HTTP status. The file is temporary, and the caller
    /// owns it.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.request(request), delegate: delegate) }
    }

    /// Continues a cancelled or failed download, and returns the complete response in a file.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.resumeData(resumeData), delegate: delegate) }
    }

    /// Sends a file and returns the response, for any HTTP status.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func upload(
        for request: URLRequest, fromFile file: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited { try await engine.upload(for: request, from: .file(file), delegate: delegate) }
    }

    /// Sends bytes and returns the response, for any HTTP status.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    nonisolated(nonsending) public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited { try await engine.upload(for: request, from: .data(bodyData), delegate: delegate) }
    }

    /// Requests an address with GET, like ``bytes(for:delegate:)``.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func bytes(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// Returns the response headers, for any HTTP status, and a sequence of bytes, in an ordinary session.
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled, or `.unsupportedURL` for a background
    ///   session.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) { try await engine.bytes(for: request, delegate: delegate) }
}
