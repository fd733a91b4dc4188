import Foundation

/// Decides when a request without a date begins, if the request was submitted in a launch. On iOS the system chooses this time.
/// Apps that rely on this submit the next refresh in the handler of the current refresh. Without a pause, such apps would be
/// launched again and again.
///
/// Requests that a user's command submits, and the first request of an identifier, begin at once.
package enum SystemDiscretion {
    /// The number of seconds for which a launch is counted for the pause.
    package static let memory: Double = 86_400
    /// The longest pause in seconds.
    package static let longest: Double = 3_600

    /// Returns the pause in seconds. The pause is `base` after the first such launch. The pause doubles with each further launch
    /// within a day, up to an hour.
    ///
    /// - Parameter base: The first pause in seconds, or 0 for no pause.
    package static func pause(afterLaunches count: Int, base: Double) -> Double {
        guard count > 0, base > 0 else { return 0 }
        return min(base * pow(2, Double(min(count, 30) - 1)), longest)
    }
}
