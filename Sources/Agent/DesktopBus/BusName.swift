import CLibnotify

/// A name on a bus. The properties of this type query the bus about the owner of the name. A query blocks until the bus responds.
package struct BusName {
    let name: String
    let connection: OpaquePointer

    package init(_ name: String, on connection: OpaquePointer) { (self.name, self.connection) = (name, connection) }

    /// The connection that owns the name. `nil` if the name has no owner.
    package var owner: String? {
        guard let reply = query("GetNameOwner") else { return nil }
        defer { g_variant_unref(reply) }
        return GVariantReading.strings(reply, ofType: "(s)")?.first
    }

    /// The identity of the owner: the id of the bus and the owner's connection name. A bus never uses a connection name twice,
    /// and each bus has a unique id.
    package var identity: String? {
        guard let owner, let bus = g_dbus_connection_get_guid(connection) else { return nil }
        return "\(String(cString: bus)) \(owner)"
    }

    /// The process id of the owner.
    package var process: Int32? {
        guard let reply = query("GetConnectionUnixProcessID") else { return nil }
        defer { g_variant_unref(reply) }
        guard GVariantReading.type(of: reply) == "(u)", let number = g_variant_get_child_value(reply, 0) else { return nil }
        defer { g_variant_unref(number) }
        return Int32(exactly: g_variant_get_uint32(number))
    }

    private func query(_ question: String) -> OpaquePointer? {
        // The call takes ownership of the argument.
        var name = [g_variant_new_string(name)]
        return g_dbus_connection_call_sync(
            connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", question,
            g_variant_new_tuple(&name, 1), nil, G_DBUS_CALL_FLAGS_NONE, -1, nil, nil)
    }
}
