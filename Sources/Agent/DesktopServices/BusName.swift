import CLibnotify

/// What the bus itself says of a name on it. Each question blocks until the bus answers.
struct BusName {
    let name: String
    let connection: OpaquePointer

    init(_ name: String, on connection: OpaquePointer) { (self.name, self.connection) = (name, connection) }

    /// The connection that has the name; `nil`: nobody has.
    var owner: String? {
        guard let reply = ask("GetNameOwner") else { return nil }
        defer { g_variant_unref(reply) }
        return GVariantReading.strings(reply, ofType: "(s)")?.first
    }

    /// Who has the name, on which bus: a name of a connection is given once, and each bus has a number of its own.
    var identity: String? {
        guard let owner, let bus = g_dbus_connection_get_guid(connection) else { return nil }
        return "\(String(cString: bus)) \(owner)"
    }

    /// The process that has the name.
    var process: Int32? {
        guard let reply = ask("GetConnectionUnixProcessID") else { return nil }
        defer { g_variant_unref(reply) }
        guard GVariantReading.type(of: reply) == "(u)", let number = g_variant_get_child_value(reply, 0) else { return nil }
        defer { g_variant_unref(number) }
        return Int32(exactly: g_variant_get_uint32(number))
    }

    private func ask(_ question: String) -> OpaquePointer? {
        // The call takes it over.
        var name = [g_variant_new_string(name)]
        return g_dbus_connection_call_sync(
            connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", question,
            g_variant_new_tuple(&name, 1), nil, G_DBUS_CALL_FLAGS_NONE, -1, nil, nil)
    }
}
