import CLibnotify

/// Reports power, network, sleep and time zone with the services of the system bus. Each service may be missing. This class is
/// used only on the loop's thread.
///
/// If the bus ends or is restarted, no reports follow, because the desktop ends together with the bus.
final class SystemBus {
    private let connection: OpaquePointer
    private var subscriptions: [guint] = []
    private let cancellable = g_cancellable_new()
    /// The maximum number of milliseconds that a service may take to respond. The agent launches nothing before the first replies
    /// arrive.
    private static let patience: gint = 3_000

    private let onBattery: (Bool?) -> Void
    private let onNetwork: (NetworkManagerReport?) -> Void
    private let onSignal: (DesktopSignal) -> Void

    /// - Parameters:
    ///   - connection: the connection to the bus. This object takes ownership of the connection.
    ///   - onBattery: called with UPower's value, at the start and after each change. The value is `nil` if UPower does not
    ///     respond.
    ///   - onNetwork: called with NetworkManager's report, at the start and after each change.
    init(
        _ connection: OpaquePointer, onBattery: @escaping (Bool?) -> Void, onNetwork: @escaping (NetworkManagerReport?) -> Void,
        onSignal: @escaping (DesktopSignal) -> Void
    ) {
        self.connection = connection
        self.onBattery = onBattery
        self.onNetwork = onNetwork
        self.onSignal = onSignal
        subscribe()
        askPower()
        askNetwork()
    }

    /// Returns `true` if a process owns the name on the system bus. The call waits for the reply of the bus.
    static func hasOwner(_ name: String) -> Bool {
        let answer = call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner", [name], "(b)")
        guard let answer else { return false }
        defer { g_variant_unref(answer) }
        return g_variant_get_boolean(answer) != 0
    }

    /// Returns the profile of the power-profiles daemon. Returns `nil` if no daemon is running. The call waits for the reply of
    /// the daemon.
    static func powerProfile() -> String? {
        let name = "net.hadess.PowerProfiles"
        guard hasOwner(name) else { return nil }
        let words = [name, "ActiveProfile"]
        guard let boxed = call(name, "/net/hadess/PowerProfiles", "org.freedesktop.DBus.Properties", "Get", words, "(v)") else {
            return nil
        }
        defer { g_variant_unref(boxed) }
        guard let text = g_variant_get_variant(boxed) else { return nil }
        defer { g_variant_unref(text) }
        return String(cString: g_variant_get_type_string(text)) == "s" ? String(cString: g_variant_get_string(text, nil)) : nil
    }

    /// Calls a method with text arguments. Returns the value of the type `type`, which the caller releases.
    private static func call(
        _ name: String, _ path: String, _ interface: String, _ method: String, _ words: [String], _ type: String
    ) -> OpaquePointer? {
        guard case .open(let connection) = SystemBusConnection.open() else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(connection)) }
        // The call takes ownership of the arguments.
        var arguments: [OpaquePointer?] = words.map { g_variant_new_string($0) }
        let reply = g_dbus_connection_call_sync(
            connection, name, path, interface, method, g_variant_new_tuple(&arguments, gsize(words.count)), nil,
            G_DBUS_CALL_FLAGS_NO_AUTO_START, patience, nil, nil)
        guard let reply else { return nil }
        defer { g_variant_unref(reply) }
        guard String(cString: g_variant_get_type_string(reply)) == type else { return nil }
        return g_variant_get_child_value(reply, 0)
    }

    deinit {
        g_cancellable_cancel(cancellable)
        g_object_unref(UnsafeMutableRawPointer(cancellable))
        for subscription in subscriptions { g_dbus_connection_signal_unsubscribe(connection, subscription) }
        g_object_unref(UnsafeMutableRawPointer(connection))
    }

    private func subscribe() {
        let properties = "org.freedesktop.DBus.Properties"
        listen(
            to: "org.freedesktop.UPower", interface: properties, signal: "PropertiesChanged",
            path: "/org/freedesktop/UPower", argument: "org.freedesktop.UPower"
        ) { _, _, _, _, _, _, data in
            SystemBus.from(data)?.askPower()
        }
        listen(
            to: "org.freedesktop.NetworkManager", interface: properties, signal: "PropertiesChanged",
            path: "/org/freedesktop/NetworkManager", argument: "org.freedesktop.NetworkManager"
        ) { _, _, _, _, _, _, data in
            SystemBus.from(data)?.askNetwork()
        }
        // These signals report that UPower or NetworkManager appeared or disappeared.
        listen(
            to: "org.freedesktop.DBus", interface: "org.freedesktop.DBus", signal: "NameOwnerChanged",
            path: "/org/freedesktop/DBus", argument: "org.freedesktop.UPower"
        ) { _, _, _, _, _, _, data in
            // A service that exited is not started again by this query.
            SystemBus.from(data)?.askPower(mayStart: false)
        }
        listen(
            to: "org.freedesktop.DBus", interface: "org.freedesktop.DBus", signal: "NameOwnerChanged",
            path: "/org/freedesktop/DBus", argument: "org.freedesktop.NetworkManager"
        ) { _, _, _, _, _, _, data in
            SystemBus.from(data)?.askNetwork()
        }
        listen(
            to: "org.freedesktop.timedate1", interface: properties, signal: "PropertiesChanged",
            path: "/org/freedesktop/timedate1", argument: "org.freedesktop.timedate1"
        ) { _, _, _, _, _, parameters, data in
            guard SystemBus.namesTimeZone(parameters) else { return }
            SystemBus.from(data)?.onSignal(.timeZoneChanged)
        }
        listen(
            to: "org.freedesktop.login1", interface: "org.freedesktop.login1.Manager", signal: "PrepareForSleep",
            path: "/org/freedesktop/login1", argument: nil
        ) { _, _, _, _, _, parameters, data in
            guard let isFalling = SystemBus.isFalling(parameters) else { return }
            SystemBus.from(data)?.onSignal(isFalling ? .falling : .resumed)
        }
    }

    private func listen(
        to sender: String, interface: String, signal: String, path: String, argument: String?,
        callback: GDBusSignalCallback
    ) {
        subscriptions.append(
            g_dbus_connection_signal_subscribe(
                connection, sender, interface, signal, path, argument, G_DBUS_SIGNAL_FLAGS_NONE, callback,
                Unmanaged.passUnretained(self).toOpaque(), nil))
    }

    /// Queries UPower without waiting, because UPower may have to be started, or may not respond.
    ///
    /// - Parameter patience: the timeout in milliseconds. After the timeout the state is unknown, and a late reply is still used.
    private func askPower(mayStart: Bool = true, patience: gint = SystemBus.patience) {
        var parameters: [OpaquePointer?] = [
            g_variant_new_string("org.freedesktop.UPower"), g_variant_new_string("OnBattery"),
        ]
        g_dbus_connection_call(
            connection, "org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.DBus.Properties", "Get",
            g_variant_new_tuple(&parameters, 2), nil,
            mayStart ? G_DBUS_CALL_FLAGS_NONE : G_DBUS_CALL_FLAGS_NO_AUTO_START, patience, cancellable,
            { source, result, data in
                var error: UnsafeMutablePointer<GError>?
                let reply = g_dbus_connection_call_finish(OpaquePointer(source), result, &error)
                defer { g_clear_error(&error) }
                // The error "cancelled" means that this object was deallocated.
                if let error, g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_CANCELLED.rawValue)) != 0 {
                    return
                }
                SystemBus.from(data)?.onBattery(reply.flatMap(SystemBus.boolean))
                if SystemBus.isLate(error) { SystemBus.from(data)?.askPower(mayStart: false, patience: .max) }
                if let reply { g_variant_unref(reply) }
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// Returns `true` if the service runs but did not respond in time. A late reply must not be lost, because the service later
    /// reports only changes.
    private static func isLate(_ error: UnsafeMutablePointer<GError>?) -> Bool {
        error.map { g_error_matches($0, g_io_error_quark(), gint(G_IO_ERROR_TIMED_OUT.rawValue)) != 0 } ?? false
    }

    /// Queries NetworkManager without waiting. NetworkManager is not started for this query.
    ///
    /// - Parameter patience: the timeout in milliseconds. After the timeout the state is unknown, and a late reply is still used.
    func askNetwork(patience: gint = SystemBus.patience) {
        var parameters: [OpaquePointer?] = [g_variant_new_string("org.freedesktop.NetworkManager")]
        g_dbus_connection_call(
            connection, "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
            "org.freedesktop.DBus.Properties", "GetAll", g_variant_new_tuple(&parameters, 1), nil,
            G_DBUS_CALL_FLAGS_NO_AUTO_START, patience, cancellable,
            { source, result, data in
                var error: UnsafeMutablePointer<GError>?
                let reply = g_dbus_connection_call_finish(OpaquePointer(source), result, &error)
                defer { g_clear_error(&error) }
                if let error, g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_CANCELLED.rawValue)) != 0 {
                    return
                }
                SystemBus.from(data)?.onNetwork(reply.flatMap(SystemBus.networkReport))
                if SystemBus.isLate(error) { SystemBus.from(data)?.askNetwork(patience: .max) }
                if let reply { g_variant_unref(reply) }
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// Decodes the properties in a value of the type `(a{sv})`.
    private static func networkReport(_ reply: OpaquePointer) -> NetworkManagerReport? {
        guard String(cString: g_variant_get_type_string(reply)) == "(a{sv})" else { return nil }
        let all = g_variant_get_child_value(reply, 0)
        defer { g_variant_unref(all) }
        func number(_ name: String) -> UInt32? {
            guard let value = g_variant_lookup_value(all, name, nil) else { return nil }
            defer { g_variant_unref(value) }
            return String(cString: g_variant_get_type_string(value)) == "u" ? g_variant_get_uint32(value) : nil
        }
        func text(_ name: String) -> String? {
            guard let value = g_variant_lookup_value(all, name, nil) else { return nil }
            defer { g_variant_unref(value) }
            guard ["s", "o"].contains(String(cString: g_variant_get_type_string(value))) else { return nil }
            return g_variant_get_string(value, nil).map { String(cString: $0) }
        }
        return NetworkManagerReport(
            state: number("State"), connectivity: number("Connectivity"), metered: number("Metered"),
            primaryConnection: text("PrimaryConnection"), primaryConnectionType: text("PrimaryConnectionType"))
    }

    /// Decodes the boolean in a value of the type `(v)`.
    private static func boolean(_ reply: OpaquePointer) -> Bool? {
        guard String(cString: g_variant_get_type_string(reply)) == "(v)" else { return nil }
        let boxed = g_variant_get_child_value(reply, 0)
        defer { g_variant_unref(boxed) }
        guard let value = g_variant_get_variant(boxed) else { return nil }
        defer { g_variant_unref(value) }
        guard String(cString: g_variant_get_type_string(value)) == "b" else { return nil }
        return g_variant_get_boolean(value) != 0
    }

    /// Returns `true` if `PrepareForSleep` reports the beginning of a sleep, and `false` if it reports the end.
    private static func isFalling(_ parameters: OpaquePointer?) -> Bool? {
        guard let parameters, String(cString: g_variant_get_type_string(parameters)) == "(b)" else { return nil }
        let value = g_variant_get_child_value(parameters, 0)
        defer { g_variant_unref(value) }
        return g_variant_get_boolean(value) != 0
    }

    /// Returns `true` if a `PropertiesChanged` signal (`sa{sv}as`) contains the time zone. The signal may contain a new time
    /// zone, or may mark the time zone as invalidated.
    private static func namesTimeZone(_ parameters: OpaquePointer?) -> Bool {
        guard let parameters, String(cString: g_variant_get_type_string(parameters)) == "(sa{sv}as)" else {
            return false
        }
        guard let text = g_variant_print(parameters, 0) else { return false }
        defer { g_free(text) }
        return String(cString: text).contains("'Timezone'")
    }

    private static func from(_ data: gpointer?) -> SystemBus? {
        data.map { Unmanaged<SystemBus>.fromOpaque($0).takeUnretainedValue() }
    }
}
