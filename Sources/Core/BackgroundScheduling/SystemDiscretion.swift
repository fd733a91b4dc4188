import Foundation

/// When a request without a date begins that a launch has submitted. On iOS that is the system's to say; apps that count on it submit the next
/// refresh in the handler of the last, and would run for ever without a pause.
///
/// A person's command begins at once, and so does the first request of an identifier.
package enum SystemDiscretion {
    /// Seconds in which earlier launches count.
    package static let memory: Double = 86_400
    /// Seconds.
    package static let longest: Double = 3_600

    /// Seconds to wait: doubles from `base` with each launch of that kind within a day, up to an hour.
    ///
    /// - Parameter base: 0: no pause.
    package static func pause(afterLaunches count: Int, base: Double) -> Double {
        guard count > 0, base > 0 else { return 0 }
        return min(base * pow(2, Double(min(count, 30) - 1)), longest)
    }
}
