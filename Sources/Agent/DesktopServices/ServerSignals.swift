import CLibnotify

/// A signal of a notification server about a notification.
struct ServerSignal: Sendable {
    enum Argument {
        case text(String)
        case number(UInt32)
    }

    /// The position of the signal among the signals of its connection.
    var order: UInt64 = 0
    /// The name of the connection that sent the signal.
    let sender: String
    let name: String
    /// The number of the notification.
    let number: UInt32
    let argument: Argument
}

extension ServerSignal {
    /// Decodes a message. Returns `nil` if the message is not a signal of a notification server.
    init?(_ message: OpaquePointer) {
        func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }
        guard g_dbus_message_get_message_type(message) == G_DBUS_MESSAGE_TYPE_SIGNAL,
            text(g_dbus_message_get_interface(message)) == PresenterServer.busName,
            text(g_dbus_message_get_path(message)) == "/org/freedesktop/Notifications",
            let sender = text(g_dbus_message_get_sender(message)), let name = text(g_dbus_message_get_member(message)),
            let body = g_dbus_message_get_body(message)
        else { return nil }
        let type = String(cString: g_variant_get_type_string(body))
        guard type == "(us)" || type == "(uu)", let first = g_variant_get_child_value(body, 0) else { return nil }
        defer { g_variant_unref(first) }
        guard let second = g_variant_get_child_value(body, 1) else { return nil }
        defer { g_variant_unref(second) }
        (self.sender, self.name, number) = (sender, name, g_variant_get_uint32(first))
        argument =
            type == "(us)"
            ? .text(String(cString: g_variant_get_string(second, nil))) : .number(g_variant_get_uint32(second))
    }
}

/// A subscription to the signals that a notification server broadcasts. ``ServerMessages`` reads these signals. The subscription
/// ends when this object is deallocated. This class is used only on the loop's thread.
final class ServerSignals {
    private let connection: OpaquePointer
    private let subscription: guint

    init(on connection: OpaquePointer) {
        self.connection = connection
        subscription = g_dbus_connection_signal_subscribe(
            connection, PresenterServer.busName, PresenterServer.busName, nil, "/org/freedesktop/Notifications", nil,
            G_DBUS_SIGNAL_FLAGS_NONE, { _, _, _, _, _, _, _ in }, nil, nil)
    }

    deinit { g_dbus_connection_signal_unsubscribe(connection, subscription) }
}
