import ProcessSupport
import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// The command `status`, which shows pending and running work, and the state of the agent.
public struct StatusCommand: BackgroundCommand {
    public static let configuration = describe(
        "status", "Shows pending requests, running launches, transfers and the agent.", example: "status --json")

    @Flag(help: "Print JSON.") var json = false

    public init() {}

    public var effect: CommandEffect { .summarizes }

    private struct Report: Encodable {
        let agent: AgentReport
        let pending: [PendingReport]
        let running: [Running]
        /// The number of unfinished transfers in each state.
        let transfers: [String: Int]
        let last: OrNull<Last>
    }

    private struct Running: Encodable {
        let identifier: String
        let kind: LaunchKind
        let startedAt: Date
        let percent: OrNull<Int>
    }

    private struct Last: Encodable {
        let identifier: String
        let endedAt: OrNull<Date>
        let outcome: OrNull<LaunchOutcome>
    }

    public func perform() async throws {
        let report = try AppRuntime.shared.ledger().read { transaction in
            Report(
                agent: try AgentReport(transaction), pending: try transaction.requests().map(PendingReport.init),
                running: try transaction.liveLaunches().map {
                    Running(
                        identifier: $0.identifier, kind: $0.kind, startedAt: $0.startedAt,
                        percent: OrNull(ContinuedProcessing.percent(done: $0.progressDone, total: $0.progressTotal)))
                },
                transfers: try transaction.unfinishedTransfers().reduce(into: [:]) { $0[$1.state.rawValue, default: 0] += 1 },
                last: OrNull(
                    try transaction.history(limit: 50).last { $0.endedAt != nil }.map {
                        Last(identifier: $0.identifier, endedAt: OrNull($0.endedAt), outcome: OrNull($0.outcome))
                    }))
        }
        if json { return try Output.json(report) }
        for request in report.pending {
            let begin = request.earliestBeginDate.value.map { "not before \(Output.moment($0))" } ?? "as soon as possible"
            let wakes = request.wakesSystem ? "; wakes the machine" : ""
            Output.line("\(Output.bold(request.kind.words(request.identifier))), \(begin)\(wakes)")
        }
        if report.pending.isEmpty { Output.line("Nothing is pending.") }
        for launch in report.running {
            Output.line(
                "\(launch.identifier)  runs since \(Output.moment(launch.startedAt))"
                    + (launch.percent.value.map { ", \($0) %" } ?? ""))
        }
        if !report.transfers.isEmpty {
            let counts = report.transfers.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
            Output.line("Transfers: \(counts). The command `transfers` lists the transfers")
        }
        if let last = report.last.value, let outcome = last.outcome.value, let endedAt = last.endedAt.value {
            Output.line("Last: \(last.identifier) \(outcome.rawValue), \(Output.moment(endedAt))")
        }
        UnseenNotifications.list()
        Output.line(report.agent.line)
    }
}

/// The state of the agent.
package struct AgentReport: Encodable {
    package let running: Bool
    package let pid: OrNull<Int32>
    package let version: OrNull<String>
    /// The reason why the agent waits and cannot work, for example because it cannot write to its ledger. `null` if the agent can
    /// work.
    package let trouble: OrNull<String>
    /// `true` if the program that the agent runs was replaced by an update, or was removed.
    package let outdated: Bool
    /// The state of an agent that has exited and will be started again at a date, or when work arrives.
    package let away: OrNull<Away>
    private let isRemoved: Bool
    /// `true` if the agent runs in another PID namespace. In the namespace of this process, the agent's process number can belong
    /// to another process.
    private let isElsewhere: Bool
    private let nextTry: Date?

    private enum CodingKeys: CodingKey { case running, pid, version, trouble, outdated, away }

    package struct Away: Encodable {
        package let since: Date
        package let until: OrNull<Date>
        /// `true` if work has arrived after the agent exited, so that an agent should be started.
        package let isAwaited: Bool
    }

    package static func current() throws -> AgentReport {
        try AppRuntime.shared.ledger().read { try AgentReport($0) }
    }

    init(_ transaction: LedgerTransaction) throws {
        running = AppRuntime.shared.isAgentRunning
        // An agent records its identity shortly after its start. Before a new agent records its identity, the ledger contains the
        // identity of the previous agent, whose process has ended.
        let agent = try transaction.fact(.agent).flatMap { agent in
            agent.process.map(AppRuntime.shared.isAlive) ?? true ? agent : nil
        }
        isElsewhere = agent?.process?.isOfAnotherNamespace ?? false
        pid = OrNull(running && !isElsewhere ? agent?.pid : nil)
        version = OrNull(running ? agent?.version : nil)
        let program = pid.value.flatMap { ThisProcess.executable(of: $0) }
        outdated = program?.isDeleted ?? false
        isRemoved = outdated && program.map { access($0.path, X_OK) != 0 } ?? false
        let absence = running ? nil : try transaction.fact(.absence)
        away = OrNull(
            try absence.map { absence in
                let isAwaited = try transaction.isAgentAwaited(since: absence, now: AppRuntime.shared.now)
                return Away(since: absence.since, until: OrNull(absence.until), isAwaited: isAwaited)
            })
        let trouble = running ? AgentTrouble.read(AppRuntime.shared.directories) : nil
        (self.trouble, nextTry) = (OrNull(trouble?.reason), trouble?.nextTry)
    }

    /// A sentence about the problem that prevents a running agent from working, or `nil` if the agent reports no problem. Cost:
    /// one check of a lock, and one read of a small file.
    package static var waiting: String? {
        guard AppRuntime.shared.isAgentRunning, let trouble = AgentTrouble.read(AppRuntime.shared.directories) else { return nil }
        return Output.oneLine(
            "The agent cannot work now: \(trouble.reason). The agent tries again at \(Output.moment(trouble.nextTry)).")
    }

    /// The agent's process if a signal has stopped this process, otherwise `nil`.
    var stopped: RunningProcess? { pid.value.map(RunningProcess.init).flatMap { $0.isStopped ? $0 : nil } }

    package var line: String {
        guard running else {
            guard let away = away.value else { return "Agent       not running" }
            if away.isAwaited {
                return "Agent       starting, because there is work. If the agent does not run in a few seconds, run `doctor`"
            }
            let moment = away.until.value.map { " at \(Output.moment($0)), and" } ?? ""
            return "Agent       not needed now. The agent starts\(moment) whenever there is work"
        }
        let trouble = trouble.value.map { reason in
            "\n            cannot work now: \(reason)" + (nextTry.map { ". The agent tries again at \(Output.moment($0))" } ?? "")
        }
        let update =
            isRemoved
            ? "\n            The program of the agent was removed, so background work ends when the agent exits"
            : outdated
                ? "\n            The program of the agent was replaced. The new program starts when no work is running"
                : ""
        let stopped = stopped.map { "\n            No work continues, because the agent is \($0)" } ?? ""
        let place = isElsewhere ? "running in another PID namespace" : "starting"
        return "Agent       " + (pid.value.map { "running, pid \($0)" } ?? place) + stopped + update + (trouble ?? "")
    }
}

/// A pending request. `JSONOutput.md` describes the names of the properties.
package struct PendingReport: Encodable {
    package let identifier: String
    package let kind: LaunchKind
    package let earliestBeginDate: OrNull<Date>
    package let requiresNetworkConnectivity: Bool
    package let requiresExternalPower: Bool
    package let wakesSystem: Bool

    package static func all() throws -> [PendingReport] {
        try AppRuntime.shared.ledger().read { try $0.requests() }.map(PendingReport.init)
    }

    /// Returns the identifier of the time zone in which the agent planned a repeating request, or `nil` if no such request is
    /// pending. This time zone may differ from the time zone of this process, because another terminal may have another time
    /// zone.
    package static func timeZone(of identifier: String) throws -> String? {
        try AppRuntime.shared.ledger().read { transaction in
            try transaction.request(identifier)?.recurrence == nil ? nil : transaction.fact(.zone(ofRequest: identifier))
        }
    }

    init(_ request: RequestRecord) {
        identifier = request.identifier
        kind = request.kind
        earliestBeginDate = OrNull(request.earliestBegin)
        requiresNetworkConnectivity = request.requiresNetwork
        requiresExternalPower = request.requiresExternalPower
        wakesSystem = request.wakesSystem
    }
}
