import Foundation

/// Decides when the finished transfers of a session are delivered to the app.
///
/// Differs from Apple: delivery is per finished task, not when all tasks of the session are done, so that a stalled transfer does not delay
/// the others. Transfers that finish close together share one launch.
package enum SessionDelivery {
    /// Seconds that the oldest undelivered event may wait for further events.
    package static let batchWindow: Double = 5

    /// Seconds in which earlier launches of the session count.
    package static let memory: Double = 3_600
    /// The number of launches within that time that are followed by another launch without a pause.
    private static let free = 20
    /// Seconds; the longest pause.
    private static let longestPause: Double = 300

    /// Returns the seconds between a launch and the next launch: none at first, then twice as long with each launch.
    ///
    /// An app may start a new transfer whenever one ends. Without a pause, such an app would be launched endlessly. Apple also delays such
    /// tasks.
    ///
    /// - Parameter count: The number of launches of the session within ``memory``.
    package static func pause(afterLaunches count: Int) -> Double {
        guard count > free else { return 0 }
        return min(pow(2, Double(min(count - free, 30) - 1)), longestPause)
    }

    package enum Verdict: Sendable, Equatable {
        case deliverNow
        case wait(until: Date)
    }

    /// Returns whether to deliver now.
    ///
    /// - Parameters:
    ///   - oldest: When the oldest undelivered event of the session was committed.
    ///   - hasMoreRunning: `true` if another transfer of the session is moving bytes and may finish within the window.
    package static func verdict(oldest: Date, hasMoreRunning: Bool, now: Date) -> Verdict {
        let ready = oldest.addingTimeInterval(batchWindow)
        // A clock that was set back must not delay a delivery endlessly.
        if !hasMoreRunning || now >= ready || now < oldest { return .deliverNow }
        return .wait(until: ready)
    }
}
