import CLibnotify

/// Removes a label from the calls of libnotify: the label of the action for a click on the body of a notification.
///
/// Some servers show this label as an additional button. If the label is empty, these servers show no such button. However,
/// libnotify refuses an empty label. For this reason, a filter removes the label before the message is sent.
enum DefaultLabel {
    /// Returns `true` if the server draws the label as a button. The list comes from measurements with xfce4-notifyd 0.7 and LXQt
    /// 1.2.
    static func isDrawn(by server: PresenterServer) -> Bool {
        ["Xfce Notify Daemon", "lxqt-notificationd"].contains(server.name)
    }

    /// A message filter for a connection. GLib calls this filter on GLib's own thread. The filter owns the message, and returns
    /// the message that is sent.
    static let filter: GDBusMessageFilterFunction = { _, message, isIncoming, _ in
        guard let message, isIncoming == 0, g_dbus_message_get_message_type(message) == G_DBUS_MESSAGE_TYPE_METHOD_CALL,
            let member = g_dbus_message_get_member(message), String(cString: member) == "Notify",
            let body = g_dbus_message_get_body(message), String(cString: g_variant_get_type_string(body)) == "(susssasa{sv}i)",
            let copy = g_dbus_message_copy(message, nil)
        else { return message }
        g_dbus_message_set_body(copy, withoutLabel(body))
        g_object_unref(UnsafeMutableRawPointer(message))
        return copy
    }

    /// Returns the arguments of the call with an empty label for the key "default".
    private static func withoutLabel(_ arguments: OpaquePointer) -> OpaquePointer? {
        let actionsIndex = 5
        var parts = (0..<g_variant_n_children(arguments)).map { g_variant_get_child_value(arguments, $0) }
        defer { for part in parts { g_variant_unref(part) } }
        guard let actions = parts[actionsIndex] else { return arguments }
        var words = (0..<g_variant_n_children(actions)).map { index -> String in
            let word = g_variant_get_child_value(actions, index)
            defer { g_variant_unref(word) }
            return String(cString: g_variant_get_string(word, nil))
        }
        for key in stride(from: 0, to: words.count - 1, by: 2) where words[key] == "default" { words[key + 1] = "" }
        var variants: [OpaquePointer?] = words.map { g_variant_new_string($0) }
        let type = g_variant_type_new("s")
        defer { g_variant_type_free(type) }
        let changed = g_variant_ref_sink(g_variant_new_array(type, &variants, gsize(variants.count)))
        g_variant_unref(actions)
        parts[actionsIndex] = changed
        return g_variant_new_tuple(&parts, gsize(parts.count))
    }
}
