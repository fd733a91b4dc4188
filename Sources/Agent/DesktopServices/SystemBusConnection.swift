import CLibnotify
import DesktopBus
import Foundation

/// GLib's shared connection to the system bus, for all threads. Other code must not request this connection directly from GLib.
/// If a bus does not respond, GLib waits without a limit and blocks all other threads.
enum SystemBusConnection {
    enum Outcome {
        /// The connection is open, and the caller has to release it.
        case open(OpaquePointer)
        case isAbsent
        /// The bus exists but does not respond.
        case isSilent
    }

    /// The maximum number of seconds that the bus may take to respond.
    private static let patience = 3

    /// Opens the connection. If the bus does not respond, or if another thread already waits for the bus, the call waits for a
    /// limited time.
    static func open() -> Outcome {
        var error: UnsafeMutablePointer<GError>?
        defer { g_clear_error(&error) }
        let limit = TimeLimit(seconds: patience)
        defer { limit.end() }
        if let opened = g_bus_get_sync(G_BUS_TYPE_SYSTEM, limit.cancellable, &error) {
            // By default, GLib ends the process if the bus ends. This call prevents the end of the process.
            g_dbus_connection_set_exit_on_close(opened, 0)
            return .open(opened)
        }
        // If a bus accepts a login and then sends nothing, GLib's own limit of 25 s applies.
        let silence = [G_IO_ERROR_CANCELLED, G_IO_ERROR_TIMED_OUT]
        return silence.contains { g_error_matches(error, g_io_error_quark(), gint($0.rawValue)) != 0 } ? .isSilent : .isAbsent
    }

    /// Calls `body` on a new thread after a silent bus responds or ends. The thread waits on a connection that is not shared.
    static func whenItAnswers(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread {
            if let address = g_dbus_address_get_for_bus_sync(G_BUS_TYPE_SYSTEM, nil, nil) {
                defer { g_free(address) }
                let connection = g_dbus_connection_new_for_address_sync(
                    address, G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT, nil, nil, nil)
                if let connection {
                    let name = "org.freedesktop.DBus"
                    let answer = g_dbus_connection_call_sync(
                        connection, name, "/org/freedesktop/DBus", name, "Hello", nil, nil, G_DBUS_CALL_FLAGS_NONE, .max, nil, nil
                    )
                    if let answer { g_variant_unref(answer) }
                    g_object_unref(UnsafeMutableRawPointer(connection))
                }
            }
            body()
        }
        thread.name = "system-bus"
        thread.start()
    }
}
