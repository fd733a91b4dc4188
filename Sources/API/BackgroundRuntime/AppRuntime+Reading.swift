import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport

/// Reads the ledger for the app and its commands, which make decisions with the results.
extension AppRuntime {
    /// The time limit for reading a list, for example the tasks of a session. The limit is long, because an app that does not
    /// find its work in the list begins the work again.
    package static let listReadTimeout = Duration.seconds(60)
    /// The time limit for all other reads, and for a write that reserves identifiers for new tasks.
    package static let patience = Duration.seconds(5)

    private var ledgerPatience: LedgerRetry { part { LedgerRetry() } }

    /// Calls a closure with the ledger, and tries again if the closure fails temporarily.
    package func patiently<Value>(
        for patience: Duration = patience, _ body: (Ledger) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        // On a test host nothing is retried, because real time does not pass there.
        try ledgerPatience.run(for: isHosted ? .zero : patience) { () throws(StoreError) in try body(try ledger()) }
    }

    /// Reads the ledger, and tries again if the read fails temporarily.
    package func readWithRetry<Value>(
        for patience: Duration = patience, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        try patiently(for: patience) { (ledger) throws(StoreError) in try ledger.read(body) }
    }

    /// Reads the ledger, and tries again if the read fails temporarily. If the read still fails after the time limit, the failure
    /// is printed on standard error.
    ///
    /// - Parameter name: The subject of the error message, for example "the pending requests".
    /// - Returns: `nil` if the ledger cannot be read.
    package func read<Value>(
        _ name: String, for patience: Duration = patience, _ body: (LedgerTransaction) throws -> Value
    ) -> Value? {
        do throws(StoreError) {
            return try readWithRetry(for: patience, body)
        } catch {
            if ledgerPatience.isFirstReport(of: name) { report("\(name) cannot be read: \(error)") }
            return nil
        }
    }

    /// `true` if a ledger exists. Check this property before a read, because a read must not create the ledger.
    private var hasLedger: Bool { opened.withLock { $0 != nil } || !PathStatus.at(directories.ledger.path).isAbsent }

    /// `true` if a command of this app has recorded a desktop session in the ledger. The agent shows notifications in this
    /// session.
    package var knowsDesktop: Bool {
        read("the desktop session") {
            try $0.fact(.sessionEnvironment)?.variables["DBUS_SESSION_BUS_ADDRESS"] != nil
        } ?? false
    }

    /// The conditions that the agent observes, or `nil` if no agent runs or the conditions are not known.
    ///
    /// Cost: one read of the ledger.
    package var observedConditions: DesktopConditions? {
        guard isAgentRunning else { return nil }
        return read("the state of network and power") { try $0.fact(.conditions)?.conditions } ?? nil
    }

    /// `true` if the ledger has unfinished work, or cannot be read now. If the ledger cannot be read, an agent may be started
    /// although no work exists. The unnecessary start does no harm, because an agent without work exits.
    package var hasWorkLeft: Bool {
        guard hasLedger, !hasLedgerInMemory else { return false }
        do throws(StoreError) {
            return try ledger().read { try $0.hasUnfinishedWork() }
        } catch {
            return error.isPassing
        }
    }

    /// The maximum number of seconds that a process waits for running HTTP requests after its other work is complete.
    package var continuation: Double {
        if let wanted = wantedSettings.withLock({ $0 }) { return wanted.continuation }
        guard isHosted || hasLedger, let settings = read("the settings", { try $0.fact(.settings) }) else {
            return AgentSettings().continuation
        }
        return (settings ?? AgentSettings()).continuation
    }
}

/// Replaces the ledger with a ledger in memory, for commands that only show data.
extension AppRuntime {
    /// If the ledger does not exist, uses an empty ledger in memory, and creates no file. If the folder cannot be read, the
    /// method does nothing.
    package func replaceMissingLedger() {
        guard testHost == nil, access(directories.ledger.path, F_OK) != 0, FileFault(errno) == .missing,
            let empty = try? Ledger(inMemory: directories, makesFolders: false)
        else { return }
        opened.withLock { $0 = $0 ?? Opened(ledger: empty, isIntroduced: true) }
    }

    /// If the ledger cannot be written, copies the ledger to memory, uses the copy, and prints a message on standard error.
    package func copyUnwritableLedger() {
        guard testHost == nil, !PathStatus.at(directories.ledger.path).isAbsent else { return }
        do throws(StoreError) {
            _ = try ledger()
        } catch {
            switch error {
            case .readOnly, .cannotCreate, .unsafeFolder: break
            case .notADatabase, .newerVersion, .busy, .diskFull, .troubled, .failed, .replaced, .unsaved, .unusableFolder: return
            }
            guard let copy = try? Ledger(copyOf: directories) else { return }
            opened.withLock { $0 = $0 ?? Opened(ledger: copy, isIntroduced: true) }
            reportCopy(because: error)
        }
    }

    package func reportCopy(because error: any Error) {
        report("\(Self.programName): \(error). The command shows the stored state, and changes nothing.")
    }

    /// `true` if the ledger of this process is in memory, because the ledger on the disk does not exist or cannot be written.
    package var hasLedgerInMemory: Bool { opened.withLock { $0?.ledger.isInMemory == true } }
}

extension AppRuntime {
    /// The facts about this machine, and the facts that this app's agent has recorded. Cost: about a dozen file checks, and one
    /// read of the ledger if it exists.
    package var desktopFacts: DesktopFacts {
        if isHosted { return .onTestHost }
        // The ledger is read only if it exists, because a read must not create the ledger.
        let isThere = !PathStatus.at(directories.ledger.path).isAbsent
        let recorded = isThere ? read("the agent's data about this desktop") { try DesktopFacts.Recorded($0) } : nil
        return DesktopFacts(
            directories, environment: ThisProcess.environment, recorded: recorded ?? DesktopFacts.Recorded())
    }
}
