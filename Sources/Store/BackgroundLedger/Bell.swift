import ProcessSupport
import CLinux
import Foundation

/// Hears that some process committed to a database, mostly the ledger. A hint without data: it may ring for nothing (also for the
/// listener's own commits) and slightly before a commit becomes visible, so the hearer reads inside `BEGIN IMMEDIATE`.
///
/// inotify on the write-ahead file: no socket, no polling, nothing to be left behind by a kill.
package struct Bell: ~Copyable, Sendable {
    /// Readable when the bell rang. Non-blocking, close-on-exec.
    package let descriptor: Int32

    /// Of the ledger.
    package init(_ directories: AppDirectories) throws(StoreError) { try self.init(database: directories.ledger.path) }

    /// The database must have been opened by this process before: its write-ahead file exists from then on.
    package init(database: String) throws(StoreError) {
        let path = database + "-wal"
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else {
            throw .notWatched(path, errno, "inotify: ")
        }
        guard inotify_add_watch(descriptor, path, UInt32(IN_MODIFY)) >= 0 else {
            let number = errno
            close(descriptor)
            throw .notWatched(path, number, "cannot watch the write-ahead file: ")
        }
        // Rings too when it is taken away under a long-lived process; see ``Ledger/isReplaced``.
        inotify_add_watch(descriptor, database, UInt32(IN_ATTRIB | IN_MOVE_SELF))
        // Or a file beside it. Not by its attributes, which SQLite sets whenever somebody opens it.
        let folder = (database as NSString).deletingLastPathComponent
        inotify_add_watch(descriptor, folder, UInt32(IN_DELETE | IN_MOVED_FROM))
        // Last: who throws after it runs `deinit`, too, and a number closed twice may be somebody else's by then.
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Takes the rings so far. Call before reading the ledger, never after.
    package borrowing func drain() { Self.drain(descriptor) }

    /// The same for a holder of the descriptor alone.
    ///
    /// - Returns: whether it rang.
    @discardableResult
    package static func drain(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            var rang = false
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 { rang = true }
            return rang
        }
    }
}
