import BackgroundRuntime
import Foundation
import ProcessSupport
import FoundationNetworking

/// Transfers over HTTP, in this process or, for a background configuration, in the app's agent.
///
/// **Differs from Apple.** The async calls and those with completion handlers work on a background session: they submit the
/// transfer and await it. Cancelling the await takes away the waiter, not the connection: for the grace time the transfer can
/// be adopted by a task with an equal request (``downloadTask(with:)-(URLRequest)``, ``uploadTask(with:fromFile:)``), which then delivers it
/// through `.backgroundTask(.urlSession(…))`. Awaits of equal requests on one background session share one transfer.
/// Several processes may have a session of one identifier at once; each event is told by one of them.
///
/// Left out, on both kinds of session: stream tasks (they end in `URLError.unsupportedURL`), informational responses,
/// `willBeginDelayedRequest` (declared, never called). Left out on background sessions: authentication challenges (a 401
/// is an answer; a request carries its own `Authorization`), upload streams, ``bytes(for:delegate:)``, web sockets, cookies, caches, stored
/// credentials and ``URLProtocol``.
///
/// A file that imports both this module and FoundationNetworking sees two types of this name: import this one alone.
open class URLSession: NSObject, @unchecked Sendable {  // because its engine guards what changes
    /// What to do about a request whose time has come.
    public enum DelayedRequestDisposition: Int, Sendable {
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }

    /// What to do about a question for a credential.
    public enum AuthChallengeDisposition: Int, Sendable {
        case useCredential = 0
        case performDefaultHandling = 1
        case cancelAuthenticationChallenge = 2
        case rejectProtectionSpace = 3
    }

    /// What to do about an answer's head.
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
    /// Where the delegate is called. One operation at a time.
    open var delegateQueue: OperationQueue { queue }
    private let queue: OperationQueue
    /// `nil` for the session that all of a process share.
    private let context: WorkContext?
    /// A label of the app's.
    open var sessionDescription: String?

    /// A copy: changes of it have no effect.
    open var configuration: URLSessionConfiguration { ownConfiguration.copied() }

    /// For a background session `delegate` hears of every ended transfer that the app was not told of yet, those of
    /// earlier processes first. The session holds its delegate until it is invalidated. A second session of an identifier
    /// in one process is the first one again, with the first one's delegate.
    ///
    /// - Parameters:
    ///   - configuration: copied: later changes of it have no effect.
    ///   - delegate: hears of what happens to tasks.
    ///   - delegateQueue: `nil`: a serial queue of the session's own.
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

    /// An ordinary session of the default configuration: for the mocks of an app's tests, which subclass this class.
    public override init() {
        ownConfiguration = .default
        queue = Self.serialQueue()
        context = WorkContext()
        engine = OrdinarySession(configuration: ownConfiguration, isShared: false)
        super.init()
        engine.attach(self, delegate: nil)
    }

    /// The process's own.
    private init(shared configuration: URLSessionConfiguration) {
        ownConfiguration = configuration
        queue = Self.serialQueue()
        context = nil
        engine = OrdinarySession(configuration: configuration, isShared: true)
        super.init()
        engine.attach(self, delegate: nil)
    }

    /// Calls the app on the delegate queue, as part of the process that made this session.
    func onDelegateQueue(_ body: @escaping @Sendable () -> Void) {
        delegateQueue.addOperation(context?.block(body) ?? body)
    }

    private static func serialQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    /// Hears of the session and its tasks. `nil` once it is invalid.
    open var delegate: (any URLSessionDelegate)? { engine.delegate }

    /// Resumes many tasks of this session at once. In a background session that is one durable commit instead of one each:
    /// for hundreds of tasks most of the time. Beyond Apple.
    public func resume(_ tasks: [URLSessionTask]) { engine.resume(tasks) }

    /// Lets go of the delegate when the tasks that this process resumed have ended; transfers that the agent was given by
    /// earlier processes go on.
    open func finishTasksAndInvalidate() { engine.invalidate(cancelling: false) }

    /// Cancels every transfer of the session, those of earlier processes too, and lets go of the delegate.
    open func invalidateAndCancel() { engine.invalidate(cancelling: true) }

    // MARK: Tasks

    /// Tasks of this process and of earlier ones, until the last delegate method of a task returned.
    ///
    /// In a background session these are also tasks that ended without this process. Their ``URLSessionTask/state`` is
    /// ``URLSessionTask/State/completed``; `resume()` and `cancel()` change nothing.
    ///
    /// If the agent's database cannot be read for a minute, standard error shows that, and the list has only tasks that this process
    /// knows. A new task is then refused if the list lacks one: it may be the same.
    open var allTasks: [URLSessionTask] { get async { engine.allTasks() } }

    /// ``allTasks`` by their kinds.
    open var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            let all = engine.allTasks()
            let uploads = all.compactMap { $0 as? URLSessionUploadTask }
            let datas = all.compactMap { $0 as? URLSessionDataTask }.filter { !($0 is URLSessionUploadTask) }
            return (datas, uploads, all.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    /// ``allTasks``, for a handler that is called on the delegate's queue.
    @preconcurrency open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        onDelegateQueue { completionHandler(self.engine.allTasks()) }
    }

    /// ``tasks``, for a handler.
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

    /// A task whose answer the delegate gets as data, while this process lives; later, when the app is launched for it.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        made(URLSessionDataTask(session: self, request: request))
    }

    /// A task for a GET of this address. It begins with `resume()`.
    open func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// A download into a file. In a background session it outlives this process; `resume()` starts it, or adopts an equal one
    /// whose await was cancelled.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .request(request)))
    }

    /// A task that puts the answer to a GET of this address into a file. It begins with `resume()`.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// A download that goes on where another was cancelled or failed. If the part is gone, or the server's file is another
    /// one by now, it begins anew. What is no resume data ends in `URLError.unsupportedURL`.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(session: self, source: .resumeData(resumeData)))
    }

    /// An upload that outlives this process. `resume()` takes a snapshot of the file: later changes to it, even
    /// its deletion, do not matter. A GET becomes a PUT.
    open func uploadTask(with request: URLRequest, fromFile file: URL) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .file(file)))
    }

    /// An upload of bytes.
    ///
    /// Differs from Apple: it outlives this process in a background session, too.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .data(bodyData)))
    }

    /// An upload of a stream, which the delegate is asked for: ``URLSessionTaskDelegate/urlSession(_:task:needNewBodyStream:)``. Sent in chunks, as
    /// nobody knows its length. Ordinary sessions only; in a background session it ends in `URLError.unsupportedURL`.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: request, body: .stream))
    }

    /// Always ends in `URLError.unsupportedURL`: no upload gives resume data yet.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        made(URLSessionUploadTask(session: self, request: nil, body: nil))
    }

    // MARK: Tasks with completion handlers

    /// The handler is called in place of the delegate, while this process lives.
    @preconcurrency open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        let task = dataTask(with: request)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// The same with a handler for its end, called on the session's delegate queue.
    @preconcurrency open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { dataTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// The handler is called in place of the delegate, while this process lives. The file exists until it returns.
    @preconcurrency open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(with: request)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// The same with a handler for its end, called on the session's delegate queue; the file is gone when it returns.
    @preconcurrency open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// The same, going on where another download stopped.
    @preconcurrency open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        let task = downloadTask(withResumeData: resumeData)
        task.facts.withLock { $0.completion = { completionHandler($0.error == nil ? $0.file : nil, $0.response, $0.error) } }
        return task
    }

    /// The handler is called in place of the delegate, while this process lives.
    @preconcurrency open func uploadTask(
        with request: URLRequest, fromFile file: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, fromFile: file)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// The handler is called in place of the delegate, while this process lives.
    @preconcurrency open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(with: request, from: bodyData ?? request.httpBody ?? Data())
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Always ends in `URLError.unsupportedURL`: no upload gives resume data yet.
    @preconcurrency open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        let task = uploadTask(withResumeData: resumeData)
        task.facts.withLock { $0.completion = Self.taking(completionHandler) }
        return task
    }

    /// Forgets cookies, cached answers and credentials of this session's stores, and calls back.
    ///
    /// Differs from Apple: connections stay open; they carry no secrets of their own.
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

    /// Everything is written at once: calls back.
    @preconcurrency open func flush(completionHandler: @escaping @Sendable () -> Void) {
        onDelegateQueue { completionHandler() }
    }

    /// The same as ``reset(completionHandler:)``.
    public func reset() async { await withCheckedContinuation { done in reset { done.resume() } } }

    /// The same as ``flush(completionHandler:)``.
    public func flush() async { await withCheckedContinuation { done in flush { done.resume() } } }

    private static func taking(
        _ handler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> @Sendable (TransferEnd) -> Void {
        { end in
            guard end.error == nil else { return handler(nil, end.response, end.error) }
            let data = try? end.data ?? end.file.flatMap { try PatientFile.contents(of: $0) } ?? Data()
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

    /// The whole answer, whatever its status.
    ///
    /// - Parameters:
    ///   - request: what is asked.
    ///   - delegate: asked about redirects and credentials. Ordinary sessions only.
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

    /// The whole answer in a file, whatever its status. The file is the caller's, in the temporary folder.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.request(request), delegate: delegate) }
    }

    /// The rest of a download that was cancelled or failed.
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited { try await engine.download(.resumeData(resumeData), delegate: delegate) }
    }

    /// Sends a file; gives the answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    nonisolated(nonsending) public func upload(
        for request: URLRequest, fromFile file: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited { try await engine.upload(for: request, from: .file(file), delegate: delegate) }
    }

    /// Sends bytes; gives the answer, whatever its status.
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

    /// The answer's head, whatever its status, and its bytes as they come. Ordinary sessions only.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled, `.unsupportedURL` in a background session.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) { try await engine.bytes(for: request, delegate: delegate) }
}
