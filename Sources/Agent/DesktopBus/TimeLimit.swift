import CLibnotify

/// Cancels a GLib call that takes too long. A separate thread waits for the end of the call or for the limit. If this thread
/// cannot be created, the call has no limit.
package struct TimeLimit {
    package let cancellable: UnsafeMutablePointer<GCancellable>?
    private let wait: Wait

    package init(seconds: Int) {
        cancellable = g_cancellable_new()
        wait = Wait(cancellable, seconds: seconds)
        let held = Unmanaged.passRetained(wait)
        let thread = g_thread_try_new(
            "bus-limit",
            { data in
                if let data { Unmanaged<Wait>.fromOpaque(data).takeRetainedValue().run() }
                return nil
            }, held.toOpaque(), nil)
        if let thread { g_thread_unref(thread) } else { held.release() }
    }

    /// Ends the time limit. Call this method after the GLib call has ended.
    package func end() {
        wait.end()
        g_object_unref(UnsafeMutableRawPointer(cancellable))
    }

    /// The state that the thread and the caller share.
    private final class Wait {
        private let cancellable: UnsafeMutablePointer<GCancellable>?
        private let deadline: gint64
        private let lock = UnsafeMutablePointer<GMutex>.allocate(capacity: 1)
        private let ended = UnsafeMutablePointer<GCond>.allocate(capacity: 1)
        private var hasEnded = false

        init(_ cancellable: UnsafeMutablePointer<GCancellable>?, seconds: Int) {
            self.cancellable = cancellable
            deadline = g_get_monotonic_time() + gint64(seconds) * 1_000_000
            g_object_ref(UnsafeMutableRawPointer(cancellable))
            g_mutex_init(lock)
            g_cond_init(ended)
        }

        deinit {
            g_mutex_clear(lock)
            g_cond_clear(ended)
            lock.deallocate()
            ended.deallocate()
            g_object_unref(UnsafeMutableRawPointer(cancellable))
        }

        func run() {
            g_mutex_lock(lock)
            while !hasEnded, g_cond_wait_until(ended, lock, deadline) != 0 {}
            let isOver = !hasEnded
            g_mutex_unlock(lock)
            if isOver { g_cancellable_cancel(cancellable) }
        }

        func end() {
            g_mutex_lock(lock)
            hasEnded = true
            g_cond_signal(ended)
            g_mutex_unlock(lock)
        }
    }
}
