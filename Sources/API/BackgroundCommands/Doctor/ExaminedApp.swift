import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// The app that `doctor` examines. All values are read once, so that all findings describe the same moment.
struct ExaminedApp {
    /// The content of the ledger.
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
        /// The number of transfers in each state. Only uploads and downloads with a destination are included.
        let transfers: [TransferRecord.State: Int]
        /// The number of unfinished transfers for which the agent's copy of the data to send is not in the spool any more.
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
    /// The words that a user types before the name of a command.
    let command: String
    let ledger: Result<Ledger.Inspection<Books>, StoreError>
    let desktop = DesktopReports()

    /// The content of the ledger, or `nil` if the ledger does not exist or cannot be read.
    var books: Books? { if case .success(.found(let books)) = ledger { books } else { nil } }

    /// The identifiers of the pending requests, or `nil` if the ledger cannot be read.
    var pendingRequests: [String]? {
        switch ledger {
        case .success(.found(let books)): books.requests.map(\.identifier)
        case .success(.missing): []
        case .success(.ofAnEarlierVersion), .failure: nil
        }
    }

    /// - Parameter verb: the name of the current command. Each command of the app in a fix repeats the arguments that the user
    ///   typed before this name.
    static func current(verb: String) -> ExaminedApp {
        let runtime = AppRuntime.shared
        return ExaminedApp(
            manifest: runtime.manifest, directories: runtime.directories, environment: ThisProcess.environment,
            now: runtime.now, command: command(before: verb),
            ledger: Result { () throws(StoreError) in try Ledger.inspect(runtime.directories) { try Books($0) } })
    }

    /// Returns the words that a user types before the name of a command. The first word is the program's name if `PATH` contains
    /// the program, otherwise the program's path. Then the arguments follow that the user typed before the name of the current
    /// command.
    private static func command(before verb: String) -> String {
        let path = AppManifest.executableURL.path
        let name = AppManifest.executableURL.lastPathComponent
        let first = CompanionProgram.findInPath(name).map { URL(exactPath: $0).resolvingSymlinksInPath().path }
        let group = ThisProcess.arguments.dropFirst().prefix { $0 != verb && !$0.hasPrefix("-") }
        let program = first == URL(exactPath: path).resolvingSymlinksInPath().path ? name : path
        return ([program] + group).map(ShellWord.quoted).joined(separator: " ")
    }
}
