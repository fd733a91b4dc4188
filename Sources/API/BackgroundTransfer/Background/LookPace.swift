/// How soon a session may look at the ledger again. Each look takes the ledger for itself for a moment: many in a row would only keep the
/// agent waiting, and the few of one short transfer wait for nothing.
struct LookPace {
    /// One look for each of these seconds, and so many at once.
    private static let (interval, burst) = (Duration.seconds(0.03), 12.0)

    /// When all looks so far are paid for (the "theoretical arrival time" of the generic cell rate algorithm).
    private var paid: ContinuousClock.Instant?

    mutating func note(_ look: ContinuousClock.Instant) { paid = max(paid ?? look, look) + Self.interval }

    /// Seconds until the next.
    func pause(before now: ContinuousClock.Instant) -> Double {
        guard let paid else { return 0 }
        return max(0, (now.duration(to: paid) - Self.interval * (Self.burst - 1)) / .seconds(1))
    }
}
