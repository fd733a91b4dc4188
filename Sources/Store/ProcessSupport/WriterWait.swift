import Foundation
import Synchronization

/// Waits while another process uses the same database, as long as ``WriterPatience`` decides.
package final class WriterWait: Sendable {
    private struct State {
        var began = SuspendingClock.now
        var patience: WriterPatience?
        var limit: Duration?
    }

    private let state = Mutex(State())
    private let database: String
    private let lock: String?

    /// - Parameters:
    ///   - database: its path.
    ///   - lock: the file whose lock is waited for. `nil` if it is one of the database's own.
    package init(database: String, lock: String? = nil) { (self.database, self.lock) = (database, lock) }

    /// Until it is set back, waits no longer than this. `nil`: as always.
    package func limit(to limit: Duration?) { state.withLock { $0.limit = limit } }

    /// Waits for a moment. Asked again every 0.1 ms at first, then every millisecond. SQLite's own waiter sleeps longer each time, up to
    /// 100 ms: agent and app meet at every hand-over, and would wait for that rather than for each other.
    ///
    /// - Parameter round: how often it was asked before, for the same lock.
    /// - Returns: whether to try again.
    package func wait(_ round: Int) -> Bool {
        let now = SuspendingClock.now
        // By the clock: on a machine under load a pause of a millisecond takes many.
        let goesOn = state.withLock { state in
            if round == 0 { (state.began, state.patience) = (now, nil) }
            if let limit = state.limit { return state.began.duration(to: now) < limit }
            var patience = state.patience ?? WriterPatience(at: now, writes: writes())
            defer { state.patience = patience }
            return patience.goesOn(at: now, writes: writes, holder: holder)
        }
        if goesOn { usleep(Self.pause(round)) }
        return goesOn
    }

    /// Microseconds. Hundreds of processes that try every millisecond leave no time for the one that holds the lock.
    private static func pause(_ round: Int) -> UInt32 { round < 100 ? 100 : round < 1_000 ? 1_000 : 5_000 }

    /// SQLite writes commits to the log, and copies the log into the database.
    private func writes() -> [FileIdentity?] { [FileIdentity(database), FileIdentity(database + "-wal")] }

    private func holder(_ known: Int32?) -> RunningProcess? {
        if let lock { LockHolder.find(lock: lock, known: known) } else { LockHolder.find(database: database, known: known) }
    }
}
