import Foundation

/// Decides when a request without a date begins, if the request was submitted in a launch. On iOS the system chooses this time.
/// Some apps rely on this, and submit the next refresh in the handler of the current refresh. Without a pause, such apps would be
/// launched endlessly.
///
/// A request begins immediately if a user's command submits it, or if it is the first request of its identifier.
package enum SystemDiscretion {
    /// The number of seconds for which a launch has an effect on later pauses.
    package static let memory: Double = 86_400
    /// The longest pause before the request begins, in seconds.
    package static let longest: Double = 3_600

    /// Returns the pause in seconds. The pause is `base` after the first launch within 24 hours. Each further launch within 24
    /// hours doubles the pause, up to an hour.
    ///
    /// - Parameter base: The first pause in seconds. If the value is 0, requests have no pause.
    package static func pause(afterLaunches count: Int, base: Double) -> Double {
        guard count > 0, base > 0 else { return 0 }
        return min(base * pow(2, Double(min(count, 30) - 1)), longest)
    }
}
