import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// The command `history`, which shows the launches of the app and the results of the launches.
public struct HistoryCommand: BackgroundCommand {
    public static let configuration = describe("history", "Shows each launch and its outcome.", example: "history --json")

    @Flag(help: "Print JSON.") var json = false
    @Option(help: "The maximum number of launches to show. The newest launch is shown last.") var limit = 100

    public init() {}

    public var effect: CommandEffect { .reads }

    /// The properties of the request for which the agent launched the app.
    private struct Asked: Encodable {
        let submittedAt: OrNull<Date>
        let earliestBeginDate: OrNull<Date>
        /// The occurrence of a repeating request, as a time on the user's clock.
        let occurrence: OrNull<Date>
    }

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
        let asked: Asked
        let woke: OrNull<String>
    }

    public func perform() async throws {
        let records = try AppRuntime.shared.ledger().read { try $0.history(limit: max(1, limit)) }
        if json {
            return try Output.json(
                records.map {
                    Row(
                        id: $0.id!, kind: $0.kind, identifier: $0.identifier, startedAt: $0.startedAt,
                        endedAt: OrNull($0.endedAt),
                        outcome: OrNull($0.outcome), simulated: $0.simulated, detail: OrNull($0.detail),
                        generation: $0.generation, reason: $0.reason,
                        asked: Asked(
                            submittedAt: OrNull($0.askedAt), earliestBeginDate: OrNull($0.askedBegin),
                            occurrence: OrNull($0.servedOccurrence)),
                        woke: OrNull($0.woke))
                })
        }
        if records.isEmpty { Output.line("Nothing has run yet.") }
        for record in records {
            let extra = [record.simulated ? "manual" : nil, record.generation > 1 ? record.reason : nil, record.detail]
                .compactMap { $0 }
            Output.line(
                "\(Output.moment(record.startedAt))  \(record.kind.words(record.identifier)): \(record.outcomeWords)"
                    + (extra.isEmpty ? "" : "  (\(extra.joined(separator: "; ")))"))
            let asked = record.askedBegin.map { "scheduled for \(Output.moment($0))" }
            let story = [asked, record.simulated ? nil : record.woke.map { "reason: \($0)" }].compactMap { $0 }
            if !story.isEmpty { Output.line("    " + story.joined(separator: "; ")) }
        }
    }
}
