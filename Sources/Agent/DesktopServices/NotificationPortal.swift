import BackgroundNotices
import CLibnotify

/// What the desktop portal can do with notifications.
struct NotificationPortal: Equatable {
    static let busName = "org.freedesktop.portal.Desktop"
    static let path = "/org/freedesktop/portal/desktop"
    static let interface = "org.freedesktop.portal.Notification"

    let version: UInt32
    /// Purposes of buttons that the desktop behind it knows, such as "im.reply-with-text"; of version 2.
    let purposes: Set<String>
    /// Categories that it knows, such as "weather.warning.extreme"; of version 2.
    let categories: Set<String>

    /// A button can have a field to type into, and what is typed is told.
    var hasReplies: Bool { version >= 2 && purposes.contains(Self.replyPurpose) }
    static let replyPurpose = "im.reply-with-text"

    /// Sounds, hints and media by file descriptor.
    var hasMedia: Bool { version >= 2 }

    /// As of a server. A portal always draws titles, bodies and buttons, where the desktop behind it does.
    var description: PresenterServer {
        PresenterServer(
            name: "xdg-desktop-portal", vendor: "", version: "\(version)", specificationVersion: "",
            capabilities: Set(["actions", "body"] + (hasMedia ? ["sound"] : []) + (hasReplies ? ["inline-reply"] : [])))
    }

    /// Asks the portal on `connection`, blocking the loop's thread until it answers.
    static func query(on connection: OpaquePointer, mayStart: Bool) throws(PresenterFailure) -> NotificationPortal {
        let version = try property("version", on: connection, mayStart: mayStart) { boxed in
            GVariantReading.type(of: boxed) == "u" ? g_variant_get_uint32(boxed) : nil
        }
        guard let version, version >= 2 else { return NotificationPortal(version: version ?? 1, purposes: [], categories: []) }
        let options = try property("SupportedOptions", on: connection, mayStart: mayStart) { boxed in
            func texts(_ key: String) -> Set<String> {
                Set(GVariantReading.value(key, ofType: "as", in: boxed) { GVariantReading.strings($0, ofType: "as") ?? [] } ?? [])
            }
            return NotificationPortal(version: version, purposes: texts("button-purpose"), categories: texts("category"))
        }
        return options
    }

    /// Takes a notification off the screen; one that does not stand there is none of the portal's errors.
    func remove(_ identifier: String, on connection: OpaquePointer) throws(PresenterFailure) {
        var words = [g_variant_new_string(NoticeText.withoutControls(identifier))]
        let parameters = g_variant_new_tuple(&words, 1)
        g_variant_unref(
            try Self.call("RemoveNotification", Self.interface, parameters, nil, on: connection, mayStart: false))
    }

    private static func property<Value>(
        _ name: String, on connection: OpaquePointer, mayStart: Bool, _ read: (OpaquePointer) -> Value
    ) throws(PresenterFailure) -> Value {
        var words = [g_variant_new_string(interface), g_variant_new_string(name)]
        let reply = try call(
            "Get", "org.freedesktop.DBus.Properties", g_variant_new_tuple(&words, 2), nil, on: connection, mayStart: mayStart)
        defer { g_variant_unref(reply) }
        guard GVariantReading.type(of: reply) == "(v)", let box = g_variant_get_child_value(reply, 0) else {
            throw .refused("the portal's \(name) has an unexpected type")
        }
        defer { g_variant_unref(box) }
        guard let value = g_variant_get_variant(box) else { throw .refused("the portal's \(name) is empty") }
        defer { g_variant_unref(value) }
        return read(value)
    }

    /// Blocks until the portal answers; the caller lets go of the answer. The parameters are taken over.
    static func call(
        _ method: String, _ interface: String, _ parameters: OpaquePointer?, _ files: UnsafeMutablePointer<GUnixFDList>?,
        on connection: OpaquePointer, mayStart: Bool
    ) throws(PresenterFailure) -> OpaquePointer {
        var error: UnsafeMutablePointer<GError>?
        let flags = mayStart ? G_DBUS_CALL_FLAGS_NONE : G_DBUS_CALL_FLAGS_NO_AUTO_START
        let reply = g_dbus_connection_call_with_unix_fd_list_sync(
            connection, busName, path, interface, method, parameters, nil, flags, -1, files, nil, nil, &error)
        guard let reply else { throw PresenterFailure(consuming: error) }
        return reply
    }
}
