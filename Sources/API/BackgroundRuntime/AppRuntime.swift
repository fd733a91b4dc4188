import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization

/// This process's way to its ledger and its agent. One per process; everything it does is one durable transaction
/// followed by making sure that an agent is there to hear of it.
package final class AppRuntime: Sendable {
    /// That of this process; while a test drives the app, that of its test host.
    package static var shared: AppRuntime { LaunchContext.own?.runtime ?? ofBlock ?? hosted.withLock { $0 } ?? process }

    /// The runtime of a block that was made on a test host. The block may run after its test, beside the next one.
    @TaskLocal static var ofBlock: AppRuntime?

    /// Of the work that asks: a test's where it is known to be part of one, else the process's. For what is kept between tests, and by a clock that
    /// tests do not set.
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
    private let waits = HostedWaits()
    private let isClosed = Mutex(false)
    /// What there is one of: recursive, as parts are made of parts.
    private let partsLock = NSRecursiveLock()
    nonisolated(unsafe) private var parts: [ObjectIdentifier: AnyObject] = [:]

    /// The ledger of this process.
    struct Opened {
        let ledger: Ledger
        /// It says where this app is to be launched, and where the person's session is. Who only reads does not wait to write that.
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

    /// From here on ``shared`` is this test host's.
    package static func enter(_ testHost: TestHost) -> AppRuntime {
        let runtime = AppRuntime(testHost)
        // Foundation learns who this process is.
        _ = AppManifest.current
        hosted.withLock { $0 = runtime }
        return runtime
    }

    /// The test is over. What still runs of it reaches nothing any more, neither this test host nor the person's own ledger.
    package func close() { isClosed.withLock { $0 = true } }

    package var isHosted: Bool { testHost != nil }

    /// On a test host: something goes on, and is waited for.
    package func noteActivity() { testHost?.waitsChanged() }

    /// Whether the work that asks is part of the test that plays on the test host. What is not may be a callback of it, on a queue, or
    /// another test of the same process.
    package static var isOnTestHost: Bool { LaunchContext.own != nil || isTestHosted }
    @TaskLocal package static var isTestHosted = false

    /// This launch awaits something of the ledger, and has seen all of it.
    package func isWaiting(launch: Int64) -> Bool {
        waits.isWaiting(launch: launch, commits: testHost?.ledger.commitCount ?? 0)
    }

    /// Lets go of everything that went with a process.
    package func processEnded(launch: Int64) {
        for part in partsLock.withLock({ Array(parts.values) }) { (part as? any ProcessBound)?.processEnded(launch: launch) }
    }

    /// The one object of a kind that this runtime has.
    package func part<Part: AnyObject & Sendable>(_ make: () -> Part) -> Part {
        partsLock.withLock {
            if let known = parts[ObjectIdentifier(Part.self)] as? Part { return known }
            let made = make()
            parts[ObjectIdentifier(Part.self)] = made
            return made
        }
    }

    // MARK: This process

    /// The time, as this process sees it.
    package var now: Date { testHost?.now() ?? ThisProcess.now }

    /// The zone that the person is in.
    package var zone: TimeZone { testHost?.zone() ?? ThisProcess.zone }

    /// Who this is, among processes.
    package var identity: ProcessIdentity { LaunchContext.current?.identity ?? HostedCommand.current?.identity ?? .current }

    package func isAlive(_ process: ProcessIdentity) -> Bool { testHost?.isAlive(process) ?? process.isAlive(in: directories) }

    /// For whoever reads standard error. The process of a test that is over, or was killed in it, has nothing to say.
    package func report(_ line: String) {
        if testHost == nil { StandardError.write(line + "\n") }
    }

    /// Gives up what is reserved on the disk for ending things. `true`: there is more room now.
    package func giveUpReserve() -> Bool { testHost == nil && DiskReserve.giveUp(directories) }

    // MARK: The agent

    /// Makes sure that an agent is there.
    @discardableResult
    package func startAgent() -> AgentStarter.Result {
        // An agent would not find there what is in memory.
        if hasLedgerInMemory { return .forbidden }
        let starter = AgentStarter(directories: directories)
        guard let testHost else { return reportStart(starter.startIfNeeded(), afterCommit: true) }
        if !testHost.hasAgent(), starter.isForbidden { return .forbidden }
        testHost.agentIsNeeded()
        return .alreadyRunning
    }

    /// `true` if this process queued work and no agent could be started for that work.
    package var lacksAgent: Bool { failedStart.withLock { $0?.isAfterCommit == true } }

    /// Reports on standard error that no agent could be started, once for each reason.
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
            report("The agent could not be started: \(failure). Queued work waits until the next command or login starts one.")
        }
        return result
    }

    /// The program that would have to be installed for anything to happen. `nil`: an agent runs, can be started, or may not be, on purpose.
    ///
    /// Cost: one look at a lock while an agent runs.
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

    /// The ledger, opened at first use; a failed opening is tried again at the next use.
    package func ledger() throws(StoreError) -> Ledger {
        if let testHost {
            guard !isClosed.withLock({ $0 }), LaunchContext.own?.isDead != true else {
                throw .failed(path: testHost.ledger.directories.ledger.path, reason: "this process is dead, or its test is over")
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

    /// What the app set in its defaults so far outlives this process. On a test host they are those of the tests' own process, and stay in memory.
    func writeDefaults() { if testHost == nil { DefaultsWriting.write() } }

    /// One durable transaction. What the app set in its defaults before it is on the disk first.
    package func write<Value>(
        usesReserve: Bool = true, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        let ledger = try ledger()
        writeDefaults()
        try introduce()
        return try ledger.write(usesReserve: usesReserve, body)
    }

    /// Opens the ledger, and says in it where this app is to be launched and where the person's session is.
    ///
    /// - Throws: why the ledger cannot be used, and what helps.
    package func introduceApp() throws {
        _ = try ledger()
        try introduce()
    }

    /// Says so where that could not be said yet.
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

    /// Starts an agent that is missing, as long as work is left, and sees to the next login: the programs may have been moved since.
    package func startAgentIfWorkIsLeft() {
        guard hasWorkLeft else { return }
        if isHosted {
            startAgent()
        } else {
            _ = reportStart(AgentStarter(directories: directories).startIfNeeded(isSure: false), afterCommit: false)
            comeBackAtLogin()
        }
    }

    /// Sets what this app asks of its agent; durable with the first use of the ledger.
    package func configure(_ settings: AgentSettings) throws(StoreError) {
        if let testHost {
            try testHost.ledger.write { try $0.setFact(.settings, settings) }
            return
        }
        wantedSettings.withLock { $0 = settings }
        opened.withLock { if $0?.ledger.isInMemory == false { $0?.isIntroduced = false } }
        try introduce()
    }

    /// Says where this app is to be launched and where the person's session is, if the ledger does not know.
    ///
    /// - Parameter waits: for another process that writes, and for room on the disk.
    /// - Returns: whether the ledger knows it now; without waiting only.
    private func isIntroduced(to ledger: Ledger, waits: Bool) throws(StoreError) -> Bool {
        let app = AppRecord(
            executable: manifest.launchedExecutable.path, arguments: [], version: manifest.version,
            displayName: manifest.displayName, variables: manifest.launchVariables)
        let environment = SessionEnvironment.current
        let settings = wantedSettings.withLock { $0 }
        // A launched process has its environment from the agent, and the user manager's own is no person's: they know nothing better.
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

    /// Makes sure that an agent comes back at the next login, where nothing does that yet, or an entry starts what is gone: what was
    /// accepted survives a reboot. A launched process has it already. Cost: a few looks at the disk, if the entry is there.
    package func comeBackAtLogin() {
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
            StandardError.write("the agent will not come back at the next login: \(error)\n")
        }
    }

    /// One durable transaction; then an agent is started if none runs.
    ///
    /// - Parameters:
    ///   - usesReserve: on a full disk the reserve is given up for it. Not for new work: it is for what ends some.
    ///   - beforeStart: called between the two.
    @discardableResult
    package func commit<Value>(
        usesReserve: Bool = true, beforeStart: (Value) -> Void = { _ in }, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        try Beginnings.current.run { () throws(StoreError) -> Value in
            // A cancel that still waits must not take away what is asked for after it.
            if let error = DurableWrites.shared.settle() { throw error }
            let value = try write(usesReserve: usesReserve, body)
            beforeStart(value)
            startAgent()
            return value
        }
    }

    /// Rings for every commit to the ledger by any process, this one included, until the returned watch is cancelled.
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

    /// How long a wait goes on while the ledger cannot be looked at: another process may stand still within its transaction.
    private static let longestTrouble: Duration = .seconds(60)

    /// Waits until `condition`, asked once now and again after every commit, gives a value.
    ///
    /// - Parameters:
    ///   - looked: called after each look, when nobody waits for the ledger any more: the place for what may take long.
    /// - Throws: what `condition` throws, what the ledger says when it could not be looked at for a minute, or `CancellationError` when the
    ///   awaiting task is cancelled.
    package func wait<Value: Sendable>(
        looked: @escaping @Sendable () -> Void = {}, until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value {
        let ledger = try ledger()
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = try onCommit { continuation.yield() }
        defer { token.cancel() }
        // Watching began before the first look: a commit in between rings.
        continuation.yield()
        guard let testHost else {
            let retry = ReadRetry()
            for await _ in rings {
                do throws(StoreError) {
                    let value = try ledger.readAfterRing(condition)
                    looked()
                    if let value { return value }
                    retry.succeeded()
                } catch {
                    // Another ledger lies there now: this one rings no more.
                    if case .replaced = error { throw error }
                    guard error.isPassing, retry.failed(again: { continuation.yield() }) < Self.longestTrouble else {
                        throw error
                    }
                }
            }
            throw CancellationError()
        }
        let wait = waits.begin(launch: LaunchContext.currentNumber)
        defer {
            waits.end(wait)
            testHost.waitsChanged()
        }
        return try await withTaskCancellationHandler {
            for await _ in rings {
                let commits = ledger.commitCount
                let value = try ledger.readAfterRing(condition)
                looked()
                if let value { return value }
                waits.looked(wait, at: commits)
                testHost.waitsChanged()
            }
            throw CancellationError()
        } onCancel: {
            // The work counts as running before its thread runs, so that virtual time does not pass.
            waits.wake(wait)
            testHost.waitsChanged()
        }
    }
}
