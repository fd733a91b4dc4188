// The port of conditions: what the desktop's network and power are like, as far as it is known.

/// A snapshot of the conditions that requests can ask for.
public struct DesktopConditions: Sendable, Equatable, Codable {
    /// Some network beyond this machine can be tried: any non-loopback route. Never a promise that a host answers.
    public var isNetworkAvailable: Bool
    /// The connection costs money per byte, as far as the desktop knows; unknown counts as no.
    public var isNetworkMetered: Bool
    /// On mains, or on a machine without a battery.
    public var isOnExternalPower: Bool

    public init(isNetworkAvailable: Bool, isNetworkMetered: Bool, isOnExternalPower: Bool) {
        self.isNetworkAvailable = isNetworkAvailable
        self.isNetworkMetered = isNetworkMetered
        self.isOnExternalPower = isOnExternalPower
    }
}

/// Where conditions come from. The handler given to an implementation's initialiser is called on the source's
/// own thread each time something changed, and once at the start.
public protocol ConditionsSource: Sendable {
    var current: DesktopConditions { get }
}
