import CLibnotify
import Foundation
import Synchronization

/// One thread that owns a private GMainContext and runs it.
///
/// GLib delivers signals to the context that is the *thread default* where a connection or proxy was made. Were the
/// context not pushed before the first libnotify call, button presses would go to the global context, which nobody
/// runs in an agent built on Swift's executors, and be lost.
///
/// An idle loop sleeps in one `poll` without a timeout: no wakeups. Use one loop per process: GIO's network monitor is
/// a singleton that stays bound to the thread that asked for it first.
package final class GLibLoop: Sendable {
    // GMainContext and GMainLoop are themselves safe to use from any thread; only Swift cannot know it.
    nonisolated(unsafe) private let context: OpaquePointer
    nonisolated(unsafe) private let loop: OpaquePointer
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the thread. `name` is what debuggers show, at most 15 bytes.
    package init(name: String = "glib") {
        context = g_main_context_new()
        loop = g_main_loop_new(context, 0)
        let held = HeldLoop(context: g_main_context_ref(context), loop: g_main_loop_ref(loop), ended: ended)
        // The thread holds the C objects, not `self`: else this object could never be released.
        Thread {
            Thread.current.name = name
            held.run()
        }.start()
    }

    deinit {
        postQuit()
        g_main_loop_unref(loop)
        g_main_context_unref(context)
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool { g_main_context_is_owner(context) != 0 }

    /// GLib's own lock orders whoever posts and the loop. The thread sanitizer does not see that one, as GLib is not built for it, and sees this.
    private static let handOver = Mutex(())

    /// Runs `work` on the loop's thread, in the order of the calls; never inline, so that a caller inside a callback
    /// is not re-entered. After `stop()` work is dropped.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        let posted = Unmanaged.passRetained(PostedWork(body: work)).toOpaque()
        Self.handOver.withLock { _ in }
        let source = g_idle_source_new()
        // Idle sources default to a priority below D-Bus traffic: a busy bus would starve them.
        g_source_set_priority(source, G_PRIORITY_DEFAULT)
        g_source_set_callback(
            source,
            { data in
                GLibLoop.handOver.withLock { _ in }
                if let data { Unmanaged<PostedWork>.fromOpaque(data).takeUnretainedValue().body() }
                return 0
            },
            posted,
            { data in
                if let data { Unmanaged<PostedWork>.fromOpaque(data).release() }
            })
        g_source_attach(source, context)
        g_source_unref(source)
    }

    /// Seconds that a thread may take to end: one that waits for a bus which never answers would wait for ever.
    private static let patience = 5.0

    /// Ends the loop after the work posted so far, and waits for its thread, for 5 s at most. From the loop's own thread it
    /// only asks.
    package func stop() {
        postQuit()
        guard !isCurrent, ended.wait(timeout: .now() + Self.patience) == .success else { return }
        ended.signal()
    }

    private func postQuit() {
        // Posted rather than called: a quit that comes before the thread reached `g_main_loop_run` would be forgotten.
        let held = HeldLoop(context: g_main_context_ref(context), loop: g_main_loop_ref(loop), ended: ended)
        perform { held.quit() }
    }
}

private final class PostedWork: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

/// The references that the thread and a posted quit hold of their own.
private final class HeldLoop: Sendable {
    nonisolated(unsafe) private let context: OpaquePointer
    nonisolated(unsafe) private let loop: OpaquePointer
    private let ended: DispatchSemaphore

    init(context: OpaquePointer, loop: OpaquePointer, ended: DispatchSemaphore) {
        self.context = context
        self.loop = loop
        self.ended = ended
    }

    deinit {
        g_main_loop_unref(loop)
        g_main_context_unref(context)
    }

    func run() {
        g_main_context_push_thread_default(context)
        g_main_loop_run(loop)
        g_main_context_pop_thread_default(context)
        ended.signal()
    }

    func quit() {
        g_main_loop_quit(loop)
    }
}
