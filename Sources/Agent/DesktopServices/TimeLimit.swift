import CLibnotify
import Dispatch
import Foundation

/// Cancels a call of GLib's that takes too long.
struct TimeLimit {
    let cancellable: UnsafeMutablePointer<GCancellable>?
    private let isOver = DispatchSemaphore(value: 0)

    init(seconds: Int) {
        cancellable = g_cancellable_new()
        // GLib's calls are safe on any thread; only Swift cannot know it.
        nonisolated(unsafe) let cancellable = g_object_ref(UnsafeMutableRawPointer(cancellable))
        let isOver = isOver
        let thread = Thread {
            if isOver.wait(timeout: .now() + .seconds(seconds)) == .timedOut {
                g_cancellable_cancel(cancellable?.assumingMemoryBound(to: GCancellable.self))
            }
            g_object_unref(cancellable)
        }
        thread.name = "bus-limit"
        thread.start()
    }

    func end() {
        isOver.signal()
        g_object_unref(UnsafeMutableRawPointer(cancellable))
    }
}
