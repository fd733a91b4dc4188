import BackgroundLedger
import Foundation
import ProcessSupport

/// The file that this process was started from. An update puts another in its place while the process lives.
package struct ProgramFile {
    private static let answer = "this agent can go on"
    /// Milliseconds for that.
    private static let patience = 5_000

    private let appIdentifier: String
    private var nextTry = ContinuousClock.now

    /// What the program is asked that is to follow another (`--check --app ID`): whether it knows the ledger. Returns the exit code.
    package static func check(appIdentifier: String) -> Int32 {
        guard (try? Ledger.check(AppDirectories(appIdentifier: appIdentifier))) != nil else { return 78 }
        print(answer)
        return 0
    }

    init(appIdentifier: String) { self.appIdentifier = appIdentifier }

    /// Another program lies in its place. `false` also where none does: then nothing could follow.
    var isReplaced: Bool { ThisProcess.isDeleted && access(ThisProcess.executablePath, X_OK) == 0 }

    /// Whether that program can go on: an update puts its files in place one after the other, and libraries may still be missing; or it is
    /// an older one, which does not know this ledger. Asked of it once a minute at most. Cost: a process.
    mutating func mayGoOn(now: ContinuousClock.Instant) -> Bool {
        guard now >= nextTry else { return false }
        nextTry = now + .seconds(60)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        // What it began may hold the other end.
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

    /// What takes too long is killed, with all that it began.
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
