/// Decides how long a process waits while other processes use the same database.
///
/// A process waits for a lock as long as other processes take and release the lock, or as long as the database changes. If one
/// process holds the lock and makes no progress, the wait ends. A longer wait would be useless, because the user has to continue
/// or end the other process.
package struct WriterTimeLimit: Sendable {
    /// The maximum time of a wait. 300 simultaneous commands on two cores need less time, even if the machine does other work.
    private static let longest = Duration.seconds(900)
    /// The time without progress after which a wait ends, even if the process that holds the lock is working
    /// (``RunningProcess/isAtWork``).
    private static let longestWithoutMovement = Duration.seconds(60)
    /// The time without progress after which this process searches for the process that holds the lock.
    private static let firstLookupDelay = Duration.seconds(2)
    private static let lookupInterval = Duration.seconds(1)
    /// The time without progress after which a wait ends if the process that holds the lock is not working
    /// (``RunningProcess/isAtWork``).
    private static let longestStillness = Duration.seconds(5)
    /// The time between two checks of the files. Each check costs two system calls.
    private static let fileCheckInterval = Duration.milliseconds(100)

    package typealias Instant = SuspendingClock.Instant

    private let began: Instant
    private var writes: [FileIdentity?]
    private var filesCheckedAt: Instant
    private var movedAt: Instant
    private var look: (at: Instant, holder: Int32?)?

    /// - Parameter writes: the current identities of the database files.
    package init(at now: Instant, writes: [FileIdentity?]) {
        (began, filesCheckedAt, movedAt, self.writes) = (now, now, now, writes)
    }

    /// Returns whether to continue the wait, because a longer wait can succeed.
    ///
    /// - Parameters:
    ///   - writes: a closure that returns the current identities of the database files. Each commit changes one of these
    ///     identities.
    ///   - holder: a closure that finds the process that holds the lock. A call takes some milliseconds. The argument is the
    ///     number of the process that held the lock before.
    package mutating func shouldContinue(
        at now: Instant, writes: () -> [FileIdentity?], holder: (Int32?) -> RunningProcess?
    ) -> Bool {
        if began.duration(to: now) >= Self.longest || movedAt.duration(to: now) >= Self.longestWithoutMovement { return false }
        guard filesCheckedAt.duration(to: now) >= Self.fileCheckInterval else { return true }
        filesCheckedAt = now
        let seen = writes()
        if seen != self.writes { (self.writes, movedAt, look) = (seen, now, nil) }
        guard movedAt.duration(to: now) >= Self.firstLookupDelay,
            look.map({ $0.at.duration(to: now) >= Self.lookupInterval }) ?? true
        else { return true }
        let found = holder(look?.holder)
        if found?.isStopped == true { return false }
        if let look, look.holder != found?.pid {
            // Another process holds the lock now. This change is also progress, even if no process has committed.
            (movedAt, self.look) = (now, nil)
            return true
        }
        look = (at: now, holder: found?.pid)
        return movedAt.duration(to: now) < Self.longestStillness || found?.isAtWork == true
    }
}
