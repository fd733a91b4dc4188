import Foundation

/// Who holds a lock, for a message: a process that was stopped holds up everybody, and only a person can do something about it.
package struct LockHolder: CustomStringConvertible {
    let pid: Int32
    let name: String
    let isStopped: Bool

    /// "process 123 (stormy)", and what helps where it was stopped.
    package var description: String {
        "process \(pid) (\(name))" + (isStopped ? ", which is stopped (kill -CONT \(pid) continues it)" : "")
    }

    /// `nil`: nobody is known to.
    ///
    /// - Parameter path: of a database. Its write lock lies in its side file.
    package static func find(database path: String) -> LockHolder? {
        let inodes = ["-shm", ""].compactMap { inode(path + $0) }
        // The kernel's list is read in pieces; while others lock and unlock, entries between two pieces are missed.
        for _ in 0..<10 { if let holder = find(inodes) { return holder } }
        return nil
    }

    private static func find(_ inodes: [UInt64]) -> LockHolder? {
        guard !inodes.isEmpty, let locks = try? String(contentsOfFile: "/proc/locks", encoding: .utf8) else { return nil }
        // "3: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120": a wait begins with "3: ->".
        for line in locks.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] != "->", words[3] == "WRITE", let pid = Int32(words[4]), pid > 0, pid != getpid(),
                let inode = words[5].split(separator: ":").last.flatMap({ UInt64($0) }), inodes.contains(inode)
            else { continue }
            return LockHolder(pid)
        }
        return nil
    }

    private static func inode(_ path: String) -> UInt64? {
        var information = stat()
        return stat(path, &information) == 0 ? UInt64(information.st_ino) : nil
    }

    private init(_ pid: Int32) {
        self.pid = pid
        name = (try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines) ?? "?"
        let status = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        // "pid (name) state …": the name may hold anything.
        let state = status.lastIndex(of: ")").map { status[status.index(after: $0)...].drop { $0 == " " }.first } ?? nil
        isStopped = state == "T" || state == "t"
    }
}
