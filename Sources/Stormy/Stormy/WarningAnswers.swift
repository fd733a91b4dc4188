import Foundation
import GRDB
import StormyWeather

/// The last answer of one source of official warnings for one place.
package struct WarningAnswer: Sendable {
    package enum Outcome: Sendable, Equatable {
        /// The source cannot be requested.
        case refused(WarningCoverage.Refusal)
        /// The source was not requested yet.
        case notRequested
        /// The answer was read.
        case answered
        /// According to the service, the place is outside its area.
        case notCovered
        /// The service gave no usable answer since the last one. The text is the reason.
        case failed(String)
    }

    package var source: WarningCoverage.Source
    package var outcome: Outcome
    /// Why a part of the answer is not used; `nil` if all of it is.
    package var remark: String?
    /// Warnings at the place that are not over. An all-clear does not count.
    package var standingCount: Int
    /// The time of the last answer; `nil` if there is none.
    package var answeredAt: Date?
    /// The service's own time of its data; `nil` if its answers have no such time.
    package var dataTime: Date?
}

extension StormySettings {
    /// The sources of official warnings for a place. `nil` if the coordinates in the store are damaged.
    ///
    /// - Parameter failing: services that gave no usable answer to the last request.
    package func warningCoverage(of place: Place, failing: Set<AlertService> = []) -> WarningCoverage? {
        place.coordinates.map {
            WarningCoverage(at: $0, least: rule.alertSeverity, hasContact: hasContact, failing: failing, feeds: warningFeeds)
        }
    }
}

extension StormyStore {
    /// Returns the last answer of each source of a coverage, in the order of the coverage.
    package func warningAnswers(_ coverage: WarningCoverage, at place: Place, now: Date) throws -> [WarningAnswer] {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return coverage.sources.map { source in
            let record = records.first { $0.service == source.key }
            let standing = (record?.events(at: place, now: now) ?? []).filter { event in
                event.state == .standing && event.infos.contains { $0.until > now && $0.noDanger == nil }
            }
            let answeredAt = record.flatMap { $0.askedAt > .distantPast ? $0.askedAt : nil }
            return WarningAnswer(
                source: source, outcome: Self.outcome(of: source, record),
                remark: record.flatMap { $0.isPartial ? $0.trouble : nil }, standingCount: standing.count,
                answeredAt: answeredAt, dataTime: record?.dataTime)
        }
    }

    private static func outcome(of source: WarningCoverage.Source, _ record: WarningRecord?) -> WarningAnswer.Outcome {
        if let refusal = source.refusal { return .refused(refusal) }
        guard let record else { return .notRequested }
        if let trouble = record.trouble, !record.isPartial { return .failed(trouble) }
        return record.isOutside ? .notCovered : .answered
    }

    /// Returns the services that gave no usable answer to the last request for a place, or an answer that may lack warnings, or do not cover
    /// the place.
    package func failingServices(at place: Place) throws -> Set<AlertService> {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return Set(records.filter(\.needsStandIn).compactMap { AlertService(rawValue: $0.service) })
    }

    /// Returns what is stored of each source at a place, and whether the source counts. A source that was taken away does not count: a
    /// feed that is not in `cap_feeds` any more, a service without the contact that it requires, and MeteoAlarm after the country's own
    /// service answered.
    static func records(of place: Place, _ database: Database) throws -> [(record: WarningRecord, counts: Bool)] {
        let records = try WarningRecord.filter(Column("place") == place.id).fetchReadable(database)
        guard !records.isEmpty, StormySettings.areSet else { return records.map { ($0, true) } }
        // A service that was not requested yet takes nothing away.
        let answering = records.filter { !$0.needsStandIn }.compactMap { AlertService(rawValue: $0.service) }
        let failing = Set(AlertService.allCases).subtracting(answering)
        let coverage = StormySettings.current.warningCoverage(of: place, failing: failing)
        return records.map { record in
            (record, coverage?.sources.contains { $0.key == record.service && $0.refusal == nil } ?? true)
        }
    }

    /// Forgets sources that were taken away. Their storms have been called off in the same transaction.
    static func removeUncounted(at place: Place, _ database: Database) throws {
        for (record, counts) in try records(of: place, database) where !counts {
            try database.execute(
                sql: "DELETE FROM warning WHERE place = ? AND service = ?", arguments: [place.id, record.service])
        }
    }

    /// Records the answer of a service that the place is outside its area. Warnings from before stay until their end.
    func noteOutside(by service: String, of place: Place, now: Date) throws {
        try updateWarnings(by: service, of: place) { record in
            (record.askedAt, record.trouble, record.isPartial, record.isOutside) = (now, nil, false, true)
        }
    }
}
