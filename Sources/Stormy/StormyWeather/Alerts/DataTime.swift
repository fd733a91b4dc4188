import Foundation

/// The time that a service gives its data: `updated` of the US service and of Atom feeds, `last_record` of Bright Sky.
///
/// After an outage a service may answer with data from before it. Such an answer ends no warning.
package enum DataTime {
    /// Seconds by which clocks differ. A time further ahead is a mistake of the service or of this machine.
    static let tolerance: TimeInterval = 900
    /// Seconds by which a stored time differs from the time in the answer, because it was rounded.
    private static let rounding: TimeInterval = 0.001

    /// Returns whether an answer may end warnings that it no longer lists.
    ///
    /// Only times of the service are compared with each other. A time in the future counts as missing. Without two times the answer counts
    /// as newer.
    ///
    /// - Parameters:
    ///   - time: the time in the answer.
    ///   - last: the latest time in earlier answers.
    package static func isNewer(_ time: Date?, than last: Date?, now: Date) -> Bool {
        guard let time = plausible(time, now), let last = plausible(last, now) else { return true }
        return time.timeIntervalSince(last) > rounding
    }

    /// Returns what is stored for the next comparison. A time that goes backwards, or that lies in the future, changes nothing.
    package static func latest(_ time: Date?, _ last: Date?, now: Date) -> Date? {
        guard let time = plausible(time, now) else { return last }
        return max(time, plausible(last, now) ?? time)
    }

    private static func plausible(_ time: Date?, _ now: Date) -> Date? {
        time.flatMap { $0.timeIntervalSince(now) <= tolerance ? $0 : nil }
    }
}
