/// Limits the rate at which change notifications are handled. Reads and writes of the ledger wait for each other. If an agent
/// read the ledger after each of a thousand commits, the agent would delay the writers.
///
/// Times are in seconds of the clock that stops during sleep.
struct NotificationRate {
    /// The maximum number of consecutive change notifications that are handled without a pause. A single launch causes fewer
    /// change notifications.
    private static let limit = 10
    /// The number of seconds without a change notification after which the counter starts at zero again.
    private static let silence = 0.1
    /// The maximum number of seconds between two checks while change notifications continue to arrive.
    static let longestPause = 1.0

    private var count = 0
    private var last = -Double.infinity

    /// Records a change notification. Returns `true` if the agent should wait until no more change notifications arrive.
    mutating func isTooHigh(afterRingAt awake: Double) -> Bool {
        count = awake - last > Self.silence ? 1 : count + 1
        last = awake
        return count > Self.limit
    }

    /// Records a change notification that arrived during a pause.
    mutating func record(ringAt awake: Double) { last = awake }
}
