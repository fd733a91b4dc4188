/// The network state that NetworkManager reports, with the numbers of nm-dbus-interface.h. Every value may be missing.
struct NetworkManagerReport: Sendable, Equatable {
    /// The state: 10 asleep, 20 disconnected, 30 disconnecting, 40 connecting, 50 local, 60 site, 70 global.
    var state: UInt32?
    /// The connectivity: 0 not checked, 1 none, 2 a captive portal, 3 limited, 4 full.
    var connectivity: UInt32?
    /// The metered state: 0 unknown, 1 yes, 2 no, 3 guessed yes, 4 guessed no.
    var metered: UInt32?
    /// The name of the connection to the internet. The name changes after each change of the network.
    var primaryConnection: String?
    /// The type of the connection, for example "802-11-wireless", "802-3-ethernet" or "gsm". The text is empty if no connection
    /// exists.
    var primaryConnectionType: String?

    /// Returns `true` if an attempt to reach another machine may succeed.
    ///
    /// - Parameters:
    ///   - monitor: the result of GIO's monitor, which evaluates routes.
    ///   - hasInterface: `true` if an interface is up and has an address.
    ///   - hasDevice: `true` if such an interface belongs to hardware. A bridge for containers does not belong to hardware.
    static func isNetworkAvailable(_ report: NetworkManagerReport?, monitor: Bool, hasInterface: Bool, hasDevice: Bool) -> Bool {
        guard let state = report?.state else { return monitor || hasInterface }
        // If a captive portal is active, every response comes from the portal.
        if report?.connectivity == 2 { return false }
        switch state {
        case 50...: return true
        // The machine has just woken, or the connection is changing. Addresses from before the sleep are not reliable.
        case 10, 30, 40: return false
        // NetworkManager manages no connected interface, but another program may manage a connected interface.
        case 20: return hasDevice
        default: return monitor || hasInterface
        }
    }

    /// Returns `true` if a service reports whether a network is available.
    ///
    /// - Parameter monitor: the type of GIO's monitor. If the kernel's routes cannot be read, GIO uses the base class
    ///   `GNetworkMonitorBase`, which always reports "available".
    static func isNetworkKnown(_ report: NetworkManagerReport?, monitor: String?) -> Bool {
        report?.state != nil || (monitor != nil && monitor != "GNetworkMonitorBase")
    }

    /// Returns `true` if a service reports whether the network is metered. NetworkManager does not have this information about
    /// networks that other programs manage. If no network is available, the result is `true`. Of GIO's monitors, only the
    /// portal's monitor has this information.
    static func isMeteredKnown(_ report: NetworkManagerReport?, monitor: String?, isNetworkAvailable: Bool) -> Bool {
        report?.metered.map { $0 != 0 || !isNetworkAvailable } ?? (monitor == "GNetworkMonitorPortal")
    }

    /// `true` if the network is metered. `nil` if NetworkManager does not report this.
    var isMetered: Bool? {
        switch metered {
        case 1, 3: true
        // NetworkManager's documentation recommends that "unknown" is treated as unmetered.
        case .some: false
        case nil: nil
        }
    }

    /// `true` if the user marked the network as metered. A state that NetworkManager guessed from the kind of connection does not
    /// count.
    var isConstrained: Bool? { metered.map { $0 == 1 } }

    /// `true` if the connection uses GSM or its successors, CDMA, or a telephone over Bluetooth.
    var isCellular: Bool? {
        primaryConnectionType.flatMap { $0.isEmpty ? nil : ["gsm", "cdma", "bluetooth"].contains($0) }
    }

    var isWiFi: Bool? { primaryConnectionType.flatMap { $0.isEmpty ? nil : $0 == "802-11-wireless" } }
}
