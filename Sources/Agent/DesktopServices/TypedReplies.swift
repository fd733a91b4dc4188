import CLibnotify

/// Hears what a person types into a notification. Used on the loop's thread only.
///
/// A signal that is in no version of the specification and that libnotify does not know; Plasma sends it to whoever showed the notification.
final class TypedReplies {
    private var subscription: (number: guint, connection: OpaquePointer)?

    var onReply: ((_ serverID: UInt32, _ text: String) -> Void)?

    func listen(on connection: OpaquePointer) {
        guard subscription == nil else { return }
        let number = g_dbus_connection_signal_subscribe(
            connection, PresenterServer.busName, PresenterServer.busName, "NotificationReplied", "/org/freedesktop/Notifications",
            nil,
            G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, _, parameters, data in
                guard let data, let parameters else { return }
                Unmanaged<TypedReplies>.fromOpaque(data).takeUnretainedValue().take(parameters)
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
        subscription = (number, connection)
    }

    func stop() {
        if let subscription { g_dbus_connection_signal_unsubscribe(subscription.connection, subscription.number) }
        subscription = nil
    }

    private func take(_ parameters: OpaquePointer) {
        guard String(cString: g_variant_get_type_string(parameters)) == "(us)",
            let first = g_variant_get_child_value(parameters, 0),
            let second = g_variant_get_child_value(parameters, 1)
        else { return }
        defer {
            g_variant_unref(first)
            g_variant_unref(second)
        }
        onReply?(g_variant_get_uint32(first), String(cString: g_variant_get_string(second, nil)))
    }
}
