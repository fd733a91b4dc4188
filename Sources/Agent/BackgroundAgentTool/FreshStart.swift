import BackgroundAgent
import Glibc
import ProcessSupport

/// This program, or what lies at its path by now, in place of this process.
enum FreshStart {
    /// Becomes a new process under the same number, after a pause: what it holds open is closed, what it launched stays its child. Where
    /// nothing lies at its path any more it is this program again, under the name "exe". Returns only where neither can be started, or if this
    /// process is asked to stop: the signals are blocked, and a process that starts afresh again and again would not see them.
    static func begin(after seconds: Int) {
        guard !AgentProcess.isAskedToStop(within: seconds) else { return }
        ServiceManager.passOn()
        var arguments: [UnsafeMutablePointer<CChar>?] = ThisProcess.arguments.map { strdup($0) } + [nil]
        if execv(ThisProcess.executablePath, &arguments) != 0 { execv("/proc/self/exe", &arguments) }
    }
}
