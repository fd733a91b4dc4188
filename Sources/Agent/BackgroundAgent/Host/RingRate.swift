/// How often the bell rings. Who looks after each of a thousand commits holds up those who make them: each look waits for the writer, and the
/// writer for each look.
///
/// Times are seconds awake.
struct RingRate {
    /// More rings in a row than this are too many; what one launch makes ring is fewer.
    private static let limit = 10
    /// Seconds until the next look when it begins to ring too often; twice as many each time that it goes on.
    private static let firstPause = 0.05
    private static let longestPause = 1.0
    /// Seconds of silence after which a row is over.
    private static let silence = 0.1

    private var count = 0
    private var quietFrom = -Double.infinity
    private var nextPause = Self.firstPause

    /// Seconds until it is worth looking again; `nil`: at once.
    mutating func pause(afterRingAt awake: Double) -> Double? {
        if awake > quietFrom { (count, nextPause) = (0, Self.firstPause) }
        count += 1
        quietFrom = awake + Self.silence
        guard count > Self.limit else { return nil }
        let pause = nextPause
        // It is not heard while it is held.
        quietFrom += pause
        nextPause = min(2 * pause, Self.longestPause)
        return pause
    }
}
