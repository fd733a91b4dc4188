import Foundation

/// Finds the process that holds a lock, so that a message for the user can contain this process. If a stopped process holds a
/// lock, all other processes have to wait, and only the user can continue or end the stopped process.
package enum LockHolder {
    /// Returns the process that holds the write lock of a database, or `nil` if no such process is found. Cost: the call examines
    /// the open files of every process of this user, which takes some milliseconds.
    ///
    /// `/proc/locks` is not used, because the kernel returns the content of this file in several parts. If other processes lock
    /// or unlock files during the read, some entries are left out. `F_GETLK` is also not used, because it needs another
    /// descriptor, and closing this descriptor would release the locks of this process.
    ///
    /// - Parameters:
    ///   - path: the path of a database in write-ahead mode.
    ///   - known: the process that held the lock before. This process is checked first. The first check saves time if many
    ///     processes search at the same time.
    package static func find(database path: String, known: Int32? = nil) -> RunningProcess? {
        let files = [path + "-shm", path].compactMap(File.init)
        guard !files.isEmpty else { return nil }
        var other: Int32?
        for pid in processes(known) {
            for descriptor in numbers(in: "/proc/\(pid)/fd") {
                guard let file = File("/proc/\(pid)/fd/\(descriptor)"), files.contains(file) else { continue }
                let starts = writeLocks(pid, descriptor)
                // If no process holds the write lock, a process that holds another lock of the database is returned. Such a
                // process copies the write-ahead log into the database, recovers the database, or is the last process that closes
                // the database.
                if starts.contains(writeLock) { return RunningProcess(pid) }
                if !starts.isEmpty { other = pid }
            }
        }
        return other.map { RunningProcess($0) }
    }

    /// Returns the process that holds a ``FileLock``, or `nil` if no such process is found.
    package static func find(lock path: String, known: Int32? = nil) -> RunningProcess? {
        guard let file = File(path) else { return nil }
        for pid in processes(known) {
            for descriptor in numbers(in: "/proc/\(pid)/fd") where File("/proc/\(pid)/fd/\(descriptor)") == file {
                let text = (try? String(contentsOfFile: "/proc/\(pid)/fdinfo/\(descriptor)", encoding: .utf8)) ?? ""
                if text.contains("lock:") { return RunningProcess(pid) }
            }
        }
        return nil
    }

    /// The offset of the byte in the index file that a writer locks (see "WAL-Index Locks" in SQLite's "WAL-mode File Format").
    private static let writeLock = "120"

    private struct File: Equatable {
        let inode: ino_t
        let device: dev_t

        init?(_ path: String) {
            var information = stat()
            guard stat(path, &information) == 0 else { return nil }
            (inode, device) = (information.st_ino, information.st_dev)
        }
    }

    /// Returns the numbers of all other processes. The given number is the first element.
    private static func processes(_ first: Int32?) -> [Int32] {
        [first].compactMap(\.self) + numbers(in: "/proc").filter { $0 != first && $0 != getpid() }
    }

    private static func numbers(in folder: String) -> [Int32] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap { Int32($0) }
    }

    /// Returns the start offsets of the exclusive locks that a process holds on the file.
    private static func writeLocks(_ pid: Int32, _ descriptor: Int32) -> [String] {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/fdinfo/\(descriptor)", encoding: .utf8)) ?? ""
        // An example of a line: "lock:    1: POSIX ADVISORY WRITE 1234 fe:00:5678 120 120".
        return text.split(separator: "\n").compactMap { line in
            let words = line.split { $0 == " " || $0 == "\t" }
            return words.count >= 9 && words[0] == "lock:" && words[4] == "WRITE" ? String(words[7]) : nil
        }
    }
}
