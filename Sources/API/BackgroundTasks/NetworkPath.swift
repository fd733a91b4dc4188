import BackgroundRuntime

/// What connects this machine, for an app's own check before it moves much. Beyond Apple's BackgroundTasks, whose
/// `requiresNetworkConnectivity` does not say which network; in the place of `NWPathMonitor`.
public struct NetworkPath: Sendable, Hashable {
    /// Some host beyond this machine can be tried; no promise that it answers.
    public let isConnected: Bool
    /// The connection costs money per byte, as far as the desktop knows.
    public let isMetered: Bool
    /// What connects is Wi-Fi.
    public let usesWiFi: Bool

    /// As the agent sees it now; in a launched process it always does. `nil`: no agent runs, so nobody watches.
    ///
    /// Cost: one read of the ledger.
    public static var current: NetworkPath? {
        guard let observed = AppRuntime.shared.observedConditions else { return nil }
        return NetworkPath(
            isConnected: observed.isNetworkAvailable, isMetered: observed.isNetworkMetered, usesWiFi: observed.isNetworkWiFi)
    }
}
