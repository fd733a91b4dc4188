import CLinux
import Foundation

/// Lines for whoever asks later what the agent did. Never a header, never a query: they may hold secrets.
struct AgentLog {
    /// Bytes of a log file, at most about; then it begins anew.
    private static let limit = 2 << 20

    func note(_ text: String) {
        var information = stat()
        // A long-lived agent's log grows with nobody to rotate it. Only a file of ours is cut, never a terminal or a journal.
        if fstat(2, &information) == 0, information.st_mode & S_IFMT == S_IFREG, information.st_size > Self.limit {
            ftruncate(2, 0)
        }
        let line = Date().formatted(.iso8601) + " " + text + "\n"
        try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
    }
}
