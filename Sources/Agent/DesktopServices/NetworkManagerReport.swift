/// The network state that NetworkManager reports, with NetworkManager's numbers (nm-dbus-interface.h). Every value may be missing.
struct NetworkManagerReport: Sendable, Equatable {
    /// The state: 10 asleep, 20 disconnected, 30 disconnecting, 40 connecting, 50 local, 60 site, 70 global.
    var state: UInt32?
    /// The connectivity: 1 none, 2 a captive portal, 3 limited, 4 full; 0 not checked.
    var connectivity: UInt32?
    /// The metered state: 1 yes, 2 no, 3 guessed yes, 4 guessed no; 0 unknown.
    var metered: UInt32?
    /// The name of the connection that leads to the internet. The name differs after each change of network.
    var primaryConnection: String?
    /// The connection's type: "802-11-wireless", "802-3-ethernet", "gsm", …; empty without a connection.
    var primaryConnectionType: String?

    /// Returns `true` if an attempt to reach another machine makes sense.
    ///
    /// - Parameters:
    ///   - monitor: the result of GIO's monitor, which evaluates routes.
    ///   - hasInterface: `true` if an interface is up and has an address.
    ///   - hasDevice: `true` if such an interface has hardware behind it. A bridge for containers has no hardware.
    static func isNetworkAvailable(_ report: NetworkManagerReport?, monitor: Bool, hasInterface: Bool, hasDevice: Bool) -> Bool {
        guard let state = report?.state else { return monitor || hasInterface }
        // Behind a captive portal, every response comes from the portal.
        if report?.connectivity == 2 { return false }
        switch state {
        case 50...: return true
        // The machine just woke, or the connection is changing: addresses from before the sleep are not reliable.
        case 10, 30, 40: return false
        // NetworkManager manages no connected interface. Another network manager may manage a connected interface.
        case 20: return hasDevice
        default: return monitor || hasInterface
        }
    }

    /// Returns `true` if a service reports whether there is a network.
    ///
    /// - Parameter monitor: the type of GIO's monitor. GIO uses the base class if the kernel's routes cannot be read. The base
    ///   class always reports "available".
    static func isNetworkKnown(_ report: NetworkManagerReport?, monitor: String?) -> Bool {
        report?.state != nil || (monitor != nil && monitor != "GNetworkMonitorBase")
    }

    /// Returns `true` if a service reports whether the network is metered. NetworkManager has no such information about networks
    /// that other programs manage. Without a network, the result is `true`. The portal's monitor is the only monitor of GIO with
    /// this information.
    static func isMeteredKnown(_ report: NetworkManagerReport?, monitor: String?, isNetworkAvailable: Bool) -> Bool {
        report?.metered.map { $0 != 0 || !isNetworkAvailable } ?? (monitor == "GNetworkMonitorPortal")
    }

    /// `true` if the network is metered; `nil` if NetworkManager does not report it.
    var isMetered: Bool? {
        switch metered {
        case 1, 3: true
        // NetworkManager's documentation recommends to treat "unknown" as unmetered.
        case .some: false
        case nil: nil
        }
    }

    /// `true` if the user marked the network as metered, and the state is not guessed from the kind of connection.
    var isConstrained: Bool? { metered.map { $0 == 1 } }

    /// `true` for GSM and its successors, for CDMA, and for a telephone over Bluetooth.
    var isCellular: Bool? {
        primaryConnectionType.flatMap { $0.isEmpty ? nil : ["gsm", "cdma", "bluetooth"].contains($0) }
    }

    var isWiFi: Bool? { primaryConnectionType.flatMap { $0.isEmpty ? nil : $0 == "802-11-wireless" } }
}
