import Foundation
import FoundationNetworking

/// One task of an ordinary session while it runs.
protocol TaskRun: AnyObject, Sendable {
    var status: TaskStatus { get }
    /// The first resume.
    func begin()
    /// A later one.
    func release()
    /// A suspend.
    func hold()
    func cancel()
    func finish(_ error: URLError?)
}
