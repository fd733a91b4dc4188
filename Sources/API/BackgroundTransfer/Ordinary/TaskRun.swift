import Foundation
import FoundationNetworking

/// The work of one resumed task of an ordinary session.
protocol TaskRun: AnyObject, Sendable {
    var status: TaskStatus { get }
    /// Called when the app calls `resume()` for the first time.
    func begin()
    /// Called when the app calls `resume()` after `suspend()`.
    func release()
    /// Called when the app calls `suspend()`.
    func suspend()
    func cancel()
    func finish(_ error: URLError?)
}
