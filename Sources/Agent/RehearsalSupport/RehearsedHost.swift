import BackgroundScheduling
import Foundation
import ProcessSupport

/// What a rehearsal says of the host, in place of the host itself: told to the agents of its throw-away home through a
/// socket there, line by line. Nobody else listens to it.
package struct RehearsedHost: Codable, Sendable, Equatable {
    /// What its wall clock shows, less what the real one does. Seconds.
    package var clockOffset: Double = 0
    /// Seconds that it has slept.
    package var slept: Double = 0
    /// The zone that the person is in.
    package var zone: String
    package var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    package var hasNotificationServer = true
    package var isDiskFull = false
    /// The agent can open no file of a transfer.
    package var hasNoDescriptors = false
    /// Counts the changes: the answer to one is its number.
    package var number = 0

    package init(zone: String) { self.zone = zone }

    /// What the processes of such a host find in their environment.
    package var environment: [String: String] { [RehearsalHome.clockVariable: String(clockOffset), "TZ": zone] }
}
