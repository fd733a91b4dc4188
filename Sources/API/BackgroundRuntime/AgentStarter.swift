import ProcessSupport
import BackgroundLedger
import CLinux
import Foundation
import UserUnits

/// Starts the app's agent when none runs. A lock keeps two processes from starting two agents at once. A second agent is
/// harmless: the agent finds the lock taken and exits.
package struct AgentStarter: Sendable {
    package enum Result: Sendable, Equatable {
        case alreadyRunning
        case started
        /// `<APP>_NO_AGENT=1` is set: the work waits in the ledger.
        case forbidden
        /// No `background-agent` was found in these places.
        case notFound([String])
        case failed(String)
    }

    let directories: AppDirectories
    private let given: [String: String]?

    /// - Parameter environment: `nil`: this process's own, read when it is needed.
    package init(directories: AppDirectories, environment: [String: String]? = nil) {
        self.directories = directories
        given = environment
    }

    /// A copy of all of it: not for what every submit asks.
    private var environment: [String: String] { given ?? ThisProcess.environment }

    var isForbidden: Bool {
        if let given = given ?? ThisProcess.givenEnvironment { return given[forbiddingVariable] == "1" }
        return getenv(forbiddingVariable).map { String(cString: $0) } == "1"
    }

    package var isRunning: Bool { FileLock.isHeld(directories.agentLock) }

    package var forbiddingVariable: String { directories.forbiddingVariable }

    /// - Parameter isSure: it is seen that an agent comes; see ``comes(by:)`` for what that costs. `false`: somebody is only asked for one.
    @discardableResult
    package func startIfNeeded(isSure: Bool = true) -> Result { start(asksManager: true, isSure: isSure) }

    /// - Parameter asksManager: a user manager starts it, where there is one.
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

    /// Whether an agent comes that a user manager was asked for. It may have a unit that somebody changed, or that an earlier version left, and
    /// that starts nothing.
    ///
    /// Cost: where one comes, what its start takes: about a tenth of a second, and at most some seconds.
    private func comes(by units: UserUnits) -> Bool {
        for _ in 0..<10 {
            for _ in 0..<60 {
                if isRunning { return true }
                usleep(5_000)
            }
            // A machine that is busy. The manager is told of the ring before it answers.
            switch units.property("SubState", of: .service) {
            case nil, "dead", "failed": return false
            // After a kill it comes; what ended by itself does so again.
            case "auto-restart": return units.property("Result", of: .service) != "exit-code"
            case "condition", "start-pre", "start": break
            default: return true
            }
        }
        return true
    }

    /// By which a user manager starts it; `nil`: there are none, or somebody keeps it from using them.
    private var startingUnits: UserUnits? {
        let entry = AutostartEntry(directories: directories, environment: environment)
        return entry.isUserUnitInstalled && !entry.units.isMasked(.service) ? entry.units : nil
    }

    /// Whether an agent stays, with one brought back where none ran.
    package enum Standing: Sendable, Equatable {
        case runs
        case wasBroughtBack
        case leavesAtOnce
        case cannotStart(Result)
    }

    /// Takes up to three seconds where no agent ran, and as long again where a user manager was asked in vain: it may stand still, or its unit
    /// start something else.
    package func bringBack() async throws -> Standing {
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
        var looksInARow = 0
        while clock.now < end, looksInARow < enough {
            try await clock.sleep(for: interval)
            looksInARow = isRunning ? looksInARow + 1 : 0
        }
        return looksInARow == enough
    }

    /// Beside the app's executable, in `../libexec` and `../bin`, then in `PATH`; `BACKGROUND_AGENT` names it outright.
    package static func findAgent(environment: [String: String]) -> Swift.Result<String, CompanionProgram.Missing> {
        CompanionProgram.find("background-agent", environment: environment, override: "BACKGROUND_AGENT")
    }

    /// Starts an agent unless another process is starting one. An agent holds the lock of its start from its first moment, so another starter
    /// notices the agent before the agent has its own lock.
    private func startAlone(_ path: String) -> Result {
        let began = SuspendingClock.now
        var pause: UInt32 = 5_000
        repeat {
            do throws(StoreError) {
                if let turn = try FileLock.acquire(directories.agentStart) {
                    // The agent of another starter may have its lock by now.
                    return isRunning ? .alreadyRunning : spawn(path, inheriting: turn)
                }
            } catch {
                // For example a disk that is read-only.
                return spawn(path, inheriting: -1)
            }
            usleep(pause)
            pause = min(2 * pause, 100_000)
            if isRunning { return .alreadyRunning }
        } while isWorthWaiting(since: began)
        return spawn(path, inheriting: -1)
    }

    /// Returns whether the start that another process began is waited for. A process that is stopped would be waited for without an end.
    private func isWorthWaiting(since began: SuspendingClock.Instant) -> Bool {
        let waited = began.duration(to: .now)
        guard waited >= .seconds(1) else { return true }
        let holder = LockHolder.find(lock: directories.agentStart.path)
        if holder?.isStopped == true { return false }
        // On a busy machine a start takes long.
        return waited < (holder?.isAtWork == true ? .seconds(30) : .seconds(5))
    }

    private func spawn(_ path: String, inheriting lock: borrowing FileLock) -> Result {
        spawn(path, inheriting: lock.descriptor)
    }

    private func spawn(_ path: String, inheriting descriptor: Int32) -> Result {
        // Such an agent could do nothing, and would keep other processes from starting one.
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

    /// Where what an agent that was started here has said can be read: a file, or the command that shows it.
    package var logPlace: String {
        let entry = AutostartEntry(directories: directories, environment: environment)
        guard entry.isUserUnitInstalled else { return directories.agentLog.path }
        return "journalctl --user -u \(entry.units.name(.service))"
    }

    /// The log of a detached agent, at most about 1 MiB and its predecessor.
    private func openLog() -> Int32 {
        let path = directories.agentLog.path
        var information = stat()
        if stat(path, &information) == 0, information.st_size > 1 << 20 { rename(path, path + ".1") }
        return clinux_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }
}
