import BackgroundLedger
import BackgroundRuntime
import Foundation

/// How many notifications wait and were shown, as the contract names it.
package struct NotificationsReport: Encodable {
    package let pending: Int
    /// Shown at some time and not taken back, also when it has left the screen by now.
    package let delivered: Int
    /// Why pending ones are not shown.
    package let trouble: OrNull<String>
    /// Identifiers of those that nobody has seen yet.
    package let waiting: Set<String>
    /// The identifiers in ``waiting`` that the server has and did not draw.
    package let hidden: Set<String>

    private enum CodingKeys: CodingKey { case pending, delivered, trouble }

    package static func current() throws -> NotificationsReport {
        let (records, trouble) = try AppRuntime.shared.ledger().read { transaction in
            (try transaction.notifications(), try transaction.fact(.presenterTrouble))
        }
        let hidden = Set(records.filter(\.life.isHidden).map(\.identifier))
        let untold = hidden.union(records.filter(\.life.isUntold).map(\.identifier))
        // What a summary is to tell of waits with it.
        let pending = records.filter { untold.contains($0.identifier) || $0.summary.map(untold.contains) ?? false }
        let waiting = Set(pending.map(\.identifier))
        let delivered = records.filter { $0.life.isTold && !$0.isAgents && !waiting.contains($0.identifier) }
        return NotificationsReport(
            pending: pending.count, delivered: delivered.count,
            trouble: OrNull(pending.isEmpty ? nil : pending.compactMap(\.trouble).first ?? trouble),
            waiting: waiting, hidden: hidden)
    }
}
