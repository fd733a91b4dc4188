import Foundation
import Glibc

/// A process, told apart from a later one that got the same number.
package struct ProcessIdentity: Sendable, Hashable {
    package let pid: Int32
    /// Start time in clock ticks after boot, from /proc.
    package let start: Int64

    package init(pid: Int32, start: Int64) {
        self.pid = pid
        self.start = start
    }

    /// `nil` when no such process runs.
    package init?(pid: Int32) {
        // The name in the second field may hold blanks and brackets: count from the last bracket.
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let bracket = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: bracket)...].split(separator: " ")
        guard fields.count > 19, let start = Int64(fields[19]) else { return nil }
        self.init(pid: pid, start: start)
    }

    package static let current = ProcessIdentity(pid: getpid()) ?? ProcessIdentity(pid: getpid(), start: 0)

    /// Still running (a zombie does not count).
    package var isAlive: Bool {
        guard let now = ProcessIdentity(pid: pid), now.start == start else { return false }
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let bracket = stat.lastIndex(of: ")")
        else { return false }
        return stat[stat.index(after: bracket)...].split(separator: " ").first != "Z"
    }
}
