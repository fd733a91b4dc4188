import CLinux
import Foundation

/// Lines for whoever asks later what the agent did. Never a header, never a query: they may hold secrets.
struct AgentLog {
    /// Bytes of the log file, at most about; then it begins anew, beside the one before.
    private static let limit = 2 << 20

    /// The log of a detached agent. Only this file is cut: never a terminal, a journal, or a file somebody redirected us to.
    let file: URL
    /// Takes the lines in place of standard error.
    var redirect: ((String) -> Void)?

    func write(_ text: String) {
        if let redirect { return redirect(text) }
        rotate()
        let line = Date().formatted(.iso8601) + " " + text + "\n"
        try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
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
