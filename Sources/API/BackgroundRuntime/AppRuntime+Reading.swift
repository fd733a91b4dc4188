import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport

/// Reads whose answer the app or its commands act upon.
extension AppRuntime {
    /// The time limit of reads of a list. An app that does not find its work in a list begins the work again.
    package static let patienceForLists = Duration.seconds(60)
    /// The time limit of other reads, and of reserving identifiers for new tasks.
    package static let patience = Duration.seconds(5)

    private var ledgerPatience: LedgerPatience { part { LedgerPatience() } }

    /// Uses the ledger, again if that fails for a moment.
    package func patiently<Value>(
        for patience: Duration = patience, _ body: (Ledger) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        // A test host has no real time to pass.
        try ledgerPatience.run(for: isHosted ? .zero : patience) { () throws(StoreError) in try body(try ledger()) }
    }

    /// Reads the ledger, again if that fails for a moment.
    package func patientRead<Value>(
        for patience: Duration = patience, _ body: (LedgerTransaction) throws -> Value
    ) throws(StoreError) -> Value {
        try patiently(for: patience) { (ledger) throws(StoreError) in try ledger.read(body) }
    }

    /// Reads the ledger, again if a read fails for a moment. Reports a lasting failure on standard error.
    ///
    /// - Parameter name: The subject of the report, for example "the pending requests".
    /// - Returns: `nil` if the ledger cannot be read.
    package func read<Value>(
        _ name: String, for patience: Duration = patience, _ body: (LedgerTransaction) throws -> Value
    ) -> Value? {
        do throws(StoreError) {
            return try patientRead(for: patience, body)
        } catch {
            if ledgerPatience.isFirstReport(of: name) { report("\(name) cannot be read: \(error)") }
            return nil
        }
    }

    /// Whether a ledger exists. A missing ledger is not made for a read.
    private var hasLedger: Bool { opened.withLock { $0 != nil } || access(directories.ledger.path, F_OK) == 0 }

    /// True if a command of this app passed a desktop session to the agent, which shows notifications in that session.
    package var knowsDesktop: Bool {
        read("the desktop session") {
            try $0.fact(.sessionEnvironment)?.variables["DBUS_SESSION_BUS_ADDRESS"] != nil
        } ?? false
    }

    /// The conditions that the agent observes. `nil` if no agent runs, or if the conditions are not known.
    ///
    /// Cost: one read of the ledger.
    package var observedConditions: DesktopConditions? {
        guard isAgentRunning else { return nil }
        return read("the conditions") { try $0.fact(.conditions)?.conditions } ?? nil
    }

    /// True if the ledger has unfinished work. Also true if the ledger cannot be read for the moment, because an agent that finds no work
    /// exits.
    package var hasWorkLeft: Bool {
        guard hasLedger, !hasLedgerInMemory else { return false }
        do throws(StoreError) {
            return try ledger().read { try $0.hasUnfinishedWork() }
        } catch {
            return error.isPassing
        }
    }

    /// Seconds for which a process continues for requests that are under way when its work is done.
    package var continuation: Double {
        if let wanted = wantedSettings.withLock({ $0 }) { return wanted.continuation }
        guard isHosted || hasLedger, let settings = read("the settings", { try $0.fact(.settings) }) else {
            return AgentSettings().continuation
        }
        return (settings ?? AgentSettings()).continuation
    }
}

/// For commands that only show the ledger.
extension AppRuntime {
    /// If there is no ledger yet, none is made, and an empty one in memory takes its place. A ledger in a folder that cannot be read is
    /// not a missing one.
    package func makeNoLedger() {
        guard testHost == nil, access(directories.ledger.path, F_OK) != 0, FileFault(errno) == .missing,
            let empty = try? Ledger(inMemory: directories, makesFolders: false)
        else { return }
        opened.withLock { $0 = $0 ?? Opened(ledger: empty, isIntroduced: true) }
    }

    /// If the ledger cannot be written, a copy in memory takes its place, and standard error says so.
    package func copyUnwritableLedger() {
        guard testHost == nil, access(directories.ledger.path, F_OK) == 0 else { return }
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
        report("\(Self.programName): \(error). The stored state is shown, and nothing is changed.")
    }

    /// The ledger of this process is in memory, because there is none on the disk or because that one cannot be written.
    package var hasLedgerInMemory: Bool { opened.withLock { $0?.ledger.isInMemory == true } }
}

extension AppRuntime {
    /// Of this machine, and of what this app's agent has written down. Cost: a dozen looks at files, and one read of the ledger, where there is one.
    package var desktopFacts: DesktopFacts {
        if isHosted { return .onTestHost }
        // Nothing is made to look.
        let isThere = access(directories.ledger.path, F_OK) == 0
        let recorded = isThere ? read("what the agent knows of this desktop") { try DesktopFacts.Recorded($0) } : nil
        return DesktopFacts(
            directories, environment: ThisProcess.environment, recorded: recorded ?? DesktopFacts.Recorded())
    }
}
