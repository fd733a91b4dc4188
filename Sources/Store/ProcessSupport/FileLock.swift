import CLinux
import Foundation

/// A lock on a file. ``share(_:)`` takes a shared lock, and all other methods take an exclusive lock. The lock belongs to the
/// open file description. The kernel releases the lock when the last process that inherited the descriptor has ended.
package struct FileLock: ~Copyable {
    package let descriptor: Int32

    /// Takes the lock without waiting. Returns `nil` if another process holds the lock. A child process that inherits the
    /// descriptor also holds the lock.
    package static func acquire(_ url: URL) throws(StoreError) -> FileLock? {
        let descriptor = try open(url)
        guard clinux_lock_file(descriptor) == 0 else {
            let number = errno
            close(descriptor)
            // According to fcntl(2), both error numbers mean that another process holds the lock.
            if FileFault.isInterruption(number) || FileFault(number) == .notAllowed { return nil }
            throw .notOpened(url.path, number)
        }
        // The lock file was moved after this process opened the file, and another file now has its name.
        guard isAt(url, descriptor) else {
            close(descriptor)
            return try acquire(url)
        }
        return FileLock(descriptor: descriptor)
    }

    /// Takes an exclusive lock. The call waits without a time limit until the lock is free.
    package static func wait(for url: URL) throws(StoreError) -> FileLock { try wait(url, clinux_wait_for_lock) }

    /// Takes a shared lock, so that no process can take the lock exclusively. If a process holds the lock exclusively, the call
    /// waits. This wait is short, because processes hold exclusive locks only for a very short time.
    package static func share(_ url: URL) throws(StoreError) -> FileLock { try wait(url, clinux_wait_for_shared_lock) }

    private static func wait(_ url: URL, _ take: (Int32) -> Int32) throws(StoreError) -> FileLock {
        var descriptor = try open(url)
        while true {
            if take(descriptor) == 0 {
                if isAt(url, descriptor) { return FileLock(descriptor: descriptor) }
                // The folder was moved or restored after the file was opened, so other processes lock another file with this
                // name. This process must lock the new file.
                close(descriptor)
                descriptor = try open(url)
                continue
            }
            let reason = errno
            guard reason == EINTR else {
                close(descriptor)
                throw .notOpened(url.path, reason)
            }
        }
    }

    /// Returns whether the locked file is still at this path. If the file was removed or moved, the lock has no effect, because
    /// other processes lock another file with this name.
    package func isAt(_ url: URL) -> Bool { Self.isAt(url, descriptor) }

    private static func isAt(_ url: URL, _ descriptor: Int32) -> Bool {
        var opened = stat()
        // If the file system does not respond (for example ESTALE of NFS), the lock is kept.
        guard fstat(descriptor, &opened) == 0 else { return true }
        switch PathStatus.at(url.path) {
        case .found(let named): return opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
        case .absent: return false
        // If the file system does not respond, the lock is kept.
        case .unreadable: return true
        }
    }

    /// Takes the lock and runs `body`. If another process holds the lock and makes no progress, `body` runs without the lock,
    /// because the lock is not necessary for a correct result.
    ///
    /// - Parameters:
    ///   - database: the path of the database that the holders of this lock use.
    ///   - isRequired: `true` to throw if the lock file cannot be opened. `false` to run `body` without the lock in this case.
    package static func whileHolding<Value>(
        _ url: URL, besides database: String, isRequired: Bool = true, _ body: () throws -> Value
    ) throws -> Value {
        let descriptor: Int32
        do { descriptor = try open(url) } catch {
            if isRequired { throw error }
            return try body()
        }
        // The lock is released when the descriptor is closed.
        defer { close(descriptor) }
        let wait = WriterWait(database: database, lock: url.path)
        var round = 0
        while clinux_lock_file(descriptor) != 0, wait.wait(round) { round += 1 }
        return try body()
    }

    /// Returns the reason why no process of this user can take the lock: the file belongs to another user, or a folder has its
    /// name. Returns `nil` if the lock can be taken, if the file does not exist, or if the problem may pass.
    package static func obstacle(_ url: URL) -> StoreError? {
        let descriptor = clinux_open(url.path, O_RDWR | O_CLOEXEC, 0)
        guard descriptor < 0 else {
            close(descriptor)
            return nil
        }
        let number = errno
        switch FileFault(number) {
        case .notAFile: return .notOpened(url.path, number)
        case .notAllowed:
            guard case .found(let found) = PathStatus.at(url.path), found.st_uid != geteuid() else { return nil }
            return .notOpened(url.path, number)
        default: return nil
        }
    }

    private static func open(_ url: URL) throws(StoreError) -> Int32 {
        let path = url.path
        let descriptor = clinux_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .notOpened(path, errno) }
        return descriptor
    }

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Returns whether a process holds the lock now. The method does not take the lock, because otherwise another process could
    /// fail to take the lock at the same time. If the file does not exist, the result is `false`.
    ///
    /// - Parameter unknown: The result if the lock file cannot be opened now.
    package static func isHeld(_ url: URL, unknown: Bool = false) -> Bool {
        isLocked(url, unknown: unknown) { clinux_file_is_locked($0) }
    }

    /// - Parameter look: A function that returns whether an open file is locked: 1 if the file is locked, 0 if the file is not
    ///   locked, and -1 if an error occurred (`errno`).
    static func isLocked(_ url: URL, unknown: Bool, _ look: (Int32) -> Int32) -> Bool {
        var descriptor = clinux_open(url.path, O_RDWR | O_CLOEXEC, 0)
        // If the file cannot be opened for writing, for example on a read-only mount, it is opened read-only. A read-only
        // descriptor is sufficient to read the state of the lock.
        if descriptor < 0, FileFault(errno) == .notAllowed { descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC, 0) }
        guard descriptor >= 0 else { return FileFault(errno).isPassing && unknown }
        defer { close(descriptor) }
        let answer = look(descriptor)
        return answer < 0 ? FileFault(errno).isPassing && unknown : answer > 0
    }
}
