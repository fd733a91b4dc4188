import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation
import Glibc

/// Starts app processes with posix_spawn, and detects the end of each process with a pidfd, a file descriptor of a process.
final class ProcessLauncher: Launcher {
    private struct Held {
        var pid: Int32
        var descriptor: Int32
    }

    private let ledger: Ledger
    private let loop: EventLoop
    private var held: [Int64: Held] = [:]
    /// The launches whose process has ended, if this launcher has detected this.
    private var over: Set<Int64> = []
    /// A function that is called on the loop after the process of a launch ended.
    var onEnd: (Int64, ProcessEnd) -> Void = { _, _ in }

    private let environment: () -> [String: String]

    /// - Parameter environment: returns additional environment variables for the processes.
    init(ledger: Ledger, loop: EventLoop, environment: @escaping () -> [String: String] = { [:] }) {
        self.ledger = ledger
        self.loop = loop
        self.environment = environment
    }

    enum Failure: Error, CustomStringConvertible {
        case appUnknown
        case lockTaken(Int64)
        case cannotWatch(String)

        var description: String {
            switch self {
            case .appUnknown: "the path of the app's executable is not known"
            case .lockTaken(let id): "another process holds the lock of launch \(id)"
            case .cannotWatch(let reason): "the process of the launch cannot be watched: \(reason)"
            }
        }
    }

    func start(_ launch: Int64) throws -> ProcessIdentity {
        let now = ThisProcess.now
        let (app, session, token) = try ledger.read {
            (try $0.fact(.app), try $0.fact(.sessionEnvironment), try $0.activationToken(ofLaunch: launch, now: now))
        }
        guard let app else { throw Failure.appUnknown }
        guard access(app.executable, X_OK) == 0 else { throw AppIsMissing(path: app.executable, name: app.displayName) }
        guard let lock = try FileLock.acquire(ledger.directories.launchLock(launch)) else { throw Failure.lockTaken(launch) }
        var environment = LaunchEnvironment.inherited(
            ProcessInfo.processInfo.environment, by: app, in: ledger.directories)
        // The variables that the last command reported replace the agent's variables, because the command ran in the user's
        // current session.
        environment.merge(session?.variables ?? [:]) { $1 }
        for name in ServiceManager.variables { environment[name] = nil }
        environment["BACKGROUND_LAUNCH"] = String(launch)
        // The agent's activation token is replaced, because each token is valid only once.
        for name in ["XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID"] { environment[name] = token }
        environment.merge(self.environment()) { $1 }
        // The variable with the agent's kill point must not apply to the app. A separate variable contains the kill point of the
        // app.
        environment["BACKGROUND_CRASH_AT"] = environment.removeValue(forKey: "BACKGROUND_APP_CRASH_AT")
        var child = ChildProcess(path: app.executable, arguments: app.arguments, environment: environment)
        child.standardOutput = 2
        child.inherited = lock.descriptor
        child.blocksTermination = true
        let pid = try child.start()
        KillPoint.reach(.launchSpawned)
        do {
            try watch(launch, pid)
        } catch {
            // A process that cannot be watched is killed, because otherwise the launch would be started a second time while the
            // process runs.
            _ = Glibc.kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw error
        }
        // Only the loop reaps the process (removes the ended process from the system). Until then the process id stays valid,
        // even if the process has ended.
        return ProcessIdentity(pid: pid) ?? ProcessIdentity(pid: pid, start: 0)
    }

    func adopt(_ launch: Int64, _ process: ProcessIdentity) -> Adoption {
        // The descriptor is opened before the comparison, so that the comparison examines the process to which the descriptor
        // refers.
        let descriptor = clinux_pidfd_open(process.pid)
        guard descriptor >= 0, ProcessIdentity(pid: process.pid) == process else {
            if descriptor >= 0 { close(descriptor) }
            return isAlive(launch) ? .outOfReach : .gone
        }
        // If `exec` replaced the program of this agent, the launched process is still a child of this agent. If the child has
        // ended, it must be reaped.
        waitpid(process.pid, nil, WNOHANG)
        guard isAlive(launch) else {
            close(descriptor)
            return .gone
        }
        do throws(StoreError) {
            try watch(launch, process.pid, descriptor)
            return .watched
        } catch {
            return .outOfReach
        }
    }

    private func watch(_ launch: Int64, _ pid: Int32) throws {
        let descriptor = clinux_pidfd_open(pid)
        guard descriptor >= 0 else { throw Failure.cannotWatch(String(cString: strerror(errno))) }
        try watch(launch, pid, descriptor)
    }

    /// Watches a process.
    ///
    /// - Throws: An error if the process cannot be watched. If an error is thrown, the descriptor is closed.
    private func watch(_ launch: Int64, _ pid: Int32, _ descriptor: Int32) throws(StoreError) {
        do throws(StoreError) {
            try loop.watch(descriptor) { [unowned self] in ended(launch) }
        } catch {
            close(descriptor)
            throw error
        }
        held[launch] = Held(pid: pid, descriptor: descriptor)
        over.remove(launch)
    }

    private func ended(_ launch: Int64) {
        guard let process = held.removeValue(forKey: launch) else { return }
        over.insert(launch)
        loop.unwatch(process.descriptor)
        close(process.descriptor)
        var status: Int32 = 0
        guard waitpid(process.pid, &status, WNOHANG) == process.pid else { return onEnd(launch, .unknown) }
        let signal = status & 0x7f
        onEnd(launch, signal == 0 ? .exited((status >> 8) & 0xff) : .signalled(signal))
    }

    /// Returns `true` if the launch's process is alive. The lock is checked only if this launcher has not detected the end of the
    /// process. Otherwise a launch that has ended could seem to be alive: between fork and exec, another child of this process
    /// also holds the lock.
    func isAlive(_ launch: Int64) -> Bool {
        !over.contains(launch) && FileLock.isHeld(ledger.directories.launchLock(launch), unknown: true)
    }

    func warn(_ launch: Int64) { send(SIGTERM, launch) }

    func kill(_ launch: Int64) { send(SIGKILL, launch) }

    private func send(_ signal: Int32, _ launch: Int64) {
        guard let process = held[launch] else { return }
        // The signal is sent by the descriptor of the process, because another process may have the process id by now.
        _ = clinux_pidfd_send_signal(process.descriptor, signal)
    }

    func forget(_ launch: Int64) {
        over.remove(launch)
        unlink(ledger.directories.launchLock(launch).path)
    }
}

/// Detects the end of processes that are not launches. Such processes await a transfer, or have a session with a delegate.
final class ProcessWatch {
    private let loop: EventLoop
    private let directories: AppDirectories
    private var watched: Set<ProcessIdentity> = []
    var onEnd: (ProcessIdentity) -> Void = { _ in }

    init(loop: EventLoop, directories: AppDirectories) { (self.loop, self.directories) = (loop, directories) }

    /// Watches a process. Returns `false` if the process has already ended.
    func watch(_ process: ProcessIdentity) -> Bool {
        if watched.contains(process) { return true }
        return watchDescriptor(of: process) || watchPresence(of: process)
    }

    /// Watches a process by the descriptor of the process.
    ///
    /// - Returns: `false` if the process has ended, or if no descriptor can refer to the process. For example, the process may be
    ///   in another PID namespace or time namespace.
    private func watchDescriptor(of process: ProcessIdentity) -> Bool {
        let descriptor = clinux_pidfd_open(process.pid)
        guard descriptor >= 0 else { return false }
        do throws(StoreError) {
            // The descriptor is opened before the comparison, so that the comparison examines the process to which the descriptor
            // refers.
            if ProcessIdentity(pid: process.pid) == process, process.isAlive {
                try loop.watch(descriptor) { [unowned self] in
                    loop.unwatch(descriptor)
                    close(descriptor)
                    ended(process)
                }
                watched.insert(process)
                return true
            }
        } catch {}
        close(descriptor)
        return false
    }

    /// Starts a thread that waits for the lock of the process, or checks the process once per second.
    private func watchPresence(of process: ProcessIdentity) -> Bool {
        guard process.isAlive(in: directories) else { return false }
        watched.insert(process)
        let (post, directories) = (loop.poster, directories)
        // This reference is used only on the loop's thread, on which posted calls run.
        nonisolated(unsafe) let watch = self
        let thread = Thread {
            ProcessPresence.waitForEnd(of: process, in: directories)
            post { watch.ended(process) }
        }
        thread.name = "presence"
        thread.start()
        return true
    }

    private func ended(_ process: ProcessIdentity) {
        watched.remove(process)
        onEnd(process)
    }
}
