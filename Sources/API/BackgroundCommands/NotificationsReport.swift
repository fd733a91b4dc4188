import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The numbers of waiting and of shown notifications. `JSONOutput.md` describes the names of the properties.
package struct NotificationsReport: Encodable {
    package let pending: Int
    /// The number of notifications that were shown and that the app has not withdrawn. The number includes notifications that are
    /// not on the screen any more.
    package let delivered: Int
    /// The reason why pending notifications are not shown.
    package let trouble: OrNull<String>
    /// The identifiers of notifications that the user has not seen yet.
    package let waiting: Set<String>
    /// The identifiers of those notifications in ``waiting`` that the notification server has received but not shown.
    package let hidden: Set<String>

    private enum CodingKeys: CodingKey { case pending, delivered, trouble }

    package static func current() throws -> NotificationsReport {
        let (records, trouble) = try AppRuntime.shared.ledger().read { transaction in
            (try transaction.notifications(), try transaction.fact(.presenterTrouble))
        }
        let hidden = Set(records.filter(\.life.isHidden).map(\.identifier))
        let untold = hidden.union(records.filter(\.life.isUnreported).map(\.identifier))
        // If the user has not seen a summary, all notifications in the summary are also pending.
        let pending = records.filter { untold.contains($0.identifier) || $0.summary.map(untold.contains) ?? false }
        let waiting = Set(pending.map(\.identifier))
        let delivered = records.filter { $0.life.wasReported && !$0.isAgents && !waiting.contains($0.identifier) }
        return NotificationsReport(
            pending: pending.count, delivered: delivered.count,
            trouble: OrNull(pending.isEmpty ? nil : pending.compactMap(\.trouble).first ?? trouble),
            waiting: waiting, hidden: hidden)
    }
}
