import CLibnotify
import DesktopBus

/// The file chooser of the desktop's portal (`org.freedesktop.portal.FileChooser`). The portal also works in sandboxes, and its
/// windows look like the desktop's windows.
final class FileChooserPortal {
    enum Choice: Equatable, Sendable {
        /// The paths of the chosen files, and the addresses of chosen files that are not on this computer. U+FFFD replaces bytes that
        /// are not UTF-8.
        case chosen([String])
        case cancelled
        /// The desktop has no session bus, no portal, or a portal without a file chooser.
        case unavailable(String)
    }

    private static let name = "org.freedesktop.portal.Desktop"

    private let bus = SessionBus(watching: FileChooserPortal.name)
    private let loop = g_main_loop_new(nil, 0)
    /// The portal's object for the open request. A response may arrive before this property contains the path of the object.
    private var request: String?
    private var responses: [String: Choice] = [:]
    private var choice: Choice?

    /// Returns whether the portal can show a file chooser. No window is shown. The portal is started if it does not run.
    ///
    /// - Returns: `.chosen([])` if a file chooser can be shown.
    static func check() -> Choice {
        FileChooserPortal().connected { portal, connection throws(BusTrouble) in
            var parts: [OpaquePointer?] = [
                g_variant_new_string("org.freedesktop.portal.FileChooser"), g_variant_new_string("version"),
            ]
            // The portal has this interface only if a backend of the desktop can choose files.
            return try object("org.freedesktop.DBus.Properties").call(
                "Get", g_variant_new_tuple(&parts, gsize(parts.count)), on: connection, seconds: 10
            ) { _ in .chosen([]) }
        }
    }

    /// Shows the file chooser, and returns the user's choice. While the chooser is open, this method runs GLib's default context.
    static func choosePhotos(title: String) -> Choice {
        FileChooserPortal().connected { portal, connection throws(BusTrouble) in try portal.choose(title, connection) }
    }

    private func connected(_ body: (FileChooserPortal, OpaquePointer) throws(BusTrouble) -> Choice) -> Choice {
        defer { g_main_loop_unref(loop) }
        do {
            let connection = try bus.open()
            defer { bus.release() }
            return try body(self, connection)
        } catch {
            return .unavailable(error.reason)
        }
    }

    private static func object(_ interface: String) -> BusObject {
        BusObject(name: name, path: "/org/freedesktop/portal/desktop", interface: interface)
    }

    private func choose(_ title: String, _ connection: OpaquePointer) throws(BusTrouble) -> Choice {
        // The subscription is not limited to a path, because the object path of older portals differs from the path that the
        // token determines.
        let subscription = g_dbus_connection_signal_subscribe(
            connection, Self.name, "org.freedesktop.portal.Request", "Response", nil, nil, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, path, _, _, parameters, data in
                guard let path, let parameters else { return }
                FileChooserPortal.from(data).receive(String(cString: path), FileChooserPortal.read(parameters))
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
        defer { g_dbus_connection_signal_unsubscribe(connection, subscription) }
        // If the portal's process ends, the request is lost and no response arrives.
        bus.onServerVanished = { [unowned self] in stopWaiting() }
        bus.onLost = { [unowned self] in stopWaiting() }
        request = try Self.object("org.freedesktop.portal.FileChooser").call(
            "OpenFile", Self.question(title), on: connection, seconds: 30
        ) { Self.text(of: $0, type: "(o)") }
        guard let request else { return .unavailable("the portal's reply has an unexpected type") }
        choice = responses[request]
        if choice == nil { g_main_loop_run(loop) }
        return choice ?? .unavailable("the portal ended")
    }

    private func receive(_ path: String, _ response: Choice) {
        responses[path] = response
        guard path == request else { return }
        choice = response
        g_main_loop_quit(loop)
    }

    private func stopWaiting() { if request != nil { g_main_loop_quit(loop) } }

    // MARK: Messages of the portal

    /// Returns the parameters, `(ssa{sv})`: an empty parent window, the title, and the options.
    private static func question(_ title: String) -> OpaquePointer? {
        let filters =
            "[('Photos', [(uint32 1, 'image/*')]), ('All files', [(uint32 0, '*')])]"
        let options = "{'multiple': <true>, 'modal': <false>, 'filters': <@a(sa(us)) \(filters)>}"
        var parts: [OpaquePointer?] = [
            g_variant_new_string(""), g_variant_new_string(title), g_variant_parse(nil, "@a{sv} \(options)", nil, nil, nil),
        ]
        return g_variant_new_tuple(&parts, gsize(parts.count))
    }

    /// Reads a response, `(ua{sv})`. The code 0 is a choice, and 1 is a cancellation by the user.
    private static func read(_ parameters: OpaquePointer) -> Choice {
        guard String(cString: g_variant_get_type_string(parameters)) == "(ua{sv})" else {
            return .unavailable("the portal's reply has an unexpected type")
        }
        let code = g_variant_get_child_value(parameters, 0)
        let results = g_variant_get_child_value(parameters, 1)
        defer {
            g_variant_unref(code)
            g_variant_unref(results)
        }
        // The code 2 is for any other end of the dialog. The portal of GTK also uses this code if the user closes the window.
        guard g_variant_get_uint32(code) == 0 else { return .cancelled }
        guard let addresses = g_variant_lookup_value(results, "uris", nil) else {
            return .unavailable("the portal's reply contains no files")
        }
        defer { g_variant_unref(addresses) }
        guard String(cString: g_variant_get_type_string(addresses)) == "as" else {
            return .unavailable("the portal's reply has an unexpected type")
        }
        var paths: [String] = []
        for index in 0..<g_variant_n_children(addresses) {
            guard let address = g_variant_get_child_value(addresses, index) else { continue }
            defer { g_variant_unref(address) }
            guard let text = g_variant_get_string(address, nil) else { continue }
            // The address of a file on a network server has no path. The address is returned, so that the caller can report it.
            guard let path = g_filename_from_uri(text, nil, nil) else {
                paths.append(String(cString: text))
                continue
            }
            paths.append(String(cString: path))
            g_free(path)
        }
        return paths.isEmpty ? .cancelled : .chosen(paths)
    }

    private static func text(of reply: OpaquePointer, type: String) -> String? {
        guard String(cString: g_variant_get_type_string(reply)) == type else { return nil }
        let value = g_variant_get_child_value(reply, 0)
        defer { g_variant_unref(value) }
        return g_variant_get_string(value, nil).map { String(cString: $0) }
    }

    private static func from(_ data: gpointer?) -> FileChooserPortal {
        guard let data else { fatalError("a callback of the portal has no owner") }
        return Unmanaged<FileChooserPortal>.fromOpaque(data).takeUnretainedValue()
    }
}
