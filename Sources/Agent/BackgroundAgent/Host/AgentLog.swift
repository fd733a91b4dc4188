import CLinux
import Foundation
import ProcessSupport

/// The log of the agent's actions. If standard error is connected to systemd's journal, entries with fields are written to the
/// journal. Otherwise lines are written to standard error.
struct AgentLog {
    /// The approximate maximum size of the log file in bytes. If the log file is larger, the agent begins a new file and keeps
    /// one earlier file.
    private static let limit = 2 << 20

    private let app: String
    /// The log file of a detached agent. Only the log file is rotated. If the user redirected the output to another file, the
    /// other file is never rotated.
    private let file: URL
    /// A function that receives the entries instead of the journal and the file.
    private let redirect: ((LogEntry) -> Void)?

    init(_ directories: AppDirectories, redirect: ((LogEntry) -> Void)? = nil) {
        (app, file, self.redirect) = (directories.appIdentifier, directories.agentLog, redirect)
    }

    func write(_ message: LogMessage, _ values: (LogField, any CustomStringConvertible)...) { write(LogEntry(message, values)) }

    func write(_ entry: LogEntry) {
        if let redirect { return redirect(entry) }
        if let journal = Journal.ofThisProcess, journal.send(entry, app: app) { return }
        rotate()
        let line = Date().formatted(.iso8601) + " " + entry.line + "\n"
        StandardError.write(line)
    }

    /// Rotates the log file, because no other program rotates the log of a long-lived agent.
    private func rotate() {
        var ours = stat()
        var named = stat()
        guard fstat(2, &ours) == 0, ours.st_size > Self.limit, stat(file.path, &named) == 0, ours.st_dev == named.st_dev,
            ours.st_ino == named.st_ino
        else { return }
        guard rename(file.path, file.path + ".1") == 0 else { return }
        let descriptor = clinux_open(file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        dup2(descriptor, 2)
        close(descriptor)
    }
}
