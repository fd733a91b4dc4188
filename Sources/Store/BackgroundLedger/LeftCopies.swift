import CLinux
import Foundation
import ProcessSupport

// Functions for copies of files to upload that have no row in the ledger. Such copies exist if the ledger was removed or comes
// from a backup.
extension AppDirectories {
    /// Moves copies without a row in the ledger to a separate folder, in which the user can find them.
    ///
    /// - Returns: `false` if the spool is in use or cannot be read.
    package func moveUnknownCopies(of ledger: Ledger) -> Bool {
        withUnknownFiles(of: ledger) { names in for name in names where name.hasPrefix(Self.copyPrefix) { _ = putAside(name) } }
    }

    /// Calls `body` with the names of files in the spool that have no row. During the call, this process holds the spool's lock
    /// exclusively. The lock guarantees that no running process has created a file whose row is not inserted yet.
    ///
    /// - Returns: `false` if the spool is in use or cannot be read. In both cases `body` is not called.
    package func withUnknownFiles(of ledger: Ledger, _ body: ([String]) -> Void) -> Bool {
        guard let lock = try? FileLock.acquire(spoolLock) else { return false }
        defer { extendLifetime(lock) }
        guard let known = try? ledger.read({ try $0.spoolFiles() }),
            let names = try? FileManager.default.contentsOfDirectory(atPath: spool.path)
        else { return false }
        body(names.filter { !known.contains($0) && TransferRecord.isPlainName($0) })
        return true
    }

    /// - Returns: `false` if the file could not be moved.
    package func putAside(_ name: String) -> Bool {
        let path = spooled(name).path
        mkdir(leftCopies.path, 0o700)
        // The modification time of the copy is set to now, because the copy is kept for a fixed time that begins now.
        utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW)
        let place = leftCopies.appendingPathComponent(name)
        if rename(path, place.path) == 0 { return true }
        // If the folder is on another file system than the spool, the file is copied.
        guard FileFault(errno) == .unsupported else { return false }
        let draft = leftCopies.appendingPathComponent(".\(name)")
        unlink(draft.path)
        guard (try? FileManager.default.copyItem(atPath: path, toPath: draft.path)) != nil,
            utimensat(AT_FDCWD, draft.path, nil, AT_SYMLINK_NOFOLLOW) == 0, rename(draft.path, place.path) == 0
        else {
            unlink(draft.path)
            return false
        }
        unlink(path)
        return true
    }
}
