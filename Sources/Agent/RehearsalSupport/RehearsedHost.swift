import BackgroundScheduling
import Foundation
import ProcessSupport

/// What a rehearsal says of the host, in place of the host itself: told to the agents of its throw-away home through a
/// socket there, line by line. Nobody else listens to it.
public struct RehearsedHost: Codable, Sendable, Equatable {
    /// What its wall clock shows, less what the real one does. Seconds.
    public var clockOffset: Double = 0
    /// Seconds that it has slept.
    public var slept: Double = 0
    /// The zone that the person is in.
    public var zone: String
    public var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    public var hasNotificationServer = true
    public var isDiskFull = false
    /// Counts the changes: the answer to one is its number.
    public var number = 0

    public init(zone: String) { self.zone = zone }

    /// What the processes of such a host find in their environment.
    public var environment: [String: String] { [RehearsalHome.clockVariable: String(clockOffset), "TZ": zone] }
}
