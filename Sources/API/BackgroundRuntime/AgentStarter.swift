import ProcessSupport
import BackgroundLedger
import CLinux
import Foundation
import UserUnits

/// Starts the app's agent if no agent is running. A lock prevents two processes from starting two agents at once. A second agent
/// does no harm, because it exits if another agent has the agent's lock.
package struct AgentStarter: Sendable {
    package enum Result: Sendable, Equatable {
        case alreadyRunning
        case started
        /// `<APP>_NO_AGENT=1` is set, so the work waits in the ledger.
        case forbidden
        /// The program `background-agent` was not found. The value is the list of places that were searched.
        case notFound([String])
        case failed(String)
    }

    let directories: AppDirectories
    private let given: [String: String]?

    /// - Parameter environment: the environment. If `nil`, the environment of this process is read when it is needed.
    package init(directories: AppDirectories, environment: [String: String]? = nil) {
        self.directories = directories
        given = environment
    }

    /// Copies the complete environment. Do not use it on every submit.
    private var environment: [String: String] { given ?? ThisProcess.environment }

    var isForbidden: Bool {
        if let given = given ?? ThisProcess.givenEnvironment { return given[forbiddingVariable] == "1" }
        return getenv(forbiddingVariable).map { String(cString: $0) } == "1"
    }

    package var isRunning: Bool { FileLock.isHeld(directories.agentLock) }

    package var forbiddingVariable: String { directories.forbiddingVariable }

    /// - Parameter isSure: `true` to wait until the agent has started (see ``comes(by:)`` for the cost), `false` to only request
    ///   a start.
    @discardableResult
    package func startIfNeeded(isSure: Bool = true) -> Result { start(asksManager: true, isSure: isSure) }

    /// - Parameter asksManager: `true` to start the agent through a user manager, if a user manager is running.
    private func start(asksManager: Bool, isSure: Bool) -> Result {
        if isRunning { return .alreadyRunning }
        if isForbidden { return .forbidden }
        if asksManager, let units = startingUnits, units.ring() || units.startService(), !isSure || comes(by: units) {
            return .started
        }
        switch Self.findAgent(environment: environment) {
        case .success(let path): return startAlone(path)
        case .failure(let missing): return .notFound(missing.places)
        }
    }

    /// Waits for an agent whose start was requested from a user manager, and returns whether this agent runs. A unit that a user
    /// changed, or that an earlier version left, may start nothing.
    ///
    /// Cost: the time of the start, about a tenth of a second, and at most some seconds.
    private func comes(by units: UserUnits) -> Bool {
        for _ in 0..<10 {
            for _ in 0..<60 {
                if isRunning { return true }
                usleep(5_000)
            }
            // The agent has not started yet, for example on a busy machine. The user manager processes the start request before
            // this query.
            switch units.property("SubState", of: .service) {
            case nil, "dead", "failed": return false
            // After a kill, the user manager starts the unit again. A program that exited with an error will exit again.
            case "auto-restart": return units.property("Result", of: .service) != "exit-code"
            case "condition", "start-pre", "start": break
            default: return true
            }
        }
        return true
    }

    /// The units by which a user manager starts the agent, or `nil` if they are not installed or are masked.
    private var startingUnits: UserUnits? {
        let entry = AutostartEntry(directories: directories, environment: environment)
        return entry.isUserUnitInstalled && !entry.units.isMasked(.service) ? entry.units : nil
    }

    /// The states of the agent after ``bringBack()``.
    package enum RestartResult: Sendable, Equatable {
        case runs
        case wasBroughtBack
        case leavesAtOnce
        case cannotStart(Result)
    }

    /// Starts an agent if no agent is running, and returns whether the agent keeps running. If no agent was running, this takes
    /// up to three seconds. If a user manager did not start an agent, this takes up to three seconds more. The manager may hang,
    /// or the unit may start another program.
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

    /// Finds the agent's program: next to the app's executable, in `../libexec` and `../bin`, then in `PATH`. `BACKGROUND_AGENT`
    /// sets the path directly.
    package static func findAgent(environment: [String: String]) -> Swift.Result<String, CompanionProgram.Missing> {
        CompanionProgram.find("background-agent", environment: environment, override: "BACKGROUND_AGENT")
    }

    /// Starts an agent unless another process is starting one. An agent inherits the start lock, so the agent holds this lock
    /// from its first moment. Another process that starts an agent therefore detects the agent before the agent has the agent's
    /// lock.
    private func startAlone(_ path: String) -> Result {
        let began = SuspendingClock.now
        var pause: UInt32 = 5_000
        repeat {
            do throws(StoreError) {
                if let turn = try FileLock.acquire(directories.agentStart) {
                    // An agent that another process started may have its lock by now.
                    return isRunning ? .alreadyRunning : spawn(path, inheriting: turn)
                }
            } catch {
                // If the lock cannot be created, for example on a read-only disk, the agent is started without the lock.
                return spawn(path, inheriting: -1)
            }
            usleep(pause)
            pause = min(2 * pause, 100_000)
            if isRunning { return .alreadyRunning }
        } while isWorthWaiting(since: began)
        return spawn(path, inheriting: -1)
    }

    /// Returns whether to wait for the start that another process began. A stopped process would never finish its start.
    private func isWorthWaiting(since began: SuspendingClock.Instant) -> Bool {
        let waited = began.duration(to: .now)
        guard waited >= .seconds(1) else { return true }
        let holder = LockHolder.find(lock: directories.agentStart.path)
        if holder?.isStopped == true { return false }
        // On a busy machine a start takes long, so the wait is longer while the other process is working.
        return waited < (holder?.isAtWork == true ? .seconds(30) : .seconds(5))
    }

    private func spawn(_ path: String, inheriting lock: borrowing FileLock) -> Result {
        spawn(path, inheriting: lock.descriptor)
    }

    private func spawn(_ path: String, inheriting descriptor: Int32) -> Result {
        // With such a limit, an agent could do nothing, and would prevent other processes from starting an agent.
        if let obstacle = ResourceLimits.obstacle { return .failed("in this shell \(obstacle): use another shell") }
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

    /// The place of the agent's log: a file, or the command that shows the log.
    package var logPlace: String {
        let entry = AutostartEntry(directories: directories, environment: environment)
        guard entry.isUserUnitInstalled else { return directories.agentLog.path }
        return "journalctl --user -u \(entry.units.name(.service))"
    }

    /// Opens the log of a detached agent. The log has at most about 1 MiB. One earlier log is also kept.
    private func openLog() -> Int32 {
        let path = directories.agentLog.path
        var information = stat()
        if stat(path, &information) == 0, information.st_size > 1 << 20 { rename(path, path + ".1") }
        return clinux_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }
}
