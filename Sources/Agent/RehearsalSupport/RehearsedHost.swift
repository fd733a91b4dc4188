import BackgroundScheduling
import Foundation
import ProcessSupport

/// The state of the simulated machine of a rehearsal. The rehearsal sends each state as a line through a socket to the agents of
/// its temporary home. No other process uses this state.
package struct RehearsedHost: Codable, Sendable, Equatable {
    /// The simulated wall clock minus the real wall clock, in seconds.
    package var clockOffset: Double = 0
    /// The simulated time of sleep, in seconds.
    package var slept: Double = 0
    /// The user's time zone.
    package var zone: String
    package var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    package var hasNotificationServer = true
    package var isDiskFull = false
    /// `true` if the agent cannot open files of a transfer.
    package var hasNoDescriptors = false
    /// The number of this state, which increases with each change. The agent's confirmation contains the same number.
    package var number = 0

    package init(zone: String) { self.zone = zone }

    /// The environment variables for processes on this simulated machine.
    package var environment: [String: String] { [RehearsalHome.clockVariable: String(clockOffset), "TZ": zone] }
}
