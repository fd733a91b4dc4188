import BackgroundRuntime

/// The network connection of this machine, for an app that checks it before a large transfer. Replaces `NWPathMonitor`. Beyond
/// Apple's BackgroundTasks, whose `requiresNetworkConnectivity` does not identify the network.
public struct NetworkPath: Sendable, Hashable {
    /// A host other than this machine can be tried. The host may still not respond.
    public let isConnected: Bool
    /// The connection costs money per byte, if the desktop reports that.
    public let isMetered: Bool
    /// The connection is a Wi-Fi connection.
    public let usesWiFi: Bool

    /// The connection as the agent observes it now, or `nil` if no agent runs. In a launched process, an agent always runs.
    ///
    /// Cost: one read of the ledger.
    public static var current: NetworkPath? {
        guard let observed = AppRuntime.shared.observedConditions else { return nil }
        return NetworkPath(
            isConnected: observed.isNetworkAvailable, isMetered: observed.isNetworkMetered, usesWiFi: observed.isNetworkWiFi)
    }
}
