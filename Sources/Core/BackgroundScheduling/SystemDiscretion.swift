import Foundation

/// Decides when a request without a date begins, if a launch submitted it. On iOS the system decides that. Apps that rely on it submit the
/// next refresh in the handler of the last one, and would run endlessly without a pause.
///
/// A user's command begins at once, and so does the first request of an identifier.
package enum SystemDiscretion {
    /// Seconds in which earlier launches count.
    package static let memory: Double = 86_400
    /// Seconds; the longest pause.
    package static let longest: Double = 3_600

    /// Returns the seconds to wait: doubles from `base` with each launch of that kind within a day, up to an hour.
    ///
    /// - Parameter base: The first pause; 0 for no pause.
    package static func pause(afterLaunches count: Int, base: Double) -> Double {
        guard count > 0, base > 0 else { return 0 }
        return min(base * pow(2, Double(min(count, 30) - 1)), longest)
    }
}
