/// Decides how long a process waits while other processes use the same database.
///
/// A queue that moves is waited for. One process that holds the lock and does not move is not: the user has to continue or end it, and a
/// longer wait changes nothing.
package struct WriterPatience: Sendable {
    /// The time after which a wait ends in any case. 300 commands at once on two cores need less, also beside much other work.
    private static let longest = Duration.seconds(900)
    /// The time without movement after which a wait ends, also if the holder is at work.
    private static let longestWithoutMovement = Duration.seconds(60)
    /// The time without movement after which the holder of the lock is looked up, and the time between two such looks.
    private static let untilFirstLook = Duration.seconds(2)
    private static let betweenLooks = Duration.seconds(1)
    /// The time without movement after which a holder counts that is neither stopped nor at work.
    private static let longestStillness = Duration.seconds(5)
    /// The time between two looks at the files. Each one costs two system calls.
    private static let betweenGlances = Duration.milliseconds(100)

    package typealias Instant = SuspendingClock.Instant

    private let began: Instant
    private var writes: [FileIdentity?]
    private var glancedAt: Instant
    private var movedAt: Instant
    private var look: (at: Instant, holder: Int32?)?

    /// - Parameter writes: what the files of the database are now.
    package init(at now: Instant, writes: [FileIdentity?]) {
        (began, glancedAt, movedAt, self.writes) = (now, now, now, writes)
    }

    /// - Parameters:
    ///   - writes: returns what the files of the database are now. Each commit changes one of them.
    ///   - holder: looks up who holds the lock, which takes some milliseconds. It gets the number of the process that held it before.
    /// - Returns: `false` if waiting longer does not help.
    package mutating func goesOn(
        at now: Instant, writes: () -> [FileIdentity?], holder: (Int32?) -> RunningProcess?
    ) -> Bool {
        if began.duration(to: now) >= Self.longest || movedAt.duration(to: now) >= Self.longestWithoutMovement { return false }
        guard glancedAt.duration(to: now) >= Self.betweenGlances else { return true }
        glancedAt = now
        let seen = writes()
        if seen != self.writes { (self.writes, movedAt, look) = (seen, now, nil) }
        guard movedAt.duration(to: now) >= Self.untilFirstLook,
            look.map({ $0.at.duration(to: now) >= Self.betweenLooks }) ?? true
        else { return true }
        let found = holder(look?.holder)
        if found?.isStopped == true { return false }
        if let look, look.holder != found?.pid {
            // The lock changed hands, although nothing was committed.
            (movedAt, self.look) = (now, nil)
            return true
        }
        look = (at: now, holder: found?.pid)
        return movedAt.duration(to: now) < Self.longestStillness || found?.isAtWork == true
    }
}
