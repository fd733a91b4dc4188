/// Decides when the wait for `photo-cleaner` ends. The type has no side effects.
///
/// On a busy machine the program waits for a processor, so the limit applies to the processor time of the program. A second limit
/// applies to a program that uses no processor time, because it is stopped or waits for a disk that does not respond.
struct CleanerTimeLimit {
    /// Returns the maximum number of seconds of processor time for one file: 60 seconds plus one second for each MB, and at most
    /// ten minutes.
    static func processorTime(forBytes count: Int64) -> Double { min(600, 60 + Double(max(0, count)) / 1_000_000) }

    /// The maximum number of consecutive checks in which the processor time does not change. The program is checked each second.
    /// The limit is a number of checks and not a time, because Ctrl-Z can stop this process and the program at the same time.
    static let longestStandstill = 60

    private let limit: Double
    /// The processor time at the last check.
    private var used: Double
    private var standstill = 0

    /// - Parameter used: The seconds of processor time that the program used before it received the file.
    init(forBytes count: Int64, used: Double) {
        (self.limit, self.used) = (used + Self.processorTime(forBytes: count), used)
    }

    /// Records a check of the program, one second after the last check.
    ///
    /// - Parameter used: The seconds of processor time that the program used since its start.
    /// - Returns: `true` if the program has taken too long.
    mutating func isOver(used now: Double) -> Bool {
        standstill = now > used ? 0 : standstill + 1
        used = now
        return now > limit || standstill >= Self.longestStandstill
    }
}
