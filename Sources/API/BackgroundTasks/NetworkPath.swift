import BackgroundRuntime

/// The network connection of this machine, for an app that checks it before a large transfer. Replaces `NWPathMonitor`. Beyond
/// Apple's BackgroundTasks, whose `requiresNetworkConnectivity` does not identify the network.
public struct NetworkPath: Sendable, Hashable {
    /// The machine has a network connection to other hosts. A host may still not respond.
    public let isConnected: Bool
    /// The connection costs money per byte, if the desktop reports that.
    public let isMetered: Bool
    /// The connection is a Wi-Fi connection.
    public let usesWiFi: Bool

    /// The connection that the agent observes now, or `nil` if no agent is running. In a launch, an agent is always running.
    ///
    /// Cost: one read of the ledger.
    public static var current: NetworkPath? {
        guard let observed = AppRuntime.shared.observedConditions else { return nil }
        return NetworkPath(
            isConnected: observed.isNetworkAvailable, isMetered: observed.isNetworkMetered, usesWiFi: observed.isNetworkWiFi)
    }
}
