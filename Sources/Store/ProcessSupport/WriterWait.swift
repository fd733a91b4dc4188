import Foundation
import Synchronization

/// How long a connection waits while another process writes to the same file.
///
/// All writers of a healthy machine get their turn within milliseconds. One that was stopped in the middle of its transaction holds up
/// all others until a person continues or ends it: nothing is won by waiting longer for it.
package final class WriterWait: Sendable {
    private struct State {
        var began = ContinuousClock.now
        var hasAsked = false
        var limit: Duration?
    }

    private let state = Mutex(State())
    private let path: String
    private let patience: Duration
    private static let patienceWithTheStopped = Duration.seconds(2)

    /// - Parameters:
    ///   - path: of the database.
    ///   - patience: with writers that go on.
    package init(path: String, patience: Duration = .seconds(5)) { (self.path, self.patience) = (path, patience) }

    /// Until it is set back, waits no longer than this. `nil`: as always.
    package func limit(to limit: Duration?) { state.withLock { $0.limit = limit } }

    /// Waits for a moment. Asked again every 0.1 ms at first, then every millisecond. SQLite's own waiter sleeps longer each time, up to
    /// 100 ms: agent and app meet at every hand-over, and would wait for that rather than for each other.
    ///
    /// - Parameter round: how often it was asked before, for the same lock.
    /// - Returns: whether to try again.
    package func wait(_ round: Int) -> Bool {
        let now = ContinuousClock.now
        // By the clock: on a machine under load a pause of a millisecond takes many.
        let goesOn = state.withLock { state in
            if round == 0 { (state.began, state.hasAsked) = (now, false) }
            let waited = now - state.began
            if let limit = state.limit { return waited < limit }
            if waited >= patience { return false }
            if waited >= Self.patienceWithTheStopped, !state.hasAsked {
                state.hasAsked = true
                if LockHolder.find(database: path)?.isStopped == true { return false }
            }
            return true
        }
        if goesOn { usleep(round < 100 ? 100 : 1_000) }
        return goesOn
    }
}
