import Foundation
import FoundationNetworking

/// The work of one resumed task of an ordinary session.
protocol TaskRun: AnyObject, Sendable {
    var status: TaskStatus { get }
    /// Starts the work. The session calls this method at the first `resume()` of the task.
    func begin()
    /// Continues the work. The session calls this method at a `resume()` after a `suspend()`.
    func release()
    /// Suspends the work. The session calls this method at a `suspend()`.
    func suspend()
    func cancel()
    func finish(_ error: URLError?)
}
