import CLibnotify
import Foundation
import Synchronization

/// A thread that owns and runs a private GMainContext.
///
/// GLib delivers signals to the context that was the *thread default* when a connection or a proxy was created. So the context
/// must be set before the first libnotify call. Otherwise the signals of pressed buttons would be delivered to the global
/// context. An agent does not run the global context, so these signals would be lost.
///
/// An idle loop sleeps in a single `poll` without a timeout, so it never wakes. Use one loop per process, because GIO's network
/// monitor is a singleton. The monitor stays on the thread that first requested it.
package final class GLibLoop: Sendable {
    // These properties are safe, because any thread can use GMainContext and GMainLoop, although Swift cannot detect this.
    nonisolated(unsafe) private let context: OpaquePointer
    nonisolated(unsafe) private let loop: OpaquePointer
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the thread. Debuggers show its `name`, which has at most 15 bytes.
    package init(name: String = "glib") {
        context = g_main_context_new()
        loop = g_main_loop_new(context, 0)
        let held = HeldLoop(context: g_main_context_ref(context), loop: g_main_loop_ref(loop), ended: ended)
        // The thread references the C objects and not `self`, because this object could otherwise never be deallocated.
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

    /// `true` if the caller is on the loop's thread.
    package var isCurrent: Bool { g_main_context_is_owner(context) != 0 }

    /// A lock for the thread sanitizer. GLib's own lock orders the posting thread and the loop, but the sanitizer cannot see this
    /// lock, because GLib is not built for the sanitizer.
    private static let handOver = Mutex(())

    /// Runs `work` on the loop's thread, in the order of the calls. `work` never runs inside this call. So a callback that calls
    /// this method finishes before `work` runs. After `stop()`, work is ignored.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        let posted = Unmanaged.passRetained(PostedWork(body: work)).toOpaque()
        Self.handOver.withLock { _ in }
        let source = g_idle_source_new()
        // The priority of the work is raised. By default, idle sources have a lower priority than D-Bus traffic, so they would
        // not run while a bus is busy.
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

    /// The maximum number of seconds that the thread may take to end. A thread that waits for a silent bus would never end.
    private static let patience = 5.0

    /// Ends the loop after all posted work, and waits for the end of its thread for at most 5 s. If the loop's thread calls this
    /// method, the method does not wait.
    package func stop() {
        postQuit()
        guard !isCurrent, ended.wait(timeout: .now() + Self.patience) == .success else { return }
        ended.signal()
    }

    private func postQuit() {
        // The end of the loop is posted as work, because a direct call would have no effect before the thread reaches
        // `g_main_loop_run`.
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

/// Additional references to the C objects. The thread and the posted work that ends the loop own these references.
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
