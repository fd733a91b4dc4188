import CLibnotify

/// The reason why a bus, or an object on a bus, cannot be used.
package enum BusTrouble: Error {
    /// No address of a session bus is known.
    case noAddress
    /// A connection or a call failed, with this message of GLib.
    case failed(String)

    /// - Parameter error: the error from GLib, which the initializer frees.
    init(consuming error: UnsafeMutablePointer<GError>?) {
        self = .failed(error.flatMap { $0.pointee.message }.map { String(cString: $0) } ?? "no reason given")
        if let error { g_error_free(error) }
    }

    package var reason: String {
        switch self {
        case .noAddress: "DBUS_SESSION_BUS_ADDRESS is not set and XDG_RUNTIME_DIR has no bus"
        case .failed(let reason): reason
        }
    }
}
