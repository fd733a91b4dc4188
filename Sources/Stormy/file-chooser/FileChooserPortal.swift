import CLibnotify

/// The desktop's own file chooser (`org.freedesktop.portal.FileChooser`): the one that also a sandboxed app gets, and that looks
/// like the desktop it runs on.
final class FileChooserPortal {
    enum Choice: Equatable, Sendable {
        /// Paths.
        case chosen([String])
        case cancelled
        /// No session bus, no portal, or one without a chooser.
        case unavailable(String)
    }

    static let name = "org.freedesktop.portal.Desktop"

    private let connection: OpaquePointer
    private let loop: OpaquePointer
    /// Of the request that the portal made. Its answer may come before it is known.
    private var request: String?
    private var responses: [String: Choice] = [:]
    private var choice: Choice?

    private init(_ connection: OpaquePointer, _ loop: OpaquePointer) {
        self.connection = connection
        self.loop = loop
    }

    /// Whether a choice could be asked for, which nobody sees. Starts the portal where it does not run.
    ///
    /// - Returns: `.chosen([])`: it could.
    static func look() -> Choice {
        withPortal { portal in
            var parts: [OpaquePointer?] = [
                g_variant_new_string("org.freedesktop.portal.FileChooser"), g_variant_new_string("version"),
            ]
            let question = g_variant_new_tuple(&parts, gsize(parts.count))
            // Without a backend that can choose files it has no such interface.
            return portal.call("org.freedesktop.DBus.Properties", "Get", question, seconds: 10) { _ in .chosen([]) }
        }
    }

    /// Asks the person for photos. Blocks for as long as they take; to be called from a thread without a loop of its own.
    static func choosePhotos(title: String) -> Choice { withPortal { $0.ask(title) } }

    private static func withPortal(_ body: (FileChooserPortal) -> Choice) -> Choice {
        SessionBus.withConnection(or: { .unavailable($0) }) { connection, context in
            guard let loop = g_main_loop_new(context, 0) else { return .unavailable("no memory") }
            defer { g_main_loop_unref(loop) }
            return body(FileChooserPortal(connection, loop))
        }
    }

    private func call(
        _ interface: String, _ method: String, _ question: OpaquePointer?, seconds: Int32, _ answer: (OpaquePointer) -> Choice
    ) -> Choice {
        let portal = SessionBus.Object(name: Self.name, path: "/org/freedesktop/portal/desktop", interface: interface)
        return portal.call(connection, method, question, seconds: seconds, or: { .unavailable($0) }, answer)
    }

    private func ask(_ title: String) -> Choice {
        let own = Unmanaged.passUnretained(self).toOpaque()
        // By no path: older portals do not keep to the one that the token promises.
        let answers = g_dbus_connection_signal_subscribe(
            connection, Self.name, "org.freedesktop.portal.Request", "Response", nil, nil, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, path, _, _, parameters, data in
                guard let path, let parameters else { return }
                FileChooserPortal.from(data).hear(String(cString: path), FileChooserPortal.read(parameters))
            }, own, nil)
        let watch = g_bus_watch_name_on_connection(
            connection, Self.name, G_BUS_NAME_WATCHER_FLAGS_NONE, nil,
            // The watch begins with this when nobody is there yet: the call starts it.
            { _, _, data in FileChooserPortal.from(data).vanished() }, own, nil)
        defer {
            g_dbus_connection_signal_unsubscribe(connection, answers)
            g_bus_unwatch_name(watch)
        }
        return call("org.freedesktop.portal.FileChooser", "OpenFile", Self.question(title), seconds: 30) { reply in
            guard let handle = Self.text(of: reply, type: "(o)") else {
                return .unavailable("the portal answered something else")
            }
            request = handle
            choice = responses[handle]
            if choice == nil { g_main_loop_run(loop) }
            return choice ?? .unavailable("the portal is gone")
        }
    }

    private func hear(_ path: String, _ answer: Choice) {
        responses[path] = answer
        guard path == request else { return }
        choice = answer
        g_main_loop_quit(loop)
    }

    /// What it was asked it forgets.
    private func vanished() { if request != nil { g_main_loop_quit(loop) } }

    // MARK: The portal's words

    /// `(ssa{sv})`: no window of ours, the title, and what may be chosen.
    private static func question(_ title: String) -> OpaquePointer? {
        let filters =
            "[('Photos', [(uint32 1, 'image/*')]), ('All files', [(uint32 0, '*')])]"
        let options = "{'multiple': <true>, 'modal': <false>, 'filters': <@a(sa(us)) \(filters)>}"
        var parts: [OpaquePointer?] = [
            g_variant_new_string(""), g_variant_new_string(title), g_variant_parse(nil, "@a{sv} \(options)", nil, nil, nil),
        ]
        return g_variant_new_tuple(&parts, gsize(parts.count))
    }

    /// `(ua{sv})`: 0 is a choice, 1 the person's no.
    private static func read(_ parameters: OpaquePointer) -> Choice {
        guard String(cString: g_variant_get_type_string(parameters)) == "(ua{sv})" else {
            return .unavailable("the portal answered something else")
        }
        let code = g_variant_get_child_value(parameters, 0)
        let results = g_variant_get_child_value(parameters, 1)
        defer {
            g_variant_unref(code)
            g_variant_unref(results)
        }
        guard g_variant_get_uint32(code) == 0 else { return .cancelled }
        guard let addresses = g_variant_lookup_value(results, "uris", nil) else { return .cancelled }
        defer { g_variant_unref(addresses) }
        guard String(cString: g_variant_get_type_string(addresses)) == "as" else { return .cancelled }
        var paths: [String] = []
        for index in 0..<g_variant_n_children(addresses) {
            guard let address = g_variant_get_child_value(addresses, index) else { continue }
            defer { g_variant_unref(address) }
            // Only what is a file here: a chooser may offer places in the network.
            guard let path = g_filename_from_uri(g_variant_get_string(address, nil), nil, nil) else { continue }
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
        guard let data else { fatalError("a callback of the portal came without its owner") }
        return Unmanaged<FileChooserPortal>.fromOpaque(data).takeUnretainedValue()
    }
}
