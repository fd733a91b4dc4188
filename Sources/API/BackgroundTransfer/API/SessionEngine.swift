import Foundation
import FoundationNetworking

/// What stands behind a session and its tasks: the agent, or this process.
protocol SessionEngine: AnyObject, Sendable {
    /// For a task that is made.
    func nextTaskIdentifier() -> Int
    func add(_ task: URLSessionTask)
    func resume(_ task: URLSessionTask)
    func resume(_ tasks: [URLSessionTask])
    func suspend(_ task: URLSessionTask)
    func cancel(_ task: URLSessionTask)
    func cancelProducingResumeData(_ task: URLSessionTask) async -> Data?
    /// The app changed what it may change of a task that runs: label, priority, beginning.
    func update(_ task: URLSessionTask)
    func status(of task: URLSessionTask) -> TaskStatus
    func allTasks() -> [URLSessionTask]
    func invalidate(cancelling: Bool)

    var delegate: (any URLSessionDelegate)? { get }
    func attach(_ session: URLSession, delegate: (any URLSessionDelegate)?)

    /// - Parameter delegate: of this one task; in a background session nobody asks it anything.
    func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (Data, URLResponse)
    func download(_ source: DownloadSource, delegate: (any URLSessionTaskDelegate)?) async throws -> (URL, URLResponse)
    /// The answer's head, and its bytes as they come.
    func bytes(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (
        URLSession.AsyncBytes, URLResponse
    )
    func upload(
        for request: URLRequest, from body: UploadBody, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse)
}

/// How a task gets on, now.
struct TaskStatus: Sendable {
    var state = URLSessionTask.State.suspended
    /// By a person, not by the app.
    var isPaused = false
    var bytesReceived: Int64 = 0
    var bytesExpectedToReceive: Int64 = -1
    var bytesSent: Int64 = 0
    var bytesExpectedToSend: Int64 = -1
    var response: URLResponse?
    var error: URLError?
}

/// What a download begins with.
enum DownloadSource: Sendable {
    case request(URLRequest)
    case resumeData(Data)
}

/// What an upload sends.
enum UploadBody: Sendable {
    case file(URL)
    case data(Data)
    /// The delegate is asked for one.
    case stream
}
