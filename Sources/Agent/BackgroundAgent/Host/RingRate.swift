/// How often the bell rings. Who looks after each of a thousand commits holds up those who make them: each look waits for the writer, and the
/// writer for each look.
///
/// Times are seconds awake.
struct RingRate {
    /// More rings in a row than this are too many; what one launch makes ring is fewer.
    private static let limit = 10
    /// Seconds of silence after which a row is over.
    private static let silence = 0.1
    /// Seconds between two looks while it goes on ringing.
    static let longestPause = 1.0

    private var count = 0
    private var last = -Double.infinity

    /// It rang: whether that is worth a look only when it is silent again.
    mutating func isTooHigh(afterRingAt awake: Double) -> Bool {
        count = awake - last > Self.silence ? 1 : count + 1
        last = awake
        return count > Self.limit
    }

    /// It rang while nobody listened.
    mutating func note(ringAt awake: Double) { last = awake }
}
