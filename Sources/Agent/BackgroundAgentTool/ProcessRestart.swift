import BackgroundAgent
import Glibc
import ProcessSupport

/// Replaces this process with a new process of this program, or of a newer program at the same path.
enum ProcessRestart {
    /// Starts the program again under the same process id, after a pause. Open descriptors are closed. Launched processes stay
    /// children of this process id. If the file at the program's path is missing, this program is started again under the name
    /// "exe".
    ///
    /// This method returns only if no program can be started, or if the process was asked to stop. The stop signals are blocked,
    /// so this method checks whether a stop signal has arrived. Without this check, a process that restarts repeatedly would
    /// never react to a stop signal.
    static func begin(after seconds: Int) {
        guard !AgentProcess.isAskedToStop(within: seconds) else { return }
        ServiceManager.passOn()
        var arguments: [UnsafeMutablePointer<CChar>?] = ThisProcess.arguments.map { strdup($0) } + [nil]
        if execv(ThisProcess.executablePath, &arguments) != 0 { execv("/proc/self/exe", &arguments) }
    }
}
