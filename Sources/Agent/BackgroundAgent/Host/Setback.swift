import BackgroundLedger
import Foundation
import ProcessSupport

/// Counts consecutive temporary failures, and computes the date of the next try.
package struct Setback {
    private(set) var count = 0
    private(set) var nextTry = Date.distantPast
    private var since = Date.distantPast

    /// The number of seconds until the next try.
    var pause: Double { Self.pause(after: count) }

    /// Returns the pause after this number of failures, in seconds. The pause is at most a minute, so that the agent soon detects
    /// that the problem has ended.
    package static func pause(after failures: Int) -> Double { min(pow(2, Double(failures - 1)), 60) }

    mutating func count(_ error: StoreError, now: Date) -> AgentTrouble {
        if count == 0 { since = now }
        count += 1
        nextTry = now.addingTimeInterval(pause)
        return AgentTrouble(reason: "\(error)", since: since, nextTry: nextTry)
    }

    /// Returns `true` if the pause has ended. If the clock was set back, the pause does not become longer.
    func isOver(now: Date) -> Bool { now >= nextTry || nextTry.timeIntervalSince(now) > pause }
}
