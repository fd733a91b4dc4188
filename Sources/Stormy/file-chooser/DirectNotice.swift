import CLibnotify
import DesktopBus

/// Shows a notification without the agent, for messages that must be shown even if the agent cannot be reached.
enum DirectNotice {
    static func show(_ title: String, _ body: String) throws(BusTrouble) {
        let name = "org.freedesktop.Notifications"
        let bus = SessionBus(watching: name)
        let connection = try bus.open()
        defer { bus.release() }
        let server = BusObject(name: name, path: "/org/freedesktop/Notifications", interface: name)
        // The parameters (susssasa{sv}i) are the app, the replaced id, the icon, the title, the body, no buttons, no hints, and
        // the server's default time on the screen.
        var parts: [OpaquePointer?] = [
            g_variant_new_string("Stormy"), g_variant_new_uint32(0), g_variant_new_string("dialog-warning"),
            g_variant_new_string(title), g_variant_new_string(withoutMarkup(body)),
            g_variant_parse(nil, "@as []", nil, nil, nil),
            g_variant_parse(nil, "@a{sv} {}", nil, nil, nil), g_variant_new_int32(-1),
        ]
        try server.call("Notify", g_variant_new_tuple(&parts, gsize(parts.count)), on: connection, seconds: 10) { _ in }
    }

    /// Escapes the body, because most notification servers read the body as markup.
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
