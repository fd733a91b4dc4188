import Foundation

/// Rules for the time of the data according to the service. The time is the field `updated` in responses of the US service and in
/// Atom feeds, and the field `last_record` in responses of Bright Sky.
///
/// After an outage, a service may respond with older data. A response with older data does not end a warning.
package enum DataTime {
    /// The number of seconds by which clocks may differ. A time that is further in the future is an error of the service or of
    /// this machine.
    static let tolerance: TimeInterval = 900
    /// The number of seconds by which a stored time may differ from the time in the response, because of rounding.
    private static let rounding: TimeInterval = 0.001

    /// Returns whether a response may end warnings that the response does not list.
    ///
    /// Only times of the service are compared with each other. A time in the future is ignored. If one of the two times is
    /// unknown or ignored, the response is treated as newer.
    ///
    /// - Parameters:
    ///   - time: the time in the response.
    ///   - last: the latest time in earlier responses.
    package static func isNewer(_ time: Date?, than last: Date?, now: Date) -> Bool {
        guard let time = plausible(time, now), let last = plausible(last, now) else { return true }
        return time.timeIntervalSince(last) > rounding
    }

    /// Returns the time that is stored for the next comparison. An earlier time, or a time in the future, does not replace the
    /// stored time.
    package static func latest(_ time: Date?, _ last: Date?, now: Date) -> Date? {
        guard let time = plausible(time, now) else { return last }
        return max(time, plausible(last, now) ?? time)
    }

    private static func plausible(_ time: Date?, _ now: Date) -> Date? {
        time.flatMap { $0.timeIntervalSince(now) <= tolerance ? $0 : nil }
    }
}
