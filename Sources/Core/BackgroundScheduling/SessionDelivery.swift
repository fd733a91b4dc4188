import Foundation

/// Decides when the finished transfers of a session are delivered to the app.
///
/// Unlike on Apple's platforms, each ended transfer is delivered without a wait for the other transfers of the session. So a
/// stalled transfer does not delay other transfers. Transfers that end close together share one launch.
package enum SessionDelivery {
    /// The maximum number of seconds for which the oldest undelivered event waits for more events.
    package static let batchWindow: Double = 5

    /// The number of seconds for which a launch of the session has an effect on later pauses.
    package static let memory: Double = 3_600
    /// The number of launches within ``memory`` seconds that are allowed without a pause.
    private static let free = 20
    /// The longest pause between two launches of a session, in seconds.
    private static let longestPause: Double = 300

    /// Returns the pause in seconds before the next launch. The first launches have no pause, and each later launch doubles the
    /// pause.
    ///
    /// An app may start a new transfer each time a transfer ends. Without a pause, such an app would be launched endlessly.
    /// Apple's systems also delay such tasks.
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

    /// Returns whether the events are delivered now.
    ///
    /// - Parameters:
    ///   - oldest: The date at which the oldest undelivered event of the session was committed.
    ///   - hasMoreRunning: `true` if another transfer of the session is running and may end within the window.
    package static func verdict(oldest: Date, hasMoreRunning: Bool, now: Date) -> Verdict {
        let ready = oldest.addingTimeInterval(batchWindow)
        // If the clock was set back, the oldest event is in the future. The event is delivered now, so that the delivery is not
        // delayed endlessly.
        if !hasMoreRunning || now >= ready || now < oldest { return .deliverNow }
        return .wait(until: ready)
    }
}
