import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Stormy

/// What `status` tells, as the contract names it.
struct StatusReport: Encodable {
    struct Schedule: Encodable {
        let enabled: Bool
        let at: String
        let timeZone: String
        let next: OrNull<Date>
        let wakeAt: OrNull<Date>
        let spreadSeconds: Double
    }

    struct Check: Encodable {
        let place: String
        let at: Date
        let stormy: OrNull<Bool>
        let reasons: [CheckVerb.Reason]
        let source: String
        let fetchedAt: OrNull<Date>
        let trouble: OrNull<String>
    }

    struct Storm: Encodable {
        let id: String
        let place: String
        let from: Date
        let until: Date
        let told: Bool
        let photoJob: OrNull<String>
    }

    struct Notifications: Encodable {
        let pending: Int
        let delivered: Int
        /// Why pending ones are not shown.
        let trouble: OrNull<String>
    }

    let agent: AgentReport
    let schedule: Schedule
    let pending: [PendingReport]
    let checks: [Check]
    let storms: [Storm]
    let transfers: [String: Int]
    let notifications: Notifications

    static func make(_ store: StormyStore) throws -> StatusReport {
        let runtime = AppRuntime.shared
        let ledger = try runtime.ledger()
        let snapshot = try ledger.read { transaction in
            (
                agent: try AgentReport(transaction), requests: try transaction.requests(),
                transfers: try transaction.transfers(), notifications: try transaction.notifications(),
                trouble: try transaction.fact(.presenterTrouble)
            )
        }
        let places = try Dictionary(uniqueKeysWithValues: store.places().map { ($0.id!, $0.name) })
        return StatusReport(
            agent: snapshot.agent,
            schedule: try schedule(store),
            pending: snapshot.requests.map(PendingReport.init),
            checks: try checks(store, places), storms: try storms(store, places),
            transfers: counts(snapshot.transfers),
            notifications: notifications(snapshot.notifications, snapshot.trouble))
    }

    static func schedule(_ store: StormyStore) throws -> Schedule {
        let schedule = NoonSchedule(store: store)
        let request = try AppRuntime.shared.ledger().read { try $0.request(NoonSchedule.identifier) }
        return Schedule(
            enabled: try schedule.isEnabled && request != nil, at: try schedule.time.description,
            timeZone: TimeZone.current.identifier, next: OrNull(request?.occurrence), wakeAt: OrNull(request?.earliestBegin),
            spreadSeconds: request?.spread ?? 0)
    }

    private static func checks(_ store: StormyStore, _ places: [Int64: String]) throws -> [Check] {
        try store.checks().compactMap { check in
            guard let name = places[check.place] else { return nil }
            return Check(
                place: name, at: check.at, stormy: OrNull(check.isStormy),
                reasons: (check.assessment?.reasons ?? []).map(CheckVerb.Reason.init), source: check.source,
                fetchedAt: OrNull(check.fetchedAt), trouble: OrNull(check.trouble))
        }
    }

    private static func storms(_ store: StormyStore, _ places: [Int64: String]) throws -> [Storm] {
        let photos = try store.photos()
        return try store.storms().filter { !$0.isClosed }.map { storm in
            Storm(
                id: String(storm.id!), place: places[storm.place] ?? "?", from: storm.begins, until: storm.ends,
                told: storm.isTold,
                photoJob: OrNull(photos.first { $0.storm == storm.id }.map { TransferReport.identifier(of: $0) }))
        }
    }

    private static func counts(_ transfers: [TransferRecord]) -> [String: Int] {
        var counts = ["queued": 0, "running": 0, "waiting": 0, "paused": 0, "failed": 0, "completed": 0]
        for transfer in transfers { counts[transfer.state.rawValue]? += 1 }
        return counts
    }

    /// Delivered: shown at some time and not taken back, also when it has left the screen by now.
    private static func notifications(_ records: [NotificationRecord], _ trouble: String?) -> Notifications {
        let pending = records.filter { $0.state == .pending || $0.state == .presenting }
        let delivered = records.filter { $0.state == .delivered || ($0.state == .closed && $0.deliveredAt != nil) }
        return Notifications(
            pending: pending.count, delivered: delivered.count,
            trouble: OrNull(pending.isEmpty ? nil : pending.compactMap(\.trouble).first ?? trouble))
    }
}
