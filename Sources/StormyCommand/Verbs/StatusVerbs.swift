import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Stormy
import StormyWeather

struct StatusVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "What is scheduled, and what happened last.",
        discussion: "Example:\n  stormy status --json")

    @Flag(help: "Print JSON.") var json = false
    @Flag(help: "Stay, and show it again whenever something changes.") var watch = false

    func run() async throws {
        try StormyTool.configure()
        let store = try StormyStore.open()
        if watch { AgentVerb.startIfWorkIsLeft() }
        try show(store)
        guard watch else { return }
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = try AppRuntime.shared.onCommit { continuation.yield() }
        for await _ in rings {
            Output.clearScreen()
            try show(store)
        }
        token.cancel()
    }

    private func show(_ store: StormyStore) throws {
        let report = try StatusReport.make(store)
        if json { return try Output.json(report) }
        printForPeople(report)
        for photo in try TransferReport.all(store) where photo.state == "awaitingPhoto" {
            Output.line("Photo job \(photo.id) waits for a photo: stormy upload FILE")
        }
    }

    private func printForPeople(_ report: StatusReport) {
        if report.schedule.enabled, let next = report.schedule.next.value {
            Output.line(
                "Next check  \(Output.bold(Output.moment(next))), daily at \(report.schedule.at) \(report.schedule.timeZone)")
        } else {
            Output.line("Next check  none: stormy schedule")
        }
        for check in report.checks {
            let verdict = check.stormy.value.map { $0 ? Output.loud("stormy") : "calm" } ?? "unknown"
            Output.line(
                "\(check.place)  \(verdict), checked \(Output.relative(check.at))"
                    + (check.trouble.value.map { " (not refreshed: \($0))" } ?? ""))
            for reason in check.reasons { Output.line("  \(reason.detail), \(Output.moment(reason.from))") }
        }
        for storm in report.storms {
            Output.line("Storm at \(storm.place)  from \(Output.moment(storm.from)), \(storm.told ? "told" : "not told yet")")
        }
        let moving = report.transfers.filter { $0.value > 0 && $0.key != "completed" }.sorted { $0.key < $1.key }
        if !moving.isEmpty { Output.line("Transfers   " + moving.map { "\($0.value) \($0.key)" }.joined(separator: ", ")) }
        if report.notifications.pending > 0 {
            Output.line(
                "Notifications  \(report.notifications.pending) waiting"
                    + (report.notifications.trouble.value.map { ": \($0)" } ?? ""))
        }
        Output.line("Agent       " + (report.agent.running ? "running, pid \(report.agent.pid.value ?? 0)" : "not running"))
    }
}

struct WhyVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why", abstract: "Why a pending request has not run yet.", discussion: "Example:\n  stormy why StormyNoon")

    @Argument(help: "One request; all of them without it.") var identifier: String?
    @Flag(help: "Print JSON.") var json = false

    private struct Condition: Encodable {
        let name: String
        let met: Bool
        /// Since when it has been so.
        let since: OrNull<Date>
        /// When time alone will change it.
        let until: OrNull<Date>
        let detail: String
    }

    private struct Row: Encodable {
        let identifier: String
        let kind: LaunchKind
        let conditions: [Condition]
        let nextAttemptAt: OrNull<Date>
    }

    func run() async throws {
        try StormyTool.configure()
        let rows = try AppRuntime.shared.ledger().read { transaction -> [Row] in
            let live = try Set(transaction.liveLaunches().map(\.identifier))
            let observed = try transaction.fact(.conditions)
            return try transaction.requests().filter { identifier == nil || $0.identifier == identifier }.map {
                Self.row($0, isLive: live.contains($0.identifier), observed)
            }
        }
        if let identifier, rows.isEmpty { throw CommandFailure(.notFound, "no request named \(identifier) is pending") }
        let isRunning = AgentStarter(directories: AppRuntime.shared.directories).isRunning
        if json { return try Output.json(rows) }
        if rows.isEmpty { Output.line("Nothing is pending.") }
        for row in rows {
            Output.line(Output.bold(row.identifier))
            for condition in row.conditions {
                let since = condition.since.value.map { ", since \(Output.moment($0))" } ?? ""
                let until = condition.until.value.map { ", until \(Output.moment($0))" } ?? since
                Output.line("  \(condition.met ? "✓" : "✗") \(condition.name): \(condition.detail)\(until)")
            }
            if !isRunning { Output.line("  ✗ agent: not running; any verb starts it unless STORMY_NO_AGENT=1") }
        }
    }

    private static func row(_ request: RequestRecord, isLive: Bool, _ observed: ObservedConditions?) -> Row {
        let now = Date()
        let conditions =
            observed?.conditions
            ?? DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
        let plannable = request.plannable(hasLiveLaunch: isLive)
        let verdicts = RequestPlanner.verdicts(for: plannable, conditions: conditions, now: now)
        let plan = RequestPlanner.plan([plannable], conditions: conditions, now: now)
        return Row(
            identifier: request.identifier, kind: request.kind,
            conditions: verdicts.map { verdict in
                Condition(
                    name: verdict.name.rawValue, met: verdict.met, since: OrNull(since(verdict, request, observed)),
                    until: OrNull(verdict.metAt), detail: verdict.detail)
            }, nextAttemptAt: OrNull(plan.nextWake))
    }

    /// Since when a condition has its value.
    private static func since(_ verdict: ConditionVerdict, _ request: RequestRecord, _ observed: ObservedConditions?) -> Date? {
        switch verdict.name {
        case .earliestBeginDate: verdict.met ? request.earliestBegin : request.submittedAt
        case .backoff: verdict.met ? request.backoffUntil : nil
        case .networkConnectivity: observed?.networkSince
        case .externalPower: observed?.powerSince
        case .notRunning: nil
        }
    }
}

struct HistoryVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Every wake and how it ended.", discussion: "Example:\n  stormy history --json")

    @Flag(help: "Print JSON.") var json = false
    @Option(help: "At most so many, the latest.") var limit = 100

    private struct Row: Encodable {
        let id: Int64
        let kind: LaunchKind
        let identifier: String
        let startedAt: Date
        let endedAt: OrNull<Date>
        let outcome: OrNull<LaunchOutcome>
        let simulated: Bool
        let detail: OrNull<String>
        let generation: Int
        let reason: String
    }

    func run() async throws {
        try StormyTool.configure()
        let records = try AppRuntime.shared.ledger().read { try $0.history(limit: max(1, limit)) }
        if json {
            return try Output.json(
                records.map {
                    Row(
                        id: $0.id!, kind: $0.kind, identifier: $0.identifier, startedAt: $0.startedAt,
                        endedAt: OrNull($0.endedAt),
                        outcome: OrNull($0.outcome), simulated: $0.simulated, detail: OrNull($0.detail),
                        generation: $0.generation,
                        reason: $0.reason)
                })
        }
        if records.isEmpty { Output.line("Nothing has run yet.") }
        for record in records {
            let outcome = record.outcome?.rawValue ?? "running"
            let extra = [record.simulated ? "simulated" : nil, record.generation > 1 ? record.reason : nil, record.detail]
                .compactMap { $0 }
            Output.line(
                "\(Output.moment(record.startedAt))  \(record.kind.rawValue) \(record.identifier)  \(outcome)"
                    + (extra.isEmpty ? "" : "  (\(extra.joined(separator: "; ")))"))
        }
    }
}
