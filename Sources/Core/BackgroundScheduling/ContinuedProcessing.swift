import Foundation

/// The rules of continued processing. Continued processing is work that the user started and whose progress is shown.
package enum ContinuedProcessing {
    /// The maximum number of simultaneous tasks of one app. Additional tasks wait.
    package static let room = 4

    /// Returns the waiting identifiers whose tasks can start now. A task waits while another task with an equal identifier is
    /// running.
    package static func startable(_ queue: [String], running: [String]) -> [String] {
        var busy = Set(running)
        var free = room - running.count
        return queue.filter { identifier in
            guard free > 0, busy.insert(identifier).inserted else { return false }
            free -= 1
            return true
        }
    }

    /// Returns the progress in percent, rounded down, or `nil` if the total is unknown.
    package static func percent(done: Int64?, total: Int64?) -> Int? {
        guard let done, let total, total > 0 else { return nil }
        return Int(Double(min(max(done, 0), total)) / Double(total) * 100)
    }
}
