import Foundation

/// When the finished transfers of a session are handed to the app.
///
/// Differs from Apple: delivery is per finished task, not when all tasks of the session are done, so that one
/// stalled transfer holds back none. Finishes that come close together share one launch.
package enum SessionDelivery {
    /// Seconds that the oldest undelivered event may wait for company.
    package static let batchWindow: Double = 5

    /// Seconds in which earlier launches of the session count.
    package static let memory: Double = 3_600
    /// So many launches within that time are followed by others without a pause.
    private static let free = 20
    /// Seconds.
    private static let longestPause: Double = 300

    /// Seconds between a launch and the next: none for some, then twice as long with each. An app whose delegate asks again at once for
    /// what ended would be launched for ever without one; Apple delays such tasks, too.
    ///
    /// - Parameter count: launches of the session within ``memory``.
    package static func pause(afterLaunches count: Int) -> Double {
        guard count > free else { return 0 }
        return min(pow(2, Double(min(count - free, 30) - 1)), longestPause)
    }

    package enum Verdict: Sendable, Equatable {
        case deliverNow
        case wait(until: Date)
    }

    /// - Parameters:
    ///   - oldest: when the oldest undelivered event of the session was committed.
    ///   - hasMoreRunning: some transfer of the session is moving bytes and may finish within the window.
    package static func verdict(oldest: Date, hasMoreRunning: Bool, now: Date) -> Verdict {
        let ready = oldest.addingTimeInterval(batchWindow)
        // A clock stepped back must not hold a delivery for ever.
        if !hasMoreRunning || now >= ready || now < oldest { return .deliverNow }
        return .wait(until: ready)
    }
}
