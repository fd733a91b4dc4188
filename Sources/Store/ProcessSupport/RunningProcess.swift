import Foundation

/// A description of another process, for a message.
package struct RunningProcess: CustomStringConvertible {
    package let pid: Int32
    package let name: String
    private let state: Character?

    /// `true` if a signal or a debugger has stopped the process.
    package var isStopped: Bool { state == "T" || state == "t" }

    /// `true` if a thread of the process is running, or waits for a processor or a disk.
    package var isAtWork: Bool { state.map(Self.atWork.contains) ?? false }

    /// A text such as "process 123 (stormy)". For a stopped process, the text also contains the command that continues the
    /// process.
    package var description: String {
        "process \(pid) (\(name))" + (isStopped ? ", which is stopped (kill -CONT \(pid) continues the process)" : "")
    }

    package init(_ pid: Int32) {
        self.pid = pid
        name = (try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines) ?? "?"
        // All threads are examined, because the first thread often only waits for another thread that does the work.
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
        state =
            threads.lazy.compactMap { Self.state(at: "/proc/\(pid)/task/\($0)/stat") }.first(where: Self.atWork.contains)
            ?? Self.state(at: "/proc/\(pid)/stat")
    }

    private static func state(at path: String) -> Character? {
        // The format of the file is "pid (name) state …", and the name may contain any characters.
        guard let status = try? String(contentsOfFile: path, encoding: .utf8), let end = status.lastIndex(of: ")") else {
            return nil
        }
        return status[status.index(after: end)...].drop { $0 == " " }.first
    }

    private static let atWork: Set<Character> = ["R", "D"]

    /// - Parameter state: the letter in `/proc/PID/stat`.
    package init(pid: Int32, name: String, state: Character) { (self.pid, self.name, self.state) = (pid, name, state) }
}
