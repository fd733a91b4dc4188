import CLibnotify
import Glibc

/// The connection to the session bus, and a watch over one name on it. Used on one thread only, the one whose context runs the callbacks.
///
/// libnotify always uses GLib's shared session connection (`g_bus_get`), found through the environment. This type holds
/// the same one: meanwhile libnotify cannot make a connection of its own that would end the process with the bus. GLib
/// keeps the shared connection by a weak reference. When all references to an old one are released (notifications,
/// libnotify's proxy, the watch, ours), the next `open` reads the environment again and makes a new connection. Tried
/// with GLib 2.74 and libnotify 0.8.1: one process can move to another bus.
package final class SessionBus {
    package private(set) var connection: OpaquePointer?
    private var closedHandler: gulong = 0
    private var watch: guint = 0
    private var hasServer = false
    /// When the old connection could not be let go of, in microseconds of GLib's clock.
    private var stuckAt: gint64?

    /// The name that is watched.
    private let served: String

    package init(watching name: String) { served = name }

    package var onLost: (() -> Void)?
    /// The address of the connection.
    package private(set) var address: String?
    package var onServerAppeared: (() -> Void)?
    package var onServerVanished: (() -> Void)?

    /// Connects, unless connected already.
    ///
    /// The address has to go into the environment, where libnotify's own call looks for it. `setenv` while another
    /// thread reads the environment is a risk taken knowingly: it happens once per connection, and only when
    /// the address differs.
    package func open(busAddress: String? = nil) throws(BusTrouble) -> OpaquePointer {
        let told = busAddress.flatMap(SessionBusAddress.withoutAutolaunch)
        // Its signal is still on the way, or the person's session is elsewhere and what is shown here belongs to a bus that is left: acted on now, once.
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

    /// GLib's shared connection. One to a bus that is gone stays the shared one until GLib's own thread has let go of it.
    private func connect() throws(BusTrouble) -> OpaquePointer {
        // What still holds the old one may be this thread's own queue: each entry waits its turn, and not a second more.
        let wasStuck = stuckAt.map { g_get_monotonic_time() - $0 < 2_000_000 } ?? false
        for _ in 0..<(wasStuck ? 1 : 100) {
            var error: UnsafeMutablePointer<GError>?
            let limit = TimeLimit(seconds: Self.patience)
            defer { limit.end() }
            guard let opened = g_bus_get_sync(G_BUS_TYPE_SESSION, limit.cancellable, &error) else {
                let isSilent = g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_CANCELLED.rawValue)) != 0
                let trouble = BusTrouble(consuming: error)
                throw isSilent ? .failed("the session bus did not answer within \(Self.patience) s") : trouble
            }
            // By default GLib raises SIGTERM when a session bus goes. An agent has more to do than notifications.
            g_dbus_connection_set_exit_on_close(opened, 0)
            if g_dbus_connection_is_closed(opened) == 0 { return opened }
            g_object_unref(UnsafeMutableRawPointer(opened))
            g_usleep(10_000)
        }
        stuckAt = g_get_monotonic_time()
        throw BusTrouble.failed("a part of this process still holds the connection to a bus that is gone")
    }

    /// Seconds that a bus may take to greet: one that takes the connection and says nothing would be waited for for ever.
    private static let patience = 5

    /// Connected to another bus than the one of this address.
    private func isElsewhere(than told: String) -> Bool {
        guard let connection, let address else { return false }
        let guid = g_dbus_connection_get_guid(connection).map { String(cString: $0) }
        return !SessionBusAddress.isSame(told, address, guid: guid)
    }

    /// It is dead, and its signal is still on the way.
    private var isDead: Bool { connection.map { g_dbus_connection_is_closed($0) != 0 } ?? false }

    /// Which one serves notifications now; `nil`: none does, or there is no connection.
    package var servedIdentity: String? { connection.flatMap { BusName(served, on: $0).identity } }

    /// Its process.
    package var servedProcess: Int32? { connection.flatMap { BusName(served, on: $0).process } }

    /// Lets go of the connection. The caller has released its notifications and libnotify before.
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
        // Connected before the name watch, which listens to the same signal: so a lost bus is told as that alone.
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
        // The watch begins with "vanished" when nobody is there: no news.
        guard isPresent || hasServer else { return }
        hasServer = isPresent
        if isPresent { onServerAppeared?() } else { onServerVanished?() }
    }

    private static func from(_ data: gpointer?) -> SessionBus {
        guard let data else { fatalError("a callback of the session bus came without its owner") }
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
