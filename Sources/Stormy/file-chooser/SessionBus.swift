import CLibnotify

/// The session bus of this process, for calls that wait.
enum SessionBus {
    /// Somebody's object there.
    struct Object {
        let name: String
        let path: String
        let interface: String

        func call<Answer>(
            _ connection: OpaquePointer, _ method: String, _ question: OpaquePointer?, seconds: Int32,
            or trouble: (String) -> Answer, _ answer: (OpaquePointer) -> Answer
        ) -> Answer {
            var error: UnsafeMutablePointer<GError>?
            let reply = g_dbus_connection_call_sync(
                connection, name, path, interface, method, question, nil, G_DBUS_CALL_FLAGS_NONE, seconds * 1_000, nil, &error)
            guard let reply else {
                defer { g_clear_error(&error) }
                return trouble(error.map { String(cString: $0.pointee.message) } ?? "no answer")
            }
            defer { g_variant_unref(reply) }
            return answer(reply)
        }
    }

    /// - Parameter body: gets the connection, and the context of its callbacks.
    static func withConnection<Answer>(
        or trouble: (String) -> Answer, _ body: (OpaquePointer, OpaquePointer?) -> Answer
    ) -> Answer {
        let context = g_main_context_new()
        g_main_context_push_thread_default(context)
        defer {
            g_main_context_pop_thread_default(context)
            g_main_context_unref(context)
        }
        var error: UnsafeMutablePointer<GError>?
        guard let connection = g_bus_get_sync(G_BUS_TYPE_SESSION, nil, &error) else {
            defer { g_clear_error(&error) }
            return trouble(error.map { String(cString: $0.pointee.message) } ?? "no session bus")
        }
        defer { g_object_unref(UnsafeMutableRawPointer(connection)) }
        g_dbus_connection_set_exit_on_close(connection, 0)
        return body(connection, context)
    }
}
