import CLinux
import DesktopServices
import Foundation
import Glibc
import ProcessSupport

/// Decodes pictures in a separate process. A file may come from an unknown source, and a crash of the decoder must not end the
/// agent.
enum PictureReading {
    static let option = "--picture"

    /// The maximum number of seconds that the decoding of a picture may take. `memory` is the maximum number of bytes of memory.
    private static let patience: UInt32 = 5
    private static let memory: UInt = 1 << 30

    /// Prints the pixels of a file. This method runs in the decoding process.
    static func printPixels(of file: String) -> Int32 {
        var limit = rlimit(rlim_cur: memory, rlim_max: memory)
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        // SIGALRM is unblocked, because the parent process may have blocked it.
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

    /// Returns the pixels of a file. Returns `nil` if the file is not a picture, or if decoding took too long. This method runs
    /// in the agent, and blocks for some milliseconds, or at most for the timeout plus one second.
    static func pixels(of file: String) -> NoticePixels? {
        let environment = ProcessInfo.processInfo.environment.filter {
            ["PATH", "HOME", "LANG", "XDG_DATA_DIRS"].contains($0.key)
        }
        let null = clinux_open("/dev/null", O_RDWR | O_CLOEXEC, 0)
        defer { close(null) }
        // The program's path is not used, because an upgrade may have replaced the program at this path.
        var child = ChildProcess(path: "/proc/self/exe", arguments: [option, file], environment: environment)
        (child.standardInput, child.standardError) = (null, null)
        // This limit is one second longer than the decoding process's own limit.
        guard let end = try? child.run(within: Double(patience) + 1, outputLimit: 1 << 20), end.code == 0 else { return nil }
        return NoticePixels(line: end.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
