import CLibnotify
import DesktopBus
import Foundation

/// GLib's shared connection to the system bus, for every thread. Nobody else asks GLib for it: it waits for a bus that stands still as long as that
/// stands still, and everybody else with it.
enum SystemBusConnection {
    enum Outcome {
        /// The caller lets go of it.
        case open(OpaquePointer)
        case isAbsent
        /// It is there, and does not answer.
        case isSilent
    }

    /// Seconds that a bus may take to answer.
    private static let patience = 3

    /// Waits for a bus that stands still, and for whoever waits for it on another thread.
    static func open() -> Outcome {
        var error: UnsafeMutablePointer<GError>?
        defer { g_clear_error(&error) }
        let limit = TimeLimit(seconds: patience)
        defer { limit.end() }
        if let opened = g_bus_get_sync(G_BUS_TYPE_SYSTEM, limit.cancellable, &error) {
            // By default GLib ends the process with the bus.
            g_dbus_connection_set_exit_on_close(opened, 0)
            return .open(opened)
        }
        // One that takes a login and then says nothing is waited for by GLib's own limit, 25 s.
        let silence = [G_IO_ERROR_CANCELLED, G_IO_ERROR_TIMED_OUT]
        return silence.contains { g_error_matches(error, g_io_error_quark(), gint($0.rawValue)) != 0 } ? .isSilent : .isAbsent
    }

    /// Calls `body` on a thread of its own as soon as a silent bus answers, or ends. Waits by a connection that is not shared.
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
