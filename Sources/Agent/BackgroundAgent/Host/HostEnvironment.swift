import ProcessSupport
import BackgroundLedger
import Foundation

/// The functions of the machine that an agent uses in addition to its ports. Rehearsals and tests replace these functions.
package struct HostEnvironment: Sendable {
    /// Returns the time of the wall clock.
    package var now: @Sendable () -> Date
    /// Returns the number of seconds for which the machine was awake.
    package var monotonic: @Sendable () -> Double
    /// Returns the number of seconds for which the machine slept.
    package var slept: @Sendable () -> Double
    /// Returns the current time zone. The agent calls the function again after the time zone changed.
    package var zone: @Sendable () -> TimeZone
    /// Returns additional environment variables for launched processes.
    package var environment: @Sendable () -> [String: String]

    package init(
        now: @escaping @Sendable () -> Date, monotonic: @escaping @Sendable () -> Double,
        slept: @escaping @Sendable () -> Double, zone: @escaping @Sendable () -> TimeZone,
        environment: @escaping @Sendable () -> [String: String] = { [:] }
    ) {
        (self.now, self.monotonic, self.slept) = (now, monotonic, slept)
        (self.zone, self.environment) = (zone, environment)
    }

    package static let real = HostEnvironment(
        now: { Date() }, monotonic: { seconds(of: CLOCK_MONOTONIC) },
        slept: { seconds(of: CLOCK_BOOTTIME) - seconds(of: CLOCK_MONOTONIC) }, zone: { ThisProcess.zone })

    private static func seconds(of clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
