import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The description of one launch of the app, for a report about the last weeks.
package struct WakeReport: Sendable {
    package enum Outcome: Sendable { case completed, failed, running }

    package let startedAt: Date
    /// The name of the launch, for example "refresh StormyNoon".
    package let name: String
    package let outcome: Outcome
    /// The outcome in words, for example "completed" or "expired", and the reason.
    package let words: String

    /// Returns the launches since a date, the latest first, up to a limit.
    ///
    /// Cost: one read of the ledger. The time is proportional to the number of launches.
    package static func all(since date: Date, limit: Int = 2000) throws -> [WakeReport] {
        try AppRuntime.shared.ledger().read { try $0.history(limit: limit) }.filter { $0.startedAt >= date }
            .sorted { $0.startedAt > $1.startedAt }.map(WakeReport.init)
    }

    private init(_ record: LaunchRecord) {
        (startedAt, name) = (record.startedAt, record.kind.words(record.identifier))
        let woke = record.simulated ? "manual" : record.woke.map { "because \($0)" }
        let reasons = [record.generation > 1 ? record.reason : nil, record.detail, woke].compactMap { $0 }
        words = record.outcomeWords + (reasons.isEmpty ? "" : ": \(reasons.joined(separator: "; "))")
        switch record.outcome {
        case .completed?: outcome = .completed
        case nil: outcome = .running
        default: outcome = .failed
        }
    }
}
