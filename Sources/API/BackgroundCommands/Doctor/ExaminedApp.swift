import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// What `doctor` looks at: taken once, so that all rows speak of the same moment.
struct ExaminedApp {
    /// What the ledger says.
    struct Books {
        let app: AppRecord?
        let agent: AgentRecord?
        let settings: AgentSettings
        let session: SessionEnvironment?
        let lookedAt: Date?
        let presenterTrouble: String?
        let absence: AgentAbsence?
        let isAgentAwaited: Bool
        let activationTrouble: String?
        let alarm: AlarmReport?
        let requests: [RequestRecord]
        let launches: [LaunchRecord]
        let lastEnds: [LaunchRecord]
        let notices: [NotificationRecord]
        /// Those that a person asked for, by state.
        let transfers: [TransferRecord.State: Int]
        /// Unfinished transfers whose queued copy is not in the spool.
        let missingCopies: Int
        let hasWorkLeft: Bool
        let recorded: DesktopFacts.Recorded

        init(_ transaction: LedgerTransaction) throws {
            app = try transaction.fact(.app)
            agent = try transaction.fact(.agent)
            settings = try transaction.fact(.settings) ?? AgentSettings()
            session = try transaction.fact(.sessionEnvironment)
            lookedAt = try transaction.fact(.lookedAt)
            presenterTrouble = try transaction.fact(.presenterTrouble)
            absence = try transaction.fact(.absence)
            isAgentAwaited =
                try absence.map { try transaction.isAgentAwaited(since: $0, now: AppRuntime.shared.now) } ?? false
            activationTrouble = try transaction.fact(.activationTrouble)
            alarm = try transaction.fact(.alarm)
            requests = try transaction.requests()
            launches = try transaction.liveLaunches()
            lastEnds = try transaction.history(limit: 50).filter { $0.endedAt != nil }
            notices = try transaction.notifications()
            transfers = try transaction.countsOfNamedTransfers()
            missingCopies = try transaction.missingCopies(in: AppRuntime.shared.directories.spool).count
            hasWorkLeft = try transaction.hasUnfinishedWork()
            recorded = try DesktopFacts.Recorded(transaction)
        }
    }

    let manifest: AppManifest
    let directories: AppDirectories
    let environment: [String: String]
    let now: Date
    /// What a person types before a verb.
    let command: String
    let ledger: Result<Ledger.Look<Books>, StoreError>
    let desktop = AskedDesktop()

    /// `nil`: there are none, or they cannot be read.
    var books: Books? { if case .success(.found(let books)) = ledger { books } else { nil } }

    /// `nil`: nobody can say.
    var pendingRequests: [String]? {
        switch ledger {
        case .success(.found(let books)): books.requests.map(\.identifier)
        case .success(.missing): []
        case .success(.ofAnEarlierVersion), .failure: nil
        }
    }

    /// - Parameter verb: the name of the command that asks: what is before it among the arguments leads to the others too.
    static func look(verb: String) -> ExaminedApp {
        let runtime = AppRuntime.shared
        return ExaminedApp(
            manifest: runtime.manifest, directories: runtime.directories, environment: ThisProcess.environment,
            now: runtime.now, command: command(before: verb),
            ledger: Result { () throws(StoreError) in try Ledger.look(runtime.directories) { try Books($0) } })
    }

    /// The program by its name where that finds it, and by its path elsewhere; behind it the group that the verbs are mounted in.
    private static func command(before verb: String) -> String {
        let path = AppManifest.executableURL.path
        let name = AppManifest.executableURL.lastPathComponent
        let first = CompanionProgram.findInPath(name).map { URL(exactPath: $0).resolvingSymlinksInPath().path }
        let group = ThisProcess.arguments.dropFirst().prefix { $0 != verb && !$0.hasPrefix("-") }
        let program = first == URL(exactPath: path).resolvingSymlinksInPath().path ? name : path
        return ([program] + group).map(ShellWord.quoted).joined(separator: " ")
    }
}
