import CLibnotify

/// Hears which buttons of the portal's notifications are pressed, until it is let go of. Used on the loop's thread only.
final class PortalPresses {
    struct Press: Equatable {
        enum What: Equatable {
            case action(String, token: String?)
            case reply(String)
        }

        /// As the portal calls the notification.
        let name: String
        let what: What
    }

    private let connection: OpaquePointer
    private let take: (Press) -> Void
    private var subscription: guint = 0

    init(on connection: OpaquePointer, _ take: @escaping (Press) -> Void) {
        (self.connection, self.take) = (connection, take)
        subscription = g_dbus_connection_signal_subscribe(
            connection, NotificationPortal.busName, NotificationPortal.interface, "ActionInvoked", NotificationPortal.path, nil,
            G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, _, parameters, data in
                guard let data, let parameters, let press = Press(parameters) else { return }
                Unmanaged<PortalPresses>.fromOpaque(data).takeUnretainedValue().take(press)
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    deinit { g_dbus_connection_signal_unsubscribe(connection, subscription) }
}

extension PortalPresses.Press {
    /// Reads the signal's arguments: the notification, its action, and what version 2 adds (a token for a window, and what was typed).
    fileprivate init?(_ parameters: OpaquePointer) {
        guard GVariantReading.type(of: parameters) == "(ssav)" else { return nil }
        let words = (0..<2).map { (index: gsize) -> String in
            guard let child = g_variant_get_child_value(parameters, index) else { return "" }
            defer { g_variant_unref(child) }
            return String(cString: g_variant_get_string(child, nil))
        }
        guard let key = PortalName.key(ofAction: words[1]), let more = g_variant_get_child_value(parameters, 2) else {
            return nil
        }
        defer { g_variant_unref(more) }
        var (token, text): (String?, String?)
        for (aToken, aText) in GVariantReading.children(of: more, Self.read) { (token, text) = (token ?? aToken, text ?? aText) }
        name = words[0]
        what = text.map { .reply($0) } ?? .action(key, token: token)
    }

    private static func read(_ box: OpaquePointer) -> (token: String?, text: String?) {
        guard let value = g_variant_get_variant(box) else { return (nil, nil) }
        defer { g_variant_unref(value) }
        func text(_ value: OpaquePointer) -> String { String(cString: g_variant_get_string(value, nil)) }
        if GVariantReading.type(of: value) == "s" { return (nil, text(value)) }
        return (GVariantReading.value("activation-token", ofType: "s", in: value, text), nil)
    }
}
