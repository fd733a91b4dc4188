import Foundation

/// Another process, for a message.
package struct RunningProcess: CustomStringConvertible {
    package let pid: Int32
    package let name: String
    private let state: Character?

    /// A signal or a debugger has stopped it.
    package var isStopped: Bool { state == "T" || state == "t" }

    /// It runs, waits for a processor or waits for a disk.
    package var isAtWork: Bool { state == "R" || state == "D" }

    /// "process 123 (stormy)", and what helps where it was stopped.
    package var description: String {
        "process \(pid) (\(name))" + (isStopped ? ", which is stopped (kill -CONT \(pid) continues it)" : "")
    }

    package init(_ pid: Int32) {
        self.pid = pid
        name = (try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines) ?? "?"
        let status = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        // "pid (name) state …": the name may hold anything.
        state = status.lastIndex(of: ")").map { status[status.index(after: $0)...].drop { $0 == " " }.first } ?? nil
    }

    /// - Parameter state: as in `/proc/PID/stat`.
    package init(pid: Int32, name: String, state: Character) { (self.pid, self.name, self.state) = (pid, name, state) }
}
