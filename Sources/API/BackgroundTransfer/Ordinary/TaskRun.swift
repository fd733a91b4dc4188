import Foundation
import FoundationNetworking

/// The work of one resumed task of an ordinary session.
protocol TaskRun: AnyObject, Sendable {
    var status: TaskStatus { get }
    /// Starts the work. The session calls this method when the app calls `resume()` for the first time.
    func begin()
    /// Continues the work. The session calls this method when the app calls `resume()` after `suspend()`.
    func release()
    /// Suspends the work. The session calls this method when the app calls `suspend()`.
    func suspend()
    func cancel()
    func finish(_ error: URLError?)
}
