import BackgroundLedger
import Foundation
import ProcessSupport

/// The program file from which this process was started. An update may replace the file while the process runs.
package struct ProgramFile {
    private static let answer = "this agent can continue"
    /// The maximum number of milliseconds that the check of the new program may take.
    private static let patience = 5_000

    private let appIdentifier: String
    private var nextTry = ContinuousClock.now

    /// Checks whether this program supports the ledger of an app, and returns the exit code. A running agent starts the new
    /// program with `--check --app ID`, before the new program replaces the agent.
    package static func check(appIdentifier: String) -> Int32 {
        guard (try? Ledger.check(AppDirectories(appIdentifier: appIdentifier))) != nil else { return 78 }
        print(answer)
        return 0
    }

    init(appIdentifier: String) { self.appIdentifier = appIdentifier }

    /// `true` if another program replaced the file. `false` if the file is missing, because no program could continue the agent's
    /// work.
    var isReplaced: Bool { ThisProcess.isDeleted && access(ThisProcess.executablePath, X_OK) == 0 }

    /// Returns `true` if the new program can continue the agent's work. An update replaces files one after the other, so
    /// libraries may still be missing. The new program may also be an older version that does not support this ledger. The check
    /// starts a process, so it runs at most once per minute.
    mutating func canContinueWork(now: ContinuousClock.Instant) -> Bool {
        guard now >= nextTry else { return false }
        nextTry = now + .seconds(60)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        // The read must not block, because processes that the program started may hold the other end of the pipe open.
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        defer { close(ends[0]) }
        var child = ChildProcess(
            path: ThisProcess.executablePath, arguments: ["--check", "--app", appIdentifier],
            environment: ProcessInfo.processInfo.environment)
        child.standardOutput = ends[1]
        child.startsSession = true
        let pid = try? child.start()
        close(ends[1])
        guard let pid else { return false }
        let status = Self.end(of: pid)
        var words = [UInt8](repeating: 0, count: 1_000)
        let count = read(ends[0], &words, words.count)
        return status == 0 && count > 0 && String(decoding: words.prefix(count), as: UTF8.self).hasPrefix(Self.answer)
    }

    /// Waits for the end of the program. If the program takes too long, it is killed together with all processes that it started.
    private static func end(of pid: Int32) -> Int32 {
        var status: Int32 = -1
        defer { kill(-pid, SIGKILL) }
        for _ in 0..<patience {
            if waitpid(pid, &status, WNOHANG) == pid { return status }
            usleep(1_000)
        }
        kill(-pid, SIGKILL)
        waitpid(pid, &status, 0)
        return -1
    }
}
