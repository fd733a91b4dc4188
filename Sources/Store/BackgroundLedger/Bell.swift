import ProcessSupport
import CLinux
import Foundation

/// Hears that some process committed to the ledger. A hint without data: it may ring for nothing (also for the
/// listener's own commits) and slightly before a commit becomes visible, so the hearer reads inside `BEGIN IMMEDIATE`.
///
/// inotify on the write-ahead file: no socket, no polling, nothing to be left behind by a kill.
package struct Bell: ~Copyable, Sendable {
    /// Readable when the bell rang. Non-blocking, close-on-exec.
    package let descriptor: Int32

    /// The ledger must have been opened by this process before: the write-ahead file exists from then on.
    package init(_ directories: AppDirectories) throws(StoreError) {
        let path = directories.ledger.path + "-wal"
        descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else {
            throw .failed(path: path, reason: "inotify: " + String(cString: strerror(errno)))
        }
        guard inotify_add_watch(descriptor, path, UInt32(IN_MODIFY)) >= 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw .failed(path: path, reason: "cannot watch the write-ahead file: " + reason)
        }
        // Rings too when the ledger is taken away under a long-lived process; see ``Ledger/isReplaced``.
        inotify_add_watch(descriptor, directories.ledger.path, UInt32(IN_ATTRIB | IN_MOVE_SELF))
        // Or a file beside it. Not by its attributes, which SQLite sets whenever somebody opens it.
        inotify_add_watch(descriptor, directories.state.path, UInt32(IN_DELETE | IN_MOVED_FROM))
    }

    deinit { close(descriptor) }

    /// Takes the rings so far. Call before reading the ledger, never after.
    package borrowing func drain() { Self.drain(descriptor) }

    /// The same for a holder of the descriptor alone.
    package static func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
