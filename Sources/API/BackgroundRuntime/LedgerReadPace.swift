/// Limits how often a process reads the ledger after change notifications. Each read locks the ledger for a short time, and many
/// consecutive reads would block the agent. The first reads have no pause, so that a single short transfer is not delayed.
package struct LedgerReadPace {
    /// The minimum average time between two reads, and the number of reads that are allowed without a pause.
    private static let (interval, burst) = (Duration.seconds(0.03), 12.0)

    /// The time at which the next read would begin if all pauses between reads had the average length. The generic cell rate
    /// algorithm calls this time the "theoretical arrival time".
    private var paid: ContinuousClock.Instant?

    package init() {}

    /// Records a read.
    package mutating func add(_ look: ContinuousClock.Instant) { paid = max(paid ?? look, look) + Self.interval }

    /// Returns the number of seconds until the next read.
    package func pause(before now: ContinuousClock.Instant) -> Double {
        guard let paid else { return 0 }
        return max(0, (now.duration(to: paid) - Self.interval * (Self.burst - 1)) / .seconds(1))
    }

    /// Waits until the next read may begin, and records the read.
    ///
    /// - Throws: `CancellationError` if the task is cancelled during the wait.
    package mutating func wait() async throws {
        let pause = pause(before: .now)
        if pause > 0 { try await Task.sleep(for: .seconds(pause)) }
        add(.now)
    }
}
