import CLibnotify

/// An object of another process on a bus.
package struct BusObject {
    let name: String
    let path: String
    let interface: String

    /// - Parameter name: the name of the owner of the object. If the owner is not running, the bus starts it.
    package init(name: String, path: String, interface: String) {
        (self.name, self.path, self.interface) = (name, path, interface)
    }

    /// Calls a method of the object and waits for the reply.
    ///
    /// - Parameters:
    ///   - arguments: a tuple. The call takes ownership of the tuple.
    ///   - seconds: the maximum number of seconds for the reply.
    ///   - read: called with the reply. The reply is freed after `read` returns.
    package func call<Value>(
        _ method: String, _ arguments: OpaquePointer?, on connection: OpaquePointer, seconds: gint,
        _ read: (OpaquePointer) -> Value
    ) throws(BusTrouble) -> Value {
        var error: UnsafeMutablePointer<GError>?
        let reply = g_dbus_connection_call_sync(
            connection, name, path, interface, method, arguments, nil, G_DBUS_CALL_FLAGS_NONE, seconds * 1_000, nil, &error)
        guard let reply else { throw BusTrouble(consuming: error) }
        defer { g_variant_unref(reply) }
        return read(reply)
    }
}
