import Foundation

/// The rules of work that a person began and watches.
package enum ContinuedProcessing {
    /// Tasks of one app that run at once; further ones wait.
    package static let room = 4

    /// What waits: the identifier, and whether one of that name runs already.
    package static func startable(_ queue: [String], running: [String]) -> [String] {
        var busy = Set(running)
        var free = room - running.count
        return queue.filter { identifier in
            guard free > 0, busy.insert(identifier).inserted else { return false }
            free -= 1
            return true
        }
    }

    /// Whole per cent, for people; `nil` while nobody knows how much there is.
    package static func percent(done: Int64?, total: Int64?) -> Int? {
        guard let done, let total, total > 0 else { return nil }
        return Int(Double(min(max(done, 0), total)) / Double(total) * 100)
    }
}
