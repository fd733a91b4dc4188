/// What NetworkManager says of the network, by its own numbers (nm-dbus-interface.h). All of it may be missing.
struct NetworkManagerReport: Sendable, Equatable {
    /// 10 asleep, 20 disconnected, 30 disconnecting, 40 connecting, 50 local, 60 site, 70 global.
    var state: UInt32?
    /// 1 none, 2 a captive portal, 3 limited, 4 full; 0 not looked at.
    var connectivity: UInt32?
    /// 1 yes, 2 no, 3 guessed yes, 4 guessed no; 0 unknown.
    var metered: UInt32?
    /// What it calls the one that leads to the internet: another after each change of network.
    var primaryConnection: String?
    /// "802-11-wireless", "802-3-ethernet", "gsm", …; empty without one.
    var primaryConnectionType: String?

    /// Whether some host beyond this machine can be tried.
    ///
    /// - Parameters:
    ///   - monitor: GIO's word, which knows routes.
    ///   - hasInterface: some interface is up and has an address.
    ///   - hasDevice: the same, of interfaces with hardware behind them: a bridge for containers does not count.
    static func isNetworkAvailable(_ report: NetworkManagerReport?, monitor: Bool, hasInterface: Bool, hasDevice: Bool) -> Bool {
        guard let state = report?.state else { return monitor || hasInterface }
        // Behind a portal every answer is the portal's.
        if report?.connectivity == 2 { return false }
        switch state {
        case 50...: return true
        // Just woken, or on its way: addresses of before the sleep mean nothing.
        case 10, 30, 40: return false
        // It manages nothing that is up; somebody else may.
        case 20: return hasDevice
        default: return monitor || hasInterface
        }
    }

    /// Somebody says whether there is a network.
    ///
    /// - Parameter monitor: the type of GIO's monitor. That of the base class says yes to everything: it is there where the kernel's routes
    ///   cannot be read.
    static func isNetworkKnown(_ report: NetworkManagerReport?, monitor: String?) -> Bool {
        report?.state != nil || (monitor != nil && monitor != "GNetworkMonitorBase")
    }

    /// Somebody says whether the network is metered. NetworkManager does not know it of networks that others manage; without any network there is
    /// nothing to know. Of GIO's monitors that of the portal knows it.
    static func isMeteredKnown(_ report: NetworkManagerReport?, monitor: String?, isNetworkAvailable: Bool) -> Bool {
        report?.metered.map { $0 != 0 || !isNetworkAvailable } ?? (monitor == "GNetworkMonitorPortal")
    }

    /// `nil`: it does not say.
    var isMetered: Bool? {
        switch metered {
        case 1, 3: true
        // Unknown counts as unmetered, by its own advice.
        case .some: false
        case nil: nil
        }
    }

    /// Marked by the person, not guessed from what connects.
    var isConstrained: Bool? { metered.map { $0 == 1 } }

    /// GSM and its successors, CDMA, or a telephone over Bluetooth.
    var isCellular: Bool? {
        primaryConnectionType.flatMap { $0.isEmpty ? nil : ["gsm", "cdma", "bluetooth"].contains($0) }
    }

    var isWiFi: Bool? { primaryConnectionType.flatMap { $0.isEmpty ? nil : $0 == "802-11-wireless" } }
}
