import CLibnotify
import Glibc

/// The connection to the session bus, with a watch on one name. This class is used only on one thread. The GLib context of this
/// thread runs the callbacks.
///
/// libnotify always uses GLib's shared session connection (`g_bus_get`). GLib finds the address of this connection in the
/// environment. `SessionBus` holds a reference to the connection, so that libnotify cannot create another connection. If
/// libnotify created another connection and the bus of that connection ended, GLib would end the process.
///
/// GLib has only a weak reference to the shared connection. When no reference to an old connection is left, the next `open` reads
/// the environment again and creates a new connection. The references belong to notifications, libnotify's proxy, the watch and
/// this type. So a process can change to another bus (tested with GLib 2.74 and libnotify 0.8.1).
package final class SessionBus {
    package private(set) var connection: OpaquePointer?
    private var closedHandler: gulong = 0
    private var watch: guint = 0
    private var hasServer = false
    /// The time at which the old connection could not be released, in microseconds of GLib's clock.
    private var stuckAt: gint64?

    /// The name on the bus that is watched, for example the name of the notification server.
    private let served: String

    package init(watching name: String) { served = name }

    package var onLost: (() -> Void)?
    /// The address of the bus to which the connection belongs.
    package private(set) var address: String?
    package var onServerAppeared: (() -> Void)?
    package var onServerVanished: (() -> Void)?

    /// Connects to the bus, unless a connection is already open.
    ///
    /// The address must be written into the environment, because libnotify reads the address from the environment. `setenv` is a
    /// risk if another thread reads the environment at the same time. This risk is accepted, because `setenv` is called once per
    /// connection, and only if the address differs.
    package func open(busAddress: String? = nil) throws(BusTrouble) -> OpaquePointer {
        let told = busAddress.flatMap(SessionBusAddress.withoutAutolaunch)
        // The connection may be closed although the signal that reports this has not arrived yet. The user's session may also be
        // on another bus, so that the shown notifications belong to the old bus.
        if isDead || told.map({ isElsewhere(than: $0) }) ?? false { onLost?() }
        if let connection { return connection }
        let current = environment(Self.variable)
        let candidates = SessionBusAddress.candidates(
            known: [told, current, started], runtimeDirectory: environment("XDG_RUNTIME_DIR"), isSocket: isSocket)
        var failure = BusTrouble.noAddress
        for (index, candidate) in candidates.enumerated() {
            do throws(BusTrouble) {
                return try open(candidate)
            } catch {
                if index == 0 { failure = error }
            }
        }
        if let current { g_setenv(Self.variable, current, 1) } else { g_unsetenv(Self.variable) }
        throw failure
    }

    private static let variable = "DBUS_SESSION_BUS_ADDRESS"
    private let started = environment(SessionBus.variable)

    private func open(_ chosen: String) throws(BusTrouble) -> OpaquePointer {
        if chosen != environment(Self.variable) { g_setenv(Self.variable, chosen, 1) }
        let opened = try connect()
        address = chosen
        connection = opened
        startWatching(opened)
        return opened
    }

    /// Returns GLib's shared connection. After a bus has ended, its connection stays the shared connection until GLib's own
    /// thread has released it.
    private func connect() throws(BusTrouble) -> OpaquePointer {
        // Queued work of this thread may still reference the old connection. Within 2 s after a failure, this method therefore
        // makes only one attempt and does not wait for one second.
        let wasStuck = stuckAt.map { g_get_monotonic_time() - $0 < 2_000_000 } ?? false
        for _ in 0..<(wasStuck ? 1 : 100) {
            var error: UnsafeMutablePointer<GError>?
            let limit = TimeLimit(seconds: Self.patience)
            defer { limit.end() }
            guard let opened = g_bus_get_sync(G_BUS_TYPE_SESSION, limit.cancellable, &error) else {
                let isSilent = g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_CANCELLED.rawValue)) != 0
                let trouble = BusTrouble(consuming: error)
                throw isSilent ? .failed("the session bus did not respond within \(Self.patience) s") : trouble
            }
            // By default GLib raises SIGTERM if a session bus ends. This call prevents the signal, because an agent also does
            // other work than notifications.
            g_dbus_connection_set_exit_on_close(opened, 0)
            if g_dbus_connection_is_closed(opened) == 0 { return opened }
            g_object_unref(UnsafeMutableRawPointer(opened))
            g_usleep(10_000)
        }
        stuckAt = g_get_monotonic_time()
        throw BusTrouble.failed("a part of this process still holds the connection to a bus that does not exist any more")
    }

    /// The maximum number of seconds that a bus may take for its first response. Without a limit, a silent bus would block this
    /// thread endlessly.
    private static let patience = 5

    /// Returns `true` if the connection belongs to another bus than the bus at this address.
    private func isElsewhere(than told: String) -> Bool {
        guard let connection, let address else { return false }
        let guid = g_dbus_connection_get_guid(connection).map { String(cString: $0) }
        return !SessionBusAddress.isSame(told, address, guid: guid)
    }

    /// `true` if the connection is closed although its signal has not arrived yet.
    private var isDead: Bool { connection.map { g_dbus_connection_is_closed($0) != 0 } ?? false }

    /// The identity of the current server. `nil` if no server or no connection exists.
    package var servedIdentity: String? { connection.flatMap { BusName(served, on: $0).identity } }

    /// The process id of the current server.
    package var servedProcess: Int32? { connection.flatMap { BusName(served, on: $0).process } }

    /// Releases the connection. The caller must release its notifications and libnotify first.
    package func release() {
        guard let connection else { return }
        self.connection = nil
        hasServer = false
        g_bus_unwatch_name(watch)
        g_signal_handler_disconnect(UnsafeMutableRawPointer(connection), closedHandler)
        g_object_unref(UnsafeMutableRawPointer(connection))
    }

    private func startWatching(_ opened: OpaquePointer) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        // This handler is connected before the watch of the name, because the watch uses the same signal. With this order, a lost
        // bus is not also reported as a lost server.
        closedHandler = stormy_connect_bus_closed(
            opened,
            { _, _, _, data in SessionBus.from(data).onLost?() },
            context)
        watch = g_bus_watch_name_on_connection(
            opened, served, G_BUS_NAME_WATCHER_FLAGS_NONE,
            { _, _, _, data in SessionBus.from(data).serverChanged(isPresent: true) },
            { _, _, data in SessionBus.from(data).serverChanged(isPresent: false) },
            context, nil)
    }

    private func serverChanged(isPresent: Bool) {
        // If the name has no owner, the watch begins with a "vanished" signal, which does not report a change.
        guard isPresent || hasServer else { return }
        hasServer = isPresent
        if isPresent { onServerAppeared?() } else { onServerVanished?() }
    }

    private static func from(_ data: gpointer?) -> SessionBus {
        guard let data else { fatalError("a callback of the session bus was called without a SessionBus") }
        return Unmanaged<SessionBus>.fromOpaque(data).takeUnretainedValue()
    }
}

private func environment(_ name: String) -> String? {
    guard let value = g_getenv(name) else { return nil }
    return String(cString: value)
}

private func isSocket(_ path: String) -> Bool {
    var information = stat()
    return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFSOCK
}
