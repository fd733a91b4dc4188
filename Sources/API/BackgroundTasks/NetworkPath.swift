import BackgroundRuntime

/// The network connection of this machine, for an app that checks it before a large transfer. The type replaces `NWPathMonitor`.
/// Apple's BackgroundTasks has no equivalent, because `requiresNetworkConnectivity` does not identify the network.
public struct NetworkPath: Sendable, Hashable {
    /// `true` if the machine has a network connection to other hosts. A specific host may not respond even if the value is
    /// `true`.
    public let isConnected: Bool
    /// `true` if the connection costs money per byte. `false` if the desktop does not report the costs.
    public let isMetered: Bool
    /// `true` if the connection is a Wi-Fi connection.
    public let usesWiFi: Bool

    /// The connection that the agent observes now, or `nil` if no agent is running. If the agent launched this process, the agent
    /// is always running.
    ///
    /// Cost: one read of the ledger.
    public static var current: NetworkPath? {
        guard let observed = AppRuntime.shared.observedConditions else { return nil }
        return NetworkPath(
            isConnected: observed.isNetworkAvailable, isMetered: observed.isNetworkMetered, usesWiFi: observed.isNetworkWiFi)
    }
}
