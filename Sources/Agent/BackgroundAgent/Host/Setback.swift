import BackgroundLedger
import Foundation
import ProcessSupport

/// What failed for a reason that passes, several times after another, and when it is tried again.
package struct Setback {
    private(set) var count = 0
    private(set) var nextTry = Date.distantPast
    private var since = Date.distantPast

    /// Seconds until the next try.
    var pause: Double { Self.pause(after: count) }

    /// A minute at most: what comes back is noticed soon.
    package static func pause(after failures: Int) -> Double { min(pow(2, Double(failures - 1)), 60) }

    mutating func count(_ error: StoreError, now: Date) -> AgentTrouble {
        if count == 0 { since = now }
        count += 1
        nextTry = now.addingTimeInterval(pause)
        return AgentTrouble(reason: "\(error)", since: since, nextTry: nextTry)
    }

    /// A clock that was set back prolongs no pause.
    func isOver(now: Date) -> Bool { now >= nextTry || nextTry.timeIntervalSince(now) > pause }
}
