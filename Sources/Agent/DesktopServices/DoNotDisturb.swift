import CLibnotify

/// Watches whether the user switched on the do-not-disturb mode of the notification server. This class is used only on the loop's
/// thread.
///
/// The mode is read from a property of servers that have the capability "inhibitions". No version of the specification contains
/// this property. During this mode, Plasma stores arriving notifications in its history.
final class DoNotDisturb {
    private static let property = "Inhibited"
    private static let properties = "org.freedesktop.DBus.Properties"
    private static let path = "/org/freedesktop/Notifications"

    private let connection: OpaquePointer
    private let report: (Bool) -> Void
    private var subscription: guint = 0

    init(on connection: OpaquePointer, _ tell: @escaping (Bool) -> Void) {
        (self.connection, self.report) = (connection, tell)
        subscription = g_dbus_connection_signal_subscribe(
            connection, PresenterServer.busName, Self.properties, "PropertiesChanged", Self.path, PresenterServer.busName,
            G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, _, parameters, data in
                guard let data, let parameters else { return }
                Unmanaged<DoNotDisturb>.fromOpaque(data).takeUnretainedValue().handle(parameters)
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
        query()
    }

    deinit { g_dbus_connection_signal_unsubscribe(connection, subscription) }

    private func query() {
        var words = [g_variant_new_string(PresenterServer.busName), g_variant_new_string(Self.property)]
        let reply = g_dbus_connection_call_sync(
            connection, PresenterServer.busName, Self.path, Self.properties, "Get", g_variant_new_tuple(&words, 2), nil,
            G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, nil, nil)
        guard let reply else { return }
        defer { g_variant_unref(reply) }
        guard String(cString: g_variant_get_type_string(reply)) == "(v)", let boxed = g_variant_get_child_value(reply, 0) else {
            return
        }
        defer { g_variant_unref(boxed) }
        guard let value = g_variant_get_variant(boxed) else { return }
        defer { g_variant_unref(value) }
        update(value)
    }

    private func handle(_ parameters: OpaquePointer) {
        guard String(cString: g_variant_get_type_string(parameters)) == "(sa{sv}as)",
            let changed = g_variant_get_child_value(parameters, 1)
        else { return }
        defer { g_variant_unref(changed) }
        guard let value = g_variant_lookup_value(changed, Self.property, nil) else { return }
        defer { g_variant_unref(value) }
        update(value)
    }

    private func update(_ value: OpaquePointer) {
        guard String(cString: g_variant_get_type_string(value)) == "b" else { return }
        report(g_variant_get_boolean(value) != 0)
    }
}
