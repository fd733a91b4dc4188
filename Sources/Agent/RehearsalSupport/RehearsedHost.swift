import BackgroundScheduling
import Foundation
import ProcessSupport

/// The state of the simulated machine of a rehearsal. The rehearsal sends each state as a line through a socket. The agents of
/// the rehearsal's temporary home receive the lines. No other process uses this state.
package struct RehearsedHost: Codable, Sendable, Equatable {
    /// The difference between the simulated and the real wall clock, in seconds.
    package var clockOffset: Double = 0
    /// The simulated number of seconds for which the machine slept.
    package var slept: Double = 0
    /// The user's time zone.
    package var zone: String
    package var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    package var hasNotificationServer = true
    package var isDiskFull = false
    /// `true` if the agent has no free descriptor, so that it cannot open files of a transfer.
    package var hasNoDescriptors = false
    /// The number of this state, which increases with each change. The agent confirms each state by sending its number.
    package var number = 0

    package init(zone: String) { self.zone = zone }

    /// The environment variables for processes on this simulated machine.
    package var environment: [String: String] { [RehearsalHome.clockVariable: String(clockOffset), "TZ": zone] }
}
