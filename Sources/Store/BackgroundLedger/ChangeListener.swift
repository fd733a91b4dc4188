import ProcessSupport
import CLinux
import Foundation

/// A receiver of change notifications. A change notification is the signal that a process has committed to a database, usually
/// the ledger. The signal contains no data. A signal can arrive without a change, and a process also receives signals for its own
/// commits. A signal can also arrive shortly before a commit becomes visible. For this reason, the receiver reads the database
/// inside `BEGIN IMMEDIATE`.
///
/// The implementation watches the write-ahead log with inotify. inotify needs no socket and no polling, and a killed process
/// leaves no files.
package struct ChangeListener: ~Copyable, Sendable {
    /// A descriptor that becomes readable after a change notification. The descriptor is non-blocking and close-on-exec.
    package let descriptor: Int32

    /// Creates a listener for the ledger.
    package init(_ directories: AppDirectories) throws(StoreError) { try self.init(database: directories.ledger.path) }

    /// Creates a listener for a database. This process must have opened the database before, because SQLite then creates the
    /// write-ahead log.
    package init(database: String) throws(StoreError) {
        let path = database + "-wal"
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else {
            throw .notWatched(path, errno, "inotify: ")
        }
        guard inotify_add_watch(descriptor, path, UInt32(IN_MODIFY)) >= 0 else {
            let number = errno
            close(descriptor)
            throw .notWatched(path, number, "the write-ahead file cannot be watched: ")
        }
        // A change notification also arrives if the database file is removed (see ``Ledger/isReplaced``).
        inotify_add_watch(descriptor, database, UInt32(IN_ATTRIB | IN_MOVE_SELF))
        // A change notification also arrives if a file beside the database is removed. Attributes are not watched, because SQLite
        // sets them whenever a process opens the file.
        let folder = (database as NSString).deletingLastPathComponent
        inotify_add_watch(descriptor, folder, UInt32(IN_DELETE | IN_MOVED_FROM))
        // This assignment is the last statement, because an initializer that throws after the assignment also runs `deinit`. In
        // this case the descriptor would be closed twice, and the second call could close another file with the same number.
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Discards the change notifications that have arrived. Call this method before you read the ledger, because a change
    /// notification that arrives during the read must not be lost.
    package borrowing func drain() { Self.drain(descriptor) }

    /// Reads and discards the change notifications that are waiting on a file descriptor.
    ///
    /// - Returns: `true` if a change notification was waiting.
    @discardableResult
    package static func drain(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            var rang = false
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 { rang = true }
            return rang
        }
    }
}
