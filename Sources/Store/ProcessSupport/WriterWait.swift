import Foundation
import Synchronization

/// Waits while another process uses the same database. ``WriterTimeLimit`` decides when the wait ends.
package final class WriterWait: Sendable {
    private struct State {
        var began = SuspendingClock.now
        var patience: WriterTimeLimit?
        var limit: Duration?
    }

    private let state = Mutex(State())
    private let database: String
    private let lock: String?

    /// - Parameters:
    ///   - database: the path of the database.
    ///   - lock: the lock file, or `nil` for a lock of the database itself.
    package init(database: String, lock: String? = nil) { (self.database, self.lock) = (database, lock) }

    /// Sets the maximum wait. `nil` restores the normal limit.
    package func limit(to limit: Duration?) { state.withLock { $0.limit = limit } }

    /// Waits for a short time: 0.1 ms in the first 100 calls for a lock, then 1 ms, and 5 ms from call 1000 on. SQLite's own wait
    /// function is not used, because it sleeps longer each time, up to 100 ms. The agent and the app often need the lock at the
    /// same time, but each process holds the lock for much less than 100 ms.
    ///
    /// - Parameter round: the number of earlier calls for the same lock.
    /// - Returns: `true` if the caller should try again.
    package func wait(_ round: Int) -> Bool {
        let now = SuspendingClock.now
        // The limit is a time and not a number of calls, because on a busy machine a pause of one millisecond can take many
        // milliseconds.
        let shouldContinue = state.withLock { state in
            if round == 0 { (state.began, state.patience) = (now, nil) }
            if let limit = state.limit { return state.began.duration(to: now) < limit }
            var patience = state.patience ?? WriterTimeLimit(at: now, writes: writes())
            defer { state.patience = patience }
            return patience.shouldContinue(at: now, writes: writes, holder: holder)
        }
        if shouldContinue { usleep(Self.pause(round)) }
        return shouldContinue
    }

    /// Returns the pause in microseconds. The pause grows, because hundreds of processes that try every millisecond would leave
    /// no processor time for the process that holds the lock.
    private static func pause(_ round: Int) -> UInt32 { round < 100 ? 100 : round < 1_000 ? 1_000 : 5_000 }

    /// Returns the identities of the database file and the write-ahead log. SQLite writes each commit to the log, and later
    /// copies the log into the database file.
    private func writes() -> [FileIdentity?] { [FileIdentity(database), FileIdentity(database + "-wal")] }

    private func holder(_ known: Int32?) -> RunningProcess? {
        if let lock { LockHolder.find(lock: lock, known: known) } else { LockHolder.find(database: database, known: known) }
    }
}
