import BackgroundLedger
import Foundation
import Synchronization

/// This process's way to its ledger and its agent. One per process; everything it does is one durable transaction
/// followed by making sure that an agent is there to hear of it.
public final class AppRuntime: Sendable {
    public static let shared = AppRuntime()

    public let manifest: AppManifest
    public let directories: AppDirectories
    private let opened = Mutex<Ledger?>(nil)
    private let watch = Mutex<LedgerWatch?>(nil)
    private let wantedSettings = Mutex<AgentSettings?>(nil)

    private init() {
        manifest = AppManifest.current
        directories = AppDirectories(appIdentifier: manifest.appIdentifier)
    }

    /// The ledger, opened at first use; a failed opening is tried again at the next use.
    public func ledger() throws(LedgerError) -> Ledger {
        let result: Result<Ledger, LedgerError> = opened.withLock { opened in
            if let opened { return .success(opened) }
            do throws(LedgerError) {
                let ledger = try Ledger(directories)
                try introduce(to: ledger)
                opened = ledger
                return .success(ledger)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Sets what this app asks of its agent; durable with the first use of the ledger.
    public func configure(_ settings: AgentSettings) throws(LedgerError) {
        wantedSettings.withLock { $0 = settings }
        if let ledger = opened.withLock({ $0 }) { try introduce(to: ledger) }
    }

    /// Says where this app is to be launched and where the person's session is.
    private func introduce(to ledger: Ledger) throws(LedgerError) {
        let app = AppRecord(
            executable: manifest.launchedExecutable.path, arguments: [], version: manifest.version,
            displayName: manifest.displayName)
        let environment = SessionEnvironment.current
        let settings = wantedSettings.withLock { $0 }
        // A launched process has its environment from the agent: it knows nothing better.
        let knowsSession = LaunchContext.current == nil && environment.variables["DBUS_SESSION_BUS_ADDRESS"] != nil
        let isKnown = try ledger.read { transaction in
            try transaction.fact(.app) == app && (settings == nil || transaction.fact(.settings) == settings)
                && (!knowsSession || transaction.fact(.sessionEnvironment) == environment)
        }
        guard !isKnown else { return }
        try ledger.write { transaction in
            try transaction.setFact(.app, app)
            if let settings { try transaction.setFact(.settings, settings) }
            if knowsSession { try transaction.setFact(.sessionEnvironment, environment) }
        }
    }

    /// Makes sure that an agent comes back at the next login, where nothing does that yet: what was accepted survives a
    /// reboot. A launched process has it already. Cost: two looks at the disk, if the entry is there.
    public func comeBackAtLogin() {
        guard LaunchContext.current == nil else { return }
        let environment = ProcessInfo.processInfo.environment
        let entry = AutostartEntry(directories: directories, environment: environment)
        guard entry.installed == nil, case .success(let agent) = AgentStarter.findAgent(environment: environment) else { return }
        do {
            _ = try entry.install(agent: agent, displayName: manifest.displayName)
        } catch {
            FileHandle.standardError.write(Data("the agent will not come back at the next login: \(error)\n".utf8))
        }
    }

    /// One durable transaction; then an agent is started if none runs.
    ///
    /// - Parameter beforeStart: called between the two.
    @discardableResult
    public func commit<Value>(
        beforeStart: (Value) -> Void = { _ in }, _ body: (LedgerTransaction) throws -> Value
    ) throws(LedgerError) -> Value {
        let value = try ledger().write(body)
        beforeStart(value)
        AgentStarter(directories: directories).startIfNeeded()
        return value
    }

    /// Rings for every commit to the ledger by any process, this one included, until the returned watch is cancelled.
    public func onCommit(_ action: @escaping @Sendable () -> Void) throws(LedgerError) -> LedgerWatch.Token {
        _ = try ledger()
        let result: Result<LedgerWatch, LedgerError> = watch.withLock { watch in
            if let watch { return .success(watch) }
            do throws(LedgerError) {
                let made = try LedgerWatch(directories)
                watch = made
                return .success(made)
            } catch {
                return .failure(error)
            }
        }
        return try result.get().add(action)
    }

    /// Waits until `condition`, asked once now and again after every commit, gives a value.
    ///
    /// - Throws: what `condition` throws, or `CancellationError` when the awaiting task is cancelled.
    public func wait<Value: Sendable>(
        until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value {
        let ledger = try ledger()
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = try onCommit { continuation.yield() }
        defer { token.cancel() }
        // Watching began before the first look: a commit in between rings.
        continuation.yield()
        for await _ in rings {
            if let value = try ledger.readAfterRing(condition) { return value }
        }
        throw CancellationError()
    }
}
