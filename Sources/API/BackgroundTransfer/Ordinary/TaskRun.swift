import Foundation
import FoundationNetworking

/// The work of one resumed task of an ordinary session.
protocol TaskRun: AnyObject, Sendable {
    var status: TaskStatus { get }
    /// Called for the first `resume()`.
    func begin()
    /// Called for a later `resume()`.
    func release()
    /// Called for `suspend()`.
    func suspend()
    func cancel()
    func finish(_ error: URLError?)
}
