import CLibnotify

/// A notification without an agent: for what a person has to know where nothing can be written down that an agent would show.
enum DirectNotice {
    /// - Returns: why it is not shown; `nil`: it is.
    static func show(_ title: String, _ body: String) -> String? {
        SessionBus.withConnection(or: { $0 }) { connection, _ in
            let server = SessionBus.Object(
                name: "org.freedesktop.Notifications", path: "/org/freedesktop/Notifications",
                interface: "org.freedesktop.Notifications")
            // (susssasa{sv}i): of whom, in place of none, icon, title, body, no buttons, no hints, for as long as the server likes.
            var parts: [OpaquePointer?] = [
                g_variant_new_string("Stormy"), g_variant_new_uint32(0), g_variant_new_string("dialog-warning"),
                g_variant_new_string(title), g_variant_new_string(withoutMarkup(body)),
                g_variant_parse(nil, "@as []", nil, nil, nil),
                g_variant_parse(nil, "@a{sv} {}", nil, nil, nil), g_variant_new_int32(-1),
            ]
            let question = g_variant_new_tuple(&parts, gsize(parts.count))
            return server.call(connection, "Notify", question, seconds: 10, or: { $0 }) { _ in nil }
        }
    }

    /// Most servers read the body as markup.
    private static func withoutMarkup(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
