import CLinux
import DesktopServices
import Foundation
import Glibc
import ProcessSupport

/// Decodes pictures in a process of its own: a file may come from a stranger, and whatever it does to a decoder must not end the agent.
enum PictureReading {
    static let option = "--picture"

    /// Seconds, and bytes of memory, that a picture may take.
    private static let patience: UInt32 = 5
    private static let memory: UInt = 1 << 30

    /// In the other process: prints the pixels of a file.
    static func printPixels(of file: String) -> Int32 {
        var limit = rlimit(rlim_cur: memory, rlim_max: memory)
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        // Whoever started this may have blocked it.
        var timeout = sigset_t()
        sigemptyset(&timeout)
        sigaddset(&timeout, SIGALRM)
        signal(SIGALRM, SIG_DFL)
        sigprocmask(SIG_UNBLOCK, &timeout, nil)
        alarm(patience)
        guard let pixels = NoticePixels(file: file) else { return 65 }
        print(pixels.line)
        return 0
    }

    /// In the agent. Blocks for some milliseconds, at most for the patience and a second. `nil`: it is no picture, or it took too long.
    static func pixels(of file: String) -> NoticePixels? {
        let environment = ProcessInfo.processInfo.environment.filter {
            ["PATH", "HOME", "LANG", "XDG_DATA_DIRS"].contains($0.key)
        }
        let null = clinux_open("/dev/null", O_RDWR | O_CLOEXEC, 0)
        defer { close(null) }
        // Not its path: an upgrade may have put another version there.
        var child = ChildProcess(path: "/proc/self/exe", arguments: [option, file], environment: environment)
        (child.standardInput, child.standardError) = (null, null)
        // A second more than it gives itself.
        guard let end = try? child.run(within: Double(patience) + 1, outputLimit: 1 << 20), end.code == 0 else { return nil }
        return NoticePixels(line: end.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
