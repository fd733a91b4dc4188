import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization

/// The access of this process to the ledger and the agent. A process has one runtime. Every change is one durable transaction.
/// After the transaction, the runtime starts an agent if no agent is running.
package final class AppRuntime: Sendable {
    /// The runtime of this process, or of its test host while a test drives the app.
    package static var shared: AppRuntime { LaunchContext.own?.runtime ?? ofBlock ?? hosted.withLock { $0 } ?? process }

    /// The runtime for a closure that was created in the simulated process of a test. Such a closure may run after the test has
    /// ended.
    @TaskLocal static var ofBlock: AppRuntime?

    /// The runtime of the test to which the current work belongs, or the runtime of the process if the work belongs to no test.
    package static var ofWork: AppRuntime { isOnTestHost ? shared : process }
    package static var ofProcess: AppRuntime { process }

    private static let process = AppRuntime()
    private static let hosted = Mutex<AppRuntime?>(nil)

    package let manifest: AppManifest
    package let directories: AppDirectories
    let opened = Mutex<Opened?>(nil)
    private let failedStart = Mutex<(reason: String, isAfterCommit: Bool)?>(nil)
    private let watch = Mutex<DatabaseWatch?>(nil)
    let wantedSettings = Mutex<AgentSettings?>(nil)
    let testHost: TestHost?
    let waits = HostedWaits()
    private let isClosed = Mutex(false)
    /// The lock that guards the parts. The lock is recursive, because creating a part may create another part.
    private let partsLock = NSRecursiveLock()
    nonisolated(unsafe) private var parts: [ObjectIdentifier: AnyObject] = [:]

    /// The ledger of this process.
    struct Opened {
        let ledger: Ledger
        /// `true` if the ledger contains the path of the app's program and the environment of the user's session.
        var isIntroduced: Bool
    }

    private init() {
        manifest = AppManifest.current
        directories = AppDirectories(appIdentifier: manifest.appIdentifier)
        testHost = nil
        DefaultsWriting.writeAtExit()
    }

    private init(_ testHost: TestHost) {
        manifest = testHost.manifest
        directories = testHost.ledger.directories
        self.testHost = testHost
    }

    // MARK: On a test host

    /// Creates a runtime for this test host. ``shared`` returns this runtime until the next test.
    package static func enter(_ testHost: TestHost) -> AppRuntime {
        let runtime = AppRuntime(testHost)
        // Sets the app's identity in Foundation.
        _ = AppManifest.current
        hosted.withLock { $0 = runtime }
        return runtime
    }

    /// Ends the test. Work of the test that is still running cannot access this test host or the user's ledger any more.
    package func close() { isClosed.withLock { $0 = true } }

    package var isHosted: Bool { testHost != nil }

    /// On a test host, reports that work is running, so that the test host waits for the work.
    package func reportActivity() { testHost?.waitsChanged() }

    /// `true` if the current work is known to be part of a test on a test host. `false`, for example, for a callback on a queue.
    package static var isOnTestHost: Bool { LaunchContext.own != nil || isTestHosted }
    @TaskLocal package static var isTestHosted = false

    /// Returns whether this launch waits for a change of the ledger and has processed all commits.
    package func isWaiting(launch: Int64) -> Bool {
        waits.isWaiting(launch: launch, commits: testHost?.ledger.commitCount ?? 0)
    }

    /// Removes the objects of a simulated process from all parts of the runtime, because this process has ended.
    package func processEnded(launch: Int64) {
        for part in partsLock.withLock({ Array(parts.values) }) { (part as? any ProcessBound)?.processEnded(launch: launch) }
    }

    /// Returns the runtime's single object of this type, and creates it at the first call.
    package func part<Part: AnyObject & Sendable>(_ make: () -> Part) -> Part {
        partsLock.withLock {
            if let known = parts[ObjectIdentifier(Part.self)] as? Part { return known }
            let made = make()
            parts[ObjectIdentifier(Part.self)] = made
            return made
        }
    }

    // MARK: This process

    /// The current time. On a test host, this is virtual time.
    package var now: Date { testHost?.now() ?? ThisProcess.now }

    /// The user's time zone.
    package var zone: TimeZone { testHost?.zone() ?? ThisProcess.zone }

    /// The identity of this process.
    package var identity: ProcessIdentity { LaunchContext.current?.identity ?? HostedCommand.current?.identity ?? .current }

    package func isAlive(_ process: ProcessIdentity) -> Bool { testHost?.isAlive(process) ?? process.isAlive(in: directories) }

    /// Prints a line on standard error, except on a test host.
    package func report(_ line: String) {
        if testHost == nil { StandardError.write(line + "\n") }
    }

    /// Releases the disk space that is reserved for recording ended work. Returns `true` if space was released.
    package func releaseDiskReserve() -> Bool { testHost == nil && DiskReserve.giveUp(directories) }

    // MARK: The agent

    /// Starts an agent if no agent is running.
    @discardableResult
    package func startAgent() -> AgentStarter.Result {
        // An agent could not read work that is only in memory.
        if hasLedgerInMemory { return .forbidden }
        let starter = AgentStarter(directories: directories)
        guard let testHost else { return reportStart(starter.startIfNeeded(), afterCommit: true) }
        if !testHost.hasAgent(), starter.isForbidden { return .forbidden }
        testHost.agentIsNeeded()
        return .alreadyRunning
    }

    /// `true` if this process queued work and no agent could be started for that work.
    package var lacksAgent: Bool { failedStart.withLock { $0?.isAfterCommit == true } }

    /// Prints on standard error that no agent could be started. The message is printed once for each reason.
    private func reportStart(_ result: AgentStarter.Result, afterCommit: Bool) -> AgentStarter.Result {
        let failure: String? =
            switch result {
            case .alreadyRunning, .started, .forbidden: nil
            case .notFound: "background-agent was not found"
            case .failed(let reason): reason
            }
        let isUnproven = result == .started && !afterCommit
        guard failure == nil || hasWorkLeft, !isUnproven else { return result }
        let isNew = failedStart.withLock { known in
            let before = known
            known = failure.map { (reason: $0, isAfterCommit: afterCommit || before?.isAfterCommit == true) }
            return before?.reason != failure
        }
        if isNew, let failure {
            report("The agent could not be started: \(failure). Queued work waits for the next command or login.")
        }
        return result
    }

    /// The error that the agent's program was not found. `nil` if an agent is running, can be started, or is forbidden.
    ///
    /// Cost: one check of a lock if an agent is running.
    package var missingAgent: CompanionProgram.Missing? {
        guard testHost == nil else { return nil }
        let starter = AgentStarter(directories: directories)
        guard !starter.isRunning, !starter.isForbidden else { return nil }
        let environment = ThisProcess.environment
        guard !AutostartEntry(directories: directories, environment: environment).isUserUnitInstalled,
            case .failure(let missing) = AgentStarter.findAgent(environment: environment)
        else { return nil }
        return missing
    }

    package var isAgentRunning: Bool { testHost?.hasAgent() ?? AgentStarter(directories: directories).isRunning }

    /// Returns the ledger, and opens it at the first call. If the ledger cannot be opened, the next call tries again.
    package func ledger() throws(StoreError) -> Ledger {
        if let testHost {
            guard !isClosed.withLock({ $0 }), LaunchContext.own?.isDead != true else {
                let reason = "this process was killed, or the test has ended"
                throw .failed(path: testHost.ledger.directories.ledger.path, reason: reason)
            }
            return testHost.ledger
        }
        let result: Result<Ledger, StoreError> = opened.withLock { opened in
            if let opened { return .success(opened.ledger) }
            do throws(StoreError) {
                let ledger = try Ledger(directories)
                opened = Opened(ledger: ledger, isIntroduced: try isIntroduced(to: ledger, waits: false))
                return .success(ledger)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Writes the app's `UserDefaults` to the disk. On a test host, the method does nothing.
    func writeDefaults() { if testHost == nil { DefaultsWriting.write() } }

    /// Runs one durable transaction. The app's `UserDefaults` are written to the disk first.
    package func write<Value>(
        usesReserve: Bool = true, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        let ledger = try ledger()
        writeDefaults()
        try introduce()
        return try ledger.write(usesReserve: usesReserve, body)
    }

    /// Opens the ledger, and records the app's program and the user's session in it.
    ///
    /// - Throws: an error with the reason why the ledger cannot be used, and what to do.
    package func introduceApp() throws {
        _ = try ledger()
        try introduce()
    }

    /// Records the app's program and the user's session if an earlier attempt failed.
    private func introduce() throws(StoreError) {
        let trouble: StoreError? = opened.withLock { opened in
            guard let known = opened, !known.isIntroduced else { return nil }
            do throws(StoreError) {
                opened?.isIntroduced = try isIntroduced(to: known.ledger, waits: true)
                return nil
            } catch {
                return error
            }
        }
        if let trouble { throw trouble }
    }

    /// Starts an agent if the ledger has unfinished work. The method also repairs the login entry, because the programs may have
    /// been moved.
    package func startAgentIfWorkIsLeft() {
        guard hasWorkLeft else { return }
        if isHosted {
            startAgent()
        } else {
            _ = reportStart(AgentStarter(directories: directories).startIfNeeded(isSure: false), afterCommit: false)
            installLoginEntry()
        }
    }

    /// Applies the settings of this app's agent. The settings are stored at the first use of the ledger.
    package func configure(_ settings: AgentSettings) throws(StoreError) {
        if let testHost {
            try testHost.ledger.write { try $0.setFact(.settings, settings) }
            return
        }
        wantedSettings.withLock { $0 = settings }
        opened.withLock { if $0?.ledger.isInMemory == false { $0?.isIntroduced = false } }
        try introduce()
    }

    /// Records the app's program and the user's session, if the ledger does not contain them.
    ///
    /// - Parameter waits: `true` to wait while another process writes, and to release reserved disk space if necessary.
    /// - Returns: `true` if the ledger contains these values now. The result is `false` only if `waits` is `false`.
    private func isIntroduced(to ledger: Ledger, waits: Bool) throws(StoreError) -> Bool {
        let app = AppRecord(
            executable: manifest.launchedExecutable.path, arguments: [], version: manifest.version,
            displayName: manifest.displayName, variables: manifest.launchVariables)
        let environment = SessionEnvironment.current
        let settings = wantedSettings.withLock { $0 }
        // A launched process does not record the session, because its environment is the agent's environment. A process of the
        // user manager does not record the session, because it belongs to no session.
        let knowsSession =
            LaunchContext.current == nil && !ThisProcess.isUserManagers
            && environment.variables["DBUS_SESSION_BUS_ADDRESS"] != nil
        let isKnown = try ledger.read { transaction in
            try transaction.fact(.app) == app && (settings == nil || transaction.fact(.settings) == settings)
                && (!knowsSession || transaction.fact(.sessionEnvironment) == environment)
        }
        guard !isKnown else { return true }
        func say(_ transaction: LedgerTransaction) throws {
            try transaction.setFact(.app, app)
            if let settings { try transaction.setFact(.settings, settings) }
            if knowsSession { try transaction.setFact(.sessionEnvironment, environment) }
        }
        if waits {
            try ledger.write(say)
            return true
        }
        do throws(StoreError) {
            try ledger.writeIfFree(say)
            return true
        } catch {
            guard error.isPassing else { throw error }
            return false
        }
    }

    /// Installs the agent's login entry if no entry exists, or if the entry starts a program that does not exist any more. With
    /// the entry, accepted work continues after a reboot. In a process that the agent launched, this method does nothing. If the
    /// entry exists, the cost is a few file checks.
    package func installLoginEntry() {
        guard LaunchContext.current == nil, testHost == nil else { return }
        let environment = ThisProcess.environment
        let entry = AutostartEntry(directories: directories, environment: environment)
        guard case .success(let agent) = AgentStarter.findAgent(environment: environment) else { return }
        switch entry.standing(agent: agent) {
        case .asItShouldBe, .starts, .isNotEnabled, .isMasked: return
        case nil, .startsNothing, .lacksSocket: break
        }
        do {
            _ = try entry.install(agent: agent, displayName: manifest.displayName)
        } catch {
            StandardError.write("the agent will not start at the next login: \(error)\n")
        }
    }

    /// Runs one durable transaction, and then starts an agent if no agent is running.
    ///
    /// - Parameters:
    ///   - usesReserve: `true` to release the reserved disk space if the disk is full. Use `false` for new work, because the
    ///     reserved space is for recording ended work.
    ///   - beforeStart: called after the transaction and before the start of the agent.
    @discardableResult
    package func commit<Value>(
        usesReserve: Bool = true, beforeStart: (Value) -> Void = { _ in }, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        try UnsavedWork.current.run { () throws(StoreError) -> Value in
            // Writes that failed earlier are retried first, to keep the order. For example, a cancellation that is written late
            // must not remove a request that the app submitted after the cancellation.
            if let error = DurableWrites.shared.flush() { throw error }
            let value = try write(usesReserve: usesReserve, body)
            beforeStart(value)
            startAgent()
            return value
        }
    }

    /// Calls an action for every commit to the ledger by any process, including this process, until the token is cancelled.
    package func onCommit(_ action: @escaping @Sendable () -> Void) throws(StoreError) -> DatabaseWatch.Token {
        let ledger = try ledger()
        if testHost != nil {
            let number = ledger.onCommit(action)
            return DatabaseWatch.Token { ledger.forget(number) }
        }
        let shared = watch.withLock { watch in
            let shared = watch ?? DatabaseWatch(database: directories.ledger.path)
            watch = shared
            return shared
        }
        return shared.add(action)
    }
}
