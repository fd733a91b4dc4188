import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import BackgroundTasks
import Foundation
import UserUnits

/// The command `why`, which shows why a pending request has not run yet.
public struct WhyCommand: BackgroundCommand {
    public static let configuration = describe(
        "why", "Shows why a pending request has not run yet, or why a result was not delivered to the app.",
        example: "why \(AppManifest.current.permittedIdentifiers.first ?? "IDENTIFIER")")

    @Argument(
        help: "The identifier of one request or session. Default: all requests and sessions.", completion: .requestsAndSessions)
    var identifier: String?
    @Flag(help: "Print JSON.") var json = false

    public init() {}

    public var effect: CommandEffect { .reads }

    private struct Condition: Encodable {
        let name: ConditionVerdict.Name
        let met: Bool
        /// The date since which the condition has this state.
        let since: OrNull<Date>
        /// The date at which the condition changes without another event.
        let until: OrNull<Date>
        let detail: String
    }

    private struct Row: Encodable {
        let identifier: String
        let kind: LaunchKind
        let conditions: [Condition]
        let nextAttemptAt: OrNull<Date>
        /// The folders whose changes also launch the request.
        var watchedFolders: [String] = []
    }

    public func perform() async throws {
        try await explain()
        introduceApp()
    }

    /// Records in the ledger the app's program and the desktop session, because the agent needs them. Other commands also record
    /// these values, but only if no other process is writing at that moment. For this reason, `doctor` suggests the command `why`
    /// as a fix.
    private func introduceApp() {
        do {
            try AppRuntime.shared.introduceApp()
        } catch {
            Output.note(
                "The path of the program and the data of this desktop could not be stored: \(CommandFailure(error).message)")
        }
    }

    private func rows() throws -> [Row] {
        try AppRuntime.shared.ledger().read { transaction in
            let explanation = try Explanation(transaction, now: AppRuntime.shared.now)
            let wanted = try identifier.map { try [transaction.request($0)].compactMap { $0 } } ?? transaction.requests()
            let folders = Dictionary(grouping: try transaction.watchedFolders(), by: \.request)
            return try wanted.map { request in
                var row = row(request, explanation)
                row.watchedFolders = folders[request.identifier]?.map(\.folder.path) ?? []
                return row
            }
                + deliveries(transaction, explanation).filter { identifier == nil || $0.identifier == identifier }
        }
    }

    private func explain() async throws {
        var rows = try rows()
        if let identifier, rows.isEmpty {
            throw CommandFailure(.notFound, "no request or session named \(identifier) is pending")
        }
        if json { return try Output.json(rows) }
        let spool = AppRuntime.shared.directories.spool
        let missing = try AppRuntime.shared.ledger().read { try $0.missingCopies(in: spool) }.count
        if missing > 0, identifier == nil { Output.line("✗ " + TransfersExamination.sentence(missingCopies: missing, in: spool)) }
        guard !rows.isEmpty else { return Output.line("Nothing is pending.") }
        let agent = try await lineOfAgent()
        // An agent that this command started has checked network and power since the first read, so the rows are read again.
        if agent != nil { rows = try self.rows() }
        for row in rows {
            Output.line(Output.bold(BackgroundCommands.name(of: row.identifier)))
            for condition in row.conditions {
                Output.line("  " + Self.line(condition))
            }
            for folder in row.watchedFolders { Output.line("  · folder: or a change in \(folder)") }
            if let agent { Output.line("  " + agent) }
        }
        if let trouble = try AppRuntime.shared.ledger().read({ try $0.fact(.activationTrouble) }) {
            Output.line("The agent stays in memory when it is idle, because \(trouble).")
        }
        if !UserUnits(directories: AppRuntime.shared.directories).hasManager {
            Output.line(
                "No systemd user manager runs here, so a killed agent starts again at the next login or with the next command."
            )
        }
    }

    private static func line(_ condition: Condition) -> String {
        if condition.name == .earliestBeginDate, !condition.met, let until = condition.until.value {
            return "· time: waiting for \(Output.moment(until))"
        }
        let mark = condition.met ? "✓" : condition.name.isPlanned ? "·" : "✗"
        let since = condition.since.value.map { ", since \(Output.moment($0))" } ?? ""
        return
            "\(mark) \(condition.name.words): \(condition.detail)\(condition.until.value.map { ", until \(Output.moment($0))" } ?? since)"
    }

    /// Starts an agent if no agent is running, and returns a line about the start. Returns `nil` if an agent was already running.
    private func lineOfAgent() async throws -> String? {
        if AppRuntime.shared.isHosted { return nil }
        let directories = AppRuntime.shared.directories
        let starter = AgentStarter(directories: directories)
        if AppRuntime.shared.hasLedgerInMemory, !starter.isRunning {
            return "✗ agent: no agent runs, because \(directories.ledger.path) is not writable"
        }
        let absence = starter.isRunning ? nil : try AppRuntime.shared.ledger().read { try $0.fact(.absence) }
        switch try await starter.bringBack() {
        case .runs: return nil
        case .wasBroughtBack:
            guard let absence else { return "✓ agent: this command started the agent" }
            let until = absence.until.map { " until \(Output.moment($0))" } ?? ""
            return "✓ agent: this command started the agent, although no work was due\(until)"
        case .leavesAtOnce:
            return "✗ agent: this command started the agent, but the agent exited. See the log of the agent: \(starter.logPlace)"
        case .cannotStart(.forbidden): return "✗ agent: not running, because \(starter.forbiddingVariable)=1 is set"
        case .cannotStart(.notFound(let places)):
            let folders = places.joined(separator: ", ")
            return "✗ agent: not running, because background-agent was not found in \(folders)"
        case .cannotStart(.failed(let reason)): return "✗ agent: not running. The agent could not be started: \(reason)"
        case .cannotStart(.started), .cannotStart(.alreadyRunning): return nil
        }
    }

    private func row(_ request: RequestRecord, _ explanation: Explanation) -> Row {
        Row(
            identifier: request.identifier, kind: request.kind,
            conditions: (explanation.verdicts(request) + [explanation.wake(request)].compactMap { $0 }).map { verdict in
                Condition(
                    name: verdict.name, met: verdict.met, since: OrNull(explanation.since(verdict, request)),
                    until: OrNull(verdict.metAt), detail: verdict.detail)
            }, nextAttemptAt: OrNull(explanation.nextAttempt(request)))
    }

    /// Returns a row for each session or notification whose launch cannot begin yet.
    private func deliveries(_ transaction: LedgerTransaction, _ explanation: Explanation) throws -> [Row] {
        let now = explanation.now
        let settings = try transaction.fact(.settings) ?? AgentSettings()
        let sessions = try transaction.waitingSessions().map { (LaunchKind.urlSession, $0.session, $0.oldest) }
        let pressed = try Dictionary(grouping: transaction.undeliveredResponses(), by: \.notification).map {
            (LaunchKind.notificationResponse, $0.key, $0.value.map(\.createdAt).min() ?? now)
        }
        let served = try transaction.liveLaunches().servedSession(settings: settings, now: now)
        let attached = try transaction.attachedSessions()
        return try (sessions + pressed.sorted { $0.1 < $1.1 }).compactMap { kind, identifier, oldest in
            if explanation.isLive(identifier) { return nil }
            let history = try transaction.deliveryHistory(kind, identifier, since: oldest, settings: settings, now: now)
            let condition: Condition
            if let pause = history.pause {
                condition = Condition(
                    name: .backoff, met: false, since: OrNull(oldest), until: OrNull(pause.until), detail: pause.words)
            } else if kind == .urlSession, let served, !attached.contains(identifier) {
                condition = Condition(
                    name: .turn, met: false, since: OrNull(oldest), until: OrNull(nil),
                    detail: "the results are delivered after the launch for \(served.session) has ended")
            } else {
                return nil
            }
            return Row(identifier: identifier, kind: kind, conditions: [condition], nextAttemptAt: condition.until)
        }
    }
}
