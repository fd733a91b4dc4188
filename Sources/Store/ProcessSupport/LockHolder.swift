import Foundation

/// Who holds a lock, for a message: a process that was stopped holds up everybody, and only a person can do something about it.
package enum LockHolder {
    /// `nil`: nobody is known to. Looks at the open files of every process of this user: some milliseconds.
    ///
    /// Not in `/proc/locks`: that is read in pieces, and while others lock and unlock, entries between two pieces are missed. Not with
    /// `F_GETLK` through a descriptor of its own either: to close that would release the locks of this process.
    ///
    /// - Parameters:
    ///   - path: of a database in write-ahead mode.
    ///   - known: the process that held the lock before. It is looked at first, because many processes may look at the same time.
    package static func find(database path: String, known: Int32? = nil) -> RunningProcess? {
        let files = [path + "-shm", path].compactMap(File.init)
        guard !files.isEmpty else { return nil }
        var other: Int32?
        for pid in processes(known) {
            for descriptor in numbers(in: "/proc/\(pid)/fd") {
                guard let file = File("/proc/\(pid)/fd/\(descriptor)"), files.contains(file) else { continue }
                let starts = writeLocks(pid, descriptor)
                // Others copy into the database, recover it, or are the last to close it.
                if starts.contains(writeLock) { return RunningProcess(pid) }
                if !starts.isEmpty { other = pid }
            }
        }
        return other.map { RunningProcess($0) }
    }

    /// Who holds a lock of ours (``FileLock``). `nil`: nobody is known to.
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

    /// The byte of the side file that a writer locks: "WAL-Index Locks" in SQLite's "WAL-mode File Format".
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

    /// All processes but this one.
    private static func processes(_ first: Int32?) -> [Int32] {
        [first].compactMap(\.self) + numbers(in: "/proc").filter { $0 != first && $0 != getpid() }
    }

    private static func numbers(in folder: String) -> [Int32] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap { Int32($0) }
    }

    /// First bytes of what is locked there against all others.
    private static func writeLocks(_ pid: Int32, _ descriptor: Int32) -> [String] {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/fdinfo/\(descriptor)", encoding: .utf8)) ?? ""
        // "lock:	1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120".
        return text.split(separator: "\n").compactMap { line in
            let words = line.split { $0 == " " || $0 == "\t" }
            return words.count >= 9 && words[0] == "lock:" && words[4] == "WRITE" ? String(words[7]) : nil
        }
    }
}
