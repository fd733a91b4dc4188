import BackgroundLedger
import BackgroundRuntime
import Foundation

/// A launch of the app, in words: for whoever draws the last weeks.
package struct WakeReport: Sendable {
    package enum Outcome: Sendable { case completed, failed, running }

    package let startedAt: Date
    /// "refresh StormyNoon".
    package let name: String
    package let outcome: Outcome
    /// "completed", "expired"; and why.
    package let words: String

    /// Since a moment, the latest first; at most so many.
    ///
    /// Cost: a read of the ledger, in the number of launches.
    package static func all(since date: Date, limit: Int = 2000) throws -> [WakeReport] {
        try AppRuntime.shared.ledger().read { try $0.history(limit: limit) }.filter { $0.startedAt >= date }
            .sorted { $0.startedAt > $1.startedAt }.map(WakeReport.init)
    }

    private init(_ record: LaunchRecord) {
        (startedAt, name) = (record.startedAt, "\(record.kind.words) \(record.identifier)")
        let woke = record.simulated ? "by hand" : record.woke.map { "because \($0)" }
        let reasons = [record.generation > 1 ? record.reason : nil, record.detail, woke].compactMap { $0 }
        words = (record.outcome?.rawValue ?? "running") + (reasons.isEmpty ? "" : ": \(reasons.joined(separator: "; "))")
        switch record.outcome {
        case .completed?: outcome = .completed
        case nil: outcome = .running
        default: outcome = .failed
        }
    }
}
