import Foundation
import FoundationNetworking

/// The implementation of a session and the session's tasks. The agent makes the transfers of a background session. This process
/// makes the transfers of an ordinary session.
protocol SessionEngine: AnyObject, Sendable {
    /// Returns the identifier for a new task.
    func nextTaskIdentifier() -> Int
    func add(_ task: URLSessionTask)
    func resume(_ task: URLSessionTask)
    func resume(_ tasks: [URLSessionTask])
    func suspend(_ task: URLSessionTask)
    func cancel(_ task: URLSessionTask)
    func cancelProducingResumeData(_ task: URLSessionTask) async -> Data?
    /// Applies a change of the label, priority or earliest begin date of a running task.
    func update(_ task: URLSessionTask)
    func status(of task: URLSessionTask) -> TaskStatus
    func allTasks() -> [URLSessionTask]
    func invalidate(cancelling: Bool)

    var delegate: (any URLSessionDelegate)? { get }
    func attach(_ session: URLSession, delegate: (any URLSessionDelegate)?)

    /// - Parameter delegate: the delegate of this task. A background session does not call this delegate for decisions.
    func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (Data, URLResponse)
    func download(_ source: DownloadSource, delegate: (any URLSessionTaskDelegate)?) async throws -> (URL, URLResponse)
    /// Returns the response headers, and a sequence that provides the bytes of the body as they arrive.
    func bytes(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (
        URLSession.AsyncBytes, URLResponse
    )
    func upload(
        for request: URLRequest, from body: UploadBody, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse)
}

/// The progress of a task at one moment.
struct TaskStatus: Sendable {
    var state = URLSessionTask.State.suspended
    /// `true` if the user, and not the app, paused the task.
    var isPaused = false
    var bytesReceived: Int64 = 0
    var bytesExpectedToReceive: Int64 = -1
    var bytesSent: Int64 = 0
    var bytesExpectedToSend: Int64 = -1
    var response: URLResponse?
    var error: URLError?
}

/// The source of a download: a request, or the resume data of an earlier download.
enum DownloadSource: Sendable {
    case request(URLRequest)
    case resumeData(Data)
}

/// The body of an upload: a file, data or a stream.
enum UploadBody: Sendable {
    case file(URL)
    case data(Data)
    /// A stream that the delegate provides.
    case stream
}
