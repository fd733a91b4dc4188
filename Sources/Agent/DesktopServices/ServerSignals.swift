import CLibnotify

/// What a notification server tells of one notification.
struct ServerSignal {
    enum Argument {
        case text(String)
        case number(UInt32)
    }

    let name: String
    /// The notification's.
    let number: UInt32
    let argument: Argument
}

/// Hears a notification server's signals until it is let go of. Used on the loop's thread only.
final class ServerSignals {
    private let connection: OpaquePointer
    private let take: (ServerSignal) -> Void
    private var subscription: guint = 0

    /// - Parameter name: of one signal; `nil`: all.
    init(named name: String?, on connection: OpaquePointer, _ take: @escaping (ServerSignal) -> Void) {
        (self.connection, self.take) = (connection, take)
        subscription = g_dbus_connection_signal_subscribe(
            connection, PresenterServer.busName, PresenterServer.busName, name, "/org/freedesktop/Notifications", nil,
            G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, name, parameters, data in
                guard let data, let name, let parameters else { return }
                Unmanaged<ServerSignals>.fromOpaque(data).takeUnretainedValue().hear(String(cString: name), parameters)
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    deinit { g_dbus_connection_signal_unsubscribe(connection, subscription) }

    private func hear(_ name: String, _ parameters: OpaquePointer) {
        let type = String(cString: g_variant_get_type_string(parameters))
        guard type == "(us)" || type == "(uu)", let first = g_variant_get_child_value(parameters, 0),
            let second = g_variant_get_child_value(parameters, 1)
        else { return }
        defer {
            g_variant_unref(first)
            g_variant_unref(second)
        }
        let argument: ServerSignal.Argument =
            type == "(us)"
            ? .text(String(cString: g_variant_get_string(second, nil))) : .number(g_variant_get_uint32(second))
        take(ServerSignal(name: name, number: g_variant_get_uint32(first), argument: argument))
    }
}
