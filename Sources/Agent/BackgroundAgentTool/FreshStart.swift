import BackgroundAgent
import Glibc
import ProcessSupport

/// This program, or what lies at its path by now, in place of this process.
enum FreshStart {
    /// Becomes a new process under the same number, after a pause: what it holds open is closed, what it launched stays its child. Where
    /// nothing lies at its path any more it is this program again, under the name "exe". Returns only where neither can be started.
    static func begin(after seconds: Int32) {
        poll(nil, 0, seconds * 1_000)
        ServiceManager.passOn()
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
        if execv(ThisProcess.executablePath, &arguments) != 0 { execv("/proc/self/exe", &arguments) }
    }
}
