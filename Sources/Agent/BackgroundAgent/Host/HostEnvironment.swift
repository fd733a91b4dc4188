import ProcessSupport
import BackgroundLedger
import Foundation

/// What an agent asks of the host that it runs on, apart from its ports. Real, but in a rehearsal and in tests.
package struct HostEnvironment: Sendable {
    /// The wall clock.
    package var now: @Sendable () -> Date
    /// Seconds that the host has been awake.
    package var monotonic: @Sendable () -> Double
    /// Seconds that it has slept.
    package var slept: @Sendable () -> Double
    /// The time zone in force; asked for anew after a change.
    package var zone: @Sendable () -> TimeZone
    /// What launched processes find in their environment besides.
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
