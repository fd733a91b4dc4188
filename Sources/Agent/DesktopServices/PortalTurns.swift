import CLibnotify

/// Calls about one name of the portal's, one after the other and not too soon. Used on the loop's thread only.
final class PortalTurns {
    /// From when on the next may be made, in microseconds of GLib's clock.
    private var free: [String: gint64] = [:]

    /// Makes a call when it is its turn: at once, or behind those of its name that wait.
    ///
    /// - Parameter seconds: until the next one's turn.
    func take(_ name: String, keepsItFor seconds: Double, _ call: @escaping () -> Void) {
        let now = g_get_monotonic_time()
        free = free.filter { $0.value > now }
        let turn = max(now, free[name] ?? now)
        free[name] = turn + gint64(seconds * 1_000_000)
        if turn == now { return call() }
        let source = g_timeout_source_new(guint((turn - now + 999) / 1_000))
        g_source_set_callback(
            source,
            { data in
                if let data { Unmanaged<Turn>.fromOpaque(data).takeUnretainedValue().call() }
                return 0
            }, Unmanaged.passRetained(Turn(call)).toOpaque(),
            { data in if let data { Unmanaged<Turn>.fromOpaque(data).release() } })
        g_source_attach(source, g_main_context_get_thread_default())
        g_source_unref(source)
    }

    /// The portal is gone. Calls that wait find that out by themselves.
    func forget() { free = [:] }

    private final class Turn {
        let call: () -> Void

        init(_ call: @escaping () -> Void) { self.call = call }
    }
}
