import CLinux
import Foundation

/// A lock on a file, exclusive if nothing else is said, held by an open file description: it goes when the last process that inherited
/// the descriptor is gone, however it went.
package struct FileLock: ~Copyable {
    package let descriptor: Int32

    /// `nil` when another process holds it. A child that is given the descriptor goes on holding the lock.
    package static func acquire(_ url: URL) throws(StoreError) -> FileLock? {
        let descriptor = try open(url)
        guard clinux_lock_file(descriptor) == 0 else {
            let number = errno
            close(descriptor)
            // The two numbers that fcntl(2) names for a lock that another process holds.
            if FileFault.isInterruption(number) || FileFault(number) == .notAllowed { return nil }
            throw .notOpened(url.path, number)
        }
        // Moved away since it was opened: what lies there now is another file.
        guard isAt(url, descriptor) else {
            close(descriptor)
            return try acquire(url)
        }
        return FileLock(descriptor: descriptor)
    }

    /// Returns when it is held, however long somebody else has it.
    package static func wait(for url: URL) throws(StoreError) -> FileLock { try wait(url, clinux_wait_for_lock) }

    /// One of many who hold it together; while they do, nobody has it alone. Waits for one who has: for moments, not for work.
    package static func share(_ url: URL) throws(StoreError) -> FileLock { try wait(url, clinux_wait_for_shared_lock) }

    private static func wait(_ url: URL, _ take: (Int32) -> Int32) throws(StoreError) -> FileLock {
        var descriptor = try open(url)
        while true {
            if take(descriptor) == 0 {
                if isAt(url, descriptor) { return FileLock(descriptor: descriptor) }
                // Its folder was moved away or put back meanwhile: others hold another file by this name.
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

    /// `false`: the file was removed or moved since, and others lock another one by this name.
    package func isAt(_ url: URL) -> Bool { Self.isAt(url, descriptor) }

    private static func isAt(_ url: URL, _ descriptor: Int32) -> Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && stat(url.path, &named) == 0 && opened.st_ino == named.st_ino
            && opened.st_dev == named.st_dev
    }

    /// Runs `body` while no other process holds the lock. For what goes better alone: if the holder does not move, `body` runs beside it.
    ///
    /// - Parameters:
    ///   - database: the path of the database that the holders of this lock use.
    ///   - isRequired: throws if the file of the lock cannot be opened. If it is `false`, `body` runs without the lock.
    package static func whileHolding<Value>(
        _ url: URL, besides database: String, isRequired: Bool = true, _ body: () throws -> Value
    ) throws -> Value {
        let descriptor: Int32
        do { descriptor = try open(url) } catch {
            if isRequired { throw error }
            return try body()
        }
        // Closing it lets go of the lock.
        defer { close(descriptor) }
        let wait = WriterWait(database: database, lock: url.path)
        var round = 0
        while clinux_lock_file(descriptor) != 0, wait.wait(round) { round += 1 }
        return try body()
    }

    private static func open(_ url: URL) throws(StoreError) -> Int32 {
        let path = url.path
        let descriptor = clinux_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .notOpened(path, errno) }
        return descriptor
    }

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Whether some process holds the lock now, asked without taking it (a taker in that moment must not fail).
    /// A missing file is not held.
    ///
    /// - Parameter unknown: The result if the file cannot be opened for now.
    package static func isHeld(_ url: URL, unknown: Bool = false) -> Bool {
        isLocked(url, unknown: unknown) { clinux_file_is_locked($0) }
    }

    /// - Parameter look: Returns 1 or 0 for an open file; -1 and errno if that is unknown.
    static func isLocked(_ url: URL, unknown: Bool, _ look: (Int32) -> Int32) -> Bool {
        let descriptor = clinux_open(url.path, O_RDWR | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return FileFault(errno).isPassing && unknown }
        defer { close(descriptor) }
        let answer = look(descriptor)
        return answer < 0 ? FileFault(errno).isPassing && unknown : answer > 0
    }
}
