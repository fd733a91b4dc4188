import ProcessSupport
import BackgroundLedger
import CLinux
import Foundation
import UserUnits

/// Starts the app's agent if no agent is running. A start lock prevents two processes from starting two agents at the same time.
/// If a second agent is started without this lock, the second agent exits, because the first agent holds the agent's lock.
package struct AgentStarter: Sendable {
    package enum Result: Sendable, Equatable {
        case alreadyRunning
        case started
        /// `<APP>_NO_AGENT=1` is set, so the work waits in the ledger.
        case forbidden
        /// The program `background-agent` was not found. The value is the list of paths that were searched.
        case notFound([String])
        case failed(String)
    }

    let directories: AppDirectories
    private let given: [String: String]?

    /// - Parameter environment: the environment variables. If `nil`, the environment of this process is read when a variable is
    ///   needed.
    package init(directories: AppDirectories, environment: [String: String]? = nil) {
        self.directories = directories
        given = environment
    }

    /// The environment variables. This property copies the complete environment. The copy is too slow to read the property each
    /// time that an app submits work.
    private var environment: [String: String] { given ?? ThisProcess.environment }

    var isForbidden: Bool {
        if let given = given ?? ThisProcess.givenEnvironment { return given[forbiddingVariable] == "1" }
        return getenv(forbiddingVariable).map { String(cString: $0) } == "1"
    }

    package var isRunning: Bool { FileLock.isHeld(directories.agentLock) }

    package var forbiddingVariable: String { directories.forbiddingVariable }

    /// - Parameter isSure: `true` to wait until the agent has started (for the cost see ``comes(by:)``), `false` to request a
    ///   start without waiting.
    @discardableResult
    package func startIfNeeded(isSure: Bool = true) -> Result { start(asksManager: true, isSure: isSure) }

    /// - Parameter asksManager: `true` to start the agent through a user manager, if a user manager is running.
    private func start(asksManager: Bool, isSure: Bool) -> Result {
        if isRunning { return .alreadyRunning }
        if isForbidden { return .forbidden }
        // An agent that cannot take its lock would wait, and each command would start another waiting agent.
        if let obstacle = FileLock.obstacle(directories.agentLock) { return .failed(obstacle.description) }
        if asksManager, let units = startingUnits, units.ring() || units.startService(), !isSure || comes(by: units) {
            return .started
        }
        switch Self.findAgent(environment: environment) {
        case .success(let path): return startAlone(path)
        case .failure(let missing): return .notFound(missing.places)
        }
    }

    /// Waits until the user manager has started the agent, and returns whether an agent runs. The start may fail, for example if
    /// the user changed the unit, or if an earlier version of the app wrote the unit.
    ///
    /// Cost: the time until the agent has started, usually about 0.1 s, and at most some seconds.
    private func comes(by units: UserUnits) -> Bool {
        for _ in 0..<10 {
            for _ in 0..<60 {
                if isRunning { return true }
                usleep(5_000)
            }
            // The agent has not started yet, for example because the machine is busy. The user manager processes the start
            // request before this query, so the state is current.
            switch units.property("SubState", of: .service) {
            case nil, "dead", "failed": return false
            // If the agent was killed, the next start by the user manager can succeed. If the agent exited with an error, it
            // would exit again after the next start.
            case "auto-restart": return units.property("Result", of: .service) != "exit-code"
            case "condition", "start-pre", "start": break
            default: return true
            }
        }
        return true
    }

    /// The units with which a user manager starts the agent, or `nil` if the units are not installed or are masked.
    private var startingUnits: UserUnits? {
        let entry = AutostartEntry(directories: directories, environment: environment)
        return entry.isUserUnitInstalled && !entry.units.isMasked(.service) ? entry.units : nil
    }

    /// The results of an attempt to restart the agent with ``bringBack()``.
    package enum RestartResult: Sendable, Equatable {
        case runs
        case wasBroughtBack
        case leavesAtOnce
        case cannotStart(Result)
    }

    /// Starts an agent if no agent is running, and returns whether the agent keeps running. If no agent was running, the call
    /// takes up to three seconds. If a user manager cannot start an agent, the call takes up to three seconds more. For example,
    /// the user manager may not respond, or the unit may start another program.
    package func bringBack() async throws -> RestartResult {
        if isRunning { return .runs }
        for asksManager in startingUnits == nil ? [false] : [true, false] {
            let result = start(asksManager: asksManager, isSure: false)
            guard [.started, .alreadyRunning].contains(result) else { return .cannotStart(result) }
            if try await stays() { return .wasBroughtBack }
        }
        return .leavesAtOnce
    }

    private func stays() async throws -> Bool {
        let (clock, interval) = (ContinuousClock(), Duration.milliseconds(50))
        let (end, enough) = (clock.now + .seconds(3), 10)
        var consecutiveChecks = 0
        while clock.now < end, consecutiveChecks < enough {
            try await clock.sleep(for: interval)
            consecutiveChecks = isRunning ? consecutiveChecks + 1 : 0
        }
        return consecutiveChecks == enough
    }

    /// Finds the agent's program next to the app's executable, in `../libexec`, in `../bin` or in `PATH`, in this order. The
    /// environment variable `BACKGROUND_AGENT` can set the path directly.
    package static func findAgent(environment: [String: String]) -> Swift.Result<String, CompanionProgram.Missing> {
        CompanionProgram.find("background-agent", environment: environment, override: "BACKGROUND_AGENT")
    }

    /// Starts an agent if no other process is starting an agent. The new agent inherits the start lock from this process. Other
    /// processes therefore detect that an agent is starting, even before the new agent takes the agent's lock.
    private func startAlone(_ path: String) -> Result {
        let began = SuspendingClock.now
        var pause: UInt32 = 5_000
        repeat {
            do throws(StoreError) {
                if let turn = try FileLock.acquire(directories.agentStart) {
                    // Another process may have started an agent that already holds the agent's lock.
                    return isRunning ? .alreadyRunning : spawn(path, inheriting: turn)
                }
            } catch {
                // If the start lock cannot be created, for example on a read-only disk, the agent is started without this lock.
                return spawn(path, inheriting: -1)
            }
            usleep(pause)
            pause = min(2 * pause, 100_000)
            if isRunning { return .alreadyRunning }
        } while isWorthWaiting(since: began)
        return spawn(path, inheriting: -1)
    }

    /// Returns whether to wait until another process has started an agent. If a signal has stopped the other process, the start
    /// never completes.
    private func isWorthWaiting(since began: SuspendingClock.Instant) -> Bool {
        let waited = began.duration(to: .now)
        guard waited >= .seconds(1) else { return true }
        let holder = LockHolder.find(lock: directories.agentStart.path)
        if holder?.isStopped == true { return false }
        // On a busy machine a start takes a long time, so the wait is longer if the process that starts the agent still makes
        // progress.
        return waited < (holder?.isAtWork == true ? .seconds(30) : .seconds(5))
    }

    private func spawn(_ path: String, inheriting lock: borrowing FileLock) -> Result {
        spawn(path, inheriting: lock.descriptor)
    }

    private func spawn(_ path: String, inheriting descriptor: Int32) -> Result {
        // If a resource limit is too low, an agent could not work, and its lock would prevent the start of a working agent.
        if let obstacle = ResourceLimits.obstacle { return .failed("in this shell \(obstacle). Use another shell") }
        let log = openLog()
        defer { if log >= 0 { close(log) } }
        var child = ChildProcess(
            path: path, arguments: ["--app", directories.appIdentifier], environment: environment)
        child.standardOutput = log
        child.inherited = descriptor
        child.startsSession = true
        do throws(ChildProcess.Failure) {
            _ = try child.start()
            return .started
        } catch {
            return .failed(error.description)
        }
    }

    /// The path of the file with the agent's log messages, or a command that shows these messages.
    package var logPlace: String {
        let entry = AutostartEntry(directories: directories, environment: environment)
        guard entry.isUserUnitInstalled else { return directories.agentLog.path }
        return "journalctl --user -u \(entry.units.name(.service))"
    }

    /// Opens the log file of an agent that is started without a user manager. If the file is larger than 1 MiB, it is renamed and
    /// a new log file is created. Only one renamed log file is kept.
    private func openLog() -> Int32 {
        let path = directories.agentLog.path
        var information = stat()
        if stat(path, &information) == 0, information.st_size > 1 << 20 { rename(path, path + ".1") }
        return clinux_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }
}
