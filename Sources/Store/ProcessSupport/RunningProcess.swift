import Foundation

/// Another process, for a message.
package struct RunningProcess: CustomStringConvertible {
    package let pid: Int32
    package let name: String
    package let isStopped: Bool

    /// "process 123 (stormy)", and what helps where it was stopped.
    package var description: String {
        "process \(pid) (\(name))" + (isStopped ? ", which is stopped (kill -CONT \(pid) continues it)" : "")
    }

    package init(_ pid: Int32) {
        self.pid = pid
        name = (try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines) ?? "?"
        let status = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        // "pid (name) state …": the name may hold anything.
        let state = status.lastIndex(of: ")").map { status[status.index(after: $0)...].drop { $0 == " " }.first } ?? nil
        isStopped = state == "T" || state == "t"
    }
}
