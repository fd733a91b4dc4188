import Foundation

/// When the finished transfers of a session are handed to the app.
///
/// Differs from Apple: delivery is per finished task, not when all tasks of the session are done, so that one
/// stalled transfer holds back none. Finishes that come close together share one launch.
package enum SessionDelivery {
    /// Seconds that the oldest undelivered event may wait for company.
    package static let batchWindow: Double = 5

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
