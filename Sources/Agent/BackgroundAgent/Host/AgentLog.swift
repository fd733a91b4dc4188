import CLinux
import Foundation
import ProcessSupport

/// What the agent did, for whoever asks later: to the journal with fields, where standard error leads there, or as lines.
struct AgentLog {
    /// Bytes of the log file, at most about; then it begins anew, beside the one before.
    private static let limit = 2 << 20

    private let app: String
    /// The log of a detached agent. Only this file is cut: never a terminal, a journal, or a file somebody redirected us to.
    private let file: URL
    /// Takes the entries in place of all that.
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

    /// A long-lived agent's log grows with nobody to rotate it.
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
