import BackgroundCommands
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import Stormy
import StormyWeather

/// The content of `status`, with the names of the documented JSON format.
struct StatusReport: Encodable {
    struct Schedule: Encodable {
        let enabled: Bool
        let at: String
        let timeZone: String
        let next: OrNull<Date>
        let wakeAt: OrNull<Date>
        let spreadSeconds: Double
        let wakesSystem: Bool

        /// The expected time of the next check. If the scheduled time has passed and the check waits for the delay of this
        /// installation, this check is still the next check.
        var moment: Date? {
            guard enabled, let next = next.value else { return nil }
            return next > AppRuntime.shared.now ? next : wakeAt.value ?? next
        }

        /// A sentence for the user: "Next check 12:00 (in 3 h 12 min)."
        var sentence: String {
            guard let moment else { return "The daily check is off. `stormy schedule` turns the check on." }
            return "Next check \(Output.moment(moment, now: AppRuntime.shared.now))."
        }
    }

    struct Check: Encodable {
        let place: String
        let at: Date
        let stormy: OrNull<Bool>
        let reasons: [CheckVerb.Reason]
        let source: String
        let fetchedAt: OrNull<Date>
        let trouble: OrNull<String>
        let notAnswered: [String]
        /// The next hours for which no service had values.
        let unknownHours: [StormWindow]
    }

    struct Storm: Encodable {
        let id: String
        let place: String
        let from: Date
        let until: Date
        let told: Bool
        let photoJob: OrNull<String>
    }

    let agent: AgentReport
    let schedule: Schedule
    let pending: [PendingReport]
    let checks: [Check]
    let storms: [Storm]
    let transfers: [String: Int]
    let notifications: NotificationsReport

    static func make(_ store: StormyStore) throws -> StatusReport {
        let places = try Dictionary(uniqueKeysWithValues: store.places().map { ($0.id!, $0.name) })
        let notifications = try NotificationsReport.current()
        return StatusReport(
            agent: try AgentReport.current(), schedule: try schedule(store), pending: try PendingReport.all(),
            checks: try checks(store, places), storms: try storms(store, places, hidden: notifications.hidden),
            transfers: counts(try BackgroundTransfers.all()), notifications: notifications)
    }

    static func schedule(_ store: StormyStore) throws -> Schedule {
        let schedule = NoonSchedule(store: store)
        let (check, pending) = (try schedule.check, try schedule.pending)
        let zone = try PendingReport.timeZone(of: NoonSchedule.identifier) ?? AppRuntime.shared.zone.identifier
        return Schedule(
            enabled: check.isOn && pending != nil, at: check.time.description, timeZone: zone,
            next: OrNull(pending?.next), wakeAt: OrNull(pending?.wakeAt), spreadSeconds: pending?.spread ?? 0,
            wakesSystem: check.wakesSystem)
    }

    private static func checks(_ store: StormyStore, _ places: [Int64: String]) throws -> [Check] {
        try store.checks().compactMap { check in
            guard let name = places[check.place] else { return nil }
            return Check(
                place: name, at: check.at, stormy: OrNull(check.isStormy),
                reasons: (check.assessment?.reasons ?? []).map(CheckVerb.Reason.init), source: check.source,
                fetchedAt: OrNull(check.fetchedAt), trouble: OrNull(check.trouble),
                notAnswered: try store.warningTroubles(of: check.place), unknownHours: check.assessment?.unknownHours ?? [])
        }
    }

    private static func storms(_ store: StormyStore, _ places: [Int64: String], hidden: Set<String>) throws -> [Storm] {
        let photos = try store.photos()
        return try store.storms().filter { $0.life.isOpen(now: AppRuntime.shared.now) }.map { storm in
            Storm(
                id: String(storm.id!), place: places[storm.place] ?? "?", from: storm.begins, until: storm.ends,
                told: storm.life.isShown && !hidden.contains(StormNotifier.identifier(ofStorm: String(storm.id!))),
                photoJob: OrNull(photos.first { $0.storm == storm.id }.map { TransferReport.identifier(of: $0) }))
        }
    }

    private static func counts(_ transfers: [BackgroundTransferStatus]) -> [String: Int] {
        var counts = ["queued": 0, "running": 0, "waiting": 0, "paused": 0, "failed": 0, "completed": 0]
        for transfer in transfers where !TransfersVerb.hiddenSessions.contains(transfer.session) {
            counts[transfer.state.rawValue]? += 1
        }
        return counts
    }
}
