import Foundation
import Glibc

/// A process: its number, its start time and its PID namespace. A later process can get the same number, and a process of another
/// namespace, for example in a container with the same home, can have it at the same time.
package struct ProcessIdentity: Sendable, Hashable {
    package let pid: Int32
    /// Start time in clock ticks after boot, from /proc. The bits above hold the PID namespace, so that the ledger stores and compares
    /// one number. The first namespace of a machine is 0 there: earlier versions stored the start time alone.
    package let start: Int64

    package init(pid: Int32, start: Int64) {
        self.pid = pid
        self.start = start
    }

    /// `nil` if no such process runs in this PID namespace.
    package init?(pid: Int32) {
        // The name in the second field may hold blanks and brackets: count from the last bracket.
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let bracket = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: bracket)...].split(separator: " ")
        guard fields.count > 19, let ticks = Int64(fields[19]) else { return nil }
        self.init(pid: pid, start: Self.ownNamespace << Self.tickBits | ticks)
    }

    package static let current = ProcessIdentity(pid: getpid()) ?? ProcessIdentity(pid: getpid(), start: 0)

    /// Enough for ten years after boot.
    private static let tickBits: Int64 = 35

    /// The PID namespace of this process; 0 if it is the first of the machine, or unknown.
    private static let ownNamespace: Int64 = {
        var information = stat()
        // The first namespace has this number in every kernel. Others have numbers from 0xF0000000.
        guard stat("/proc/self/ns/pid", &information) == 0, information.st_ino != 0xEFFF_FFFC else { return 0 }
        return Int64(information.st_ino & 0x0FFF_FFFF)
    }()

    /// The number means another process here, or no process.
    package var isOfAnotherNamespace: Bool { start >> Self.tickBits != Self.ownNamespace }

    /// Still running (a zombie does not count). Always `false` for a process of another PID namespace: see ``isAlive(in:)``.
    package var isAlive: Bool {
        guard ProcessIdentity(pid: pid) == self else { return false }
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let bracket = stat.lastIndex(of: ")")
        else { return false }
        return stat[stat.index(after: bracket)...].split(separator: " ").first != "Z"
    }

    /// The process uses the app's ledger and is still running. Only a lock shows that of a process in another PID namespace.
    package func isAlive(in directories: AppDirectories) -> Bool {
        isOfAnotherNamespace ? ProcessPresence.isShown(by: self, in: directories) : isAlive
    }
}
