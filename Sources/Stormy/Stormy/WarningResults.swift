import Foundation
import GRDB
import StormyWeather

/// The last response of one source of official warnings for one place.
package struct WarningResult: Sendable {
    package enum Outcome: Sendable, Equatable {
        /// Stormy cannot request the source.
        case refused(WarningCoverage.Refusal)
        /// The source was not requested yet.
        case notRequested
        /// The response was read.
        case answered
        /// According to the service, the place is outside its area.
        case notCovered
        /// The last request had no usable response. The text is the reason.
        case failed(String)
    }

    package var source: WarningCoverage.Source
    package var outcome: Outcome
    /// The reason why a part of the response is not used. `nil` if the complete response is used.
    package var remark: String?
    /// The number of warnings at the place that have not ended. All-clear messages are not counted.
    package var activeCount: Int
    /// The time of the last response. `nil` if no response was received.
    package var answeredAt: Date?
    /// The time of the data according to the service. `nil` if the responses of the service contain no such time.
    package var dataTime: Date?
}

extension StormySettings {
    /// Returns the sources of official warnings for a place, or `nil` if the coordinates in the store are damaged.
    ///
    /// - Parameter failing: the services whose last request had no usable response.
    package func warningCoverage(of place: Place, failing: Set<AlertService> = []) -> WarningCoverage? {
        place.coordinates.map {
            WarningCoverage(at: $0, least: rule.alertSeverity, hasContact: hasContact, failing: failing, feeds: warningFeeds)
        }
    }
}

extension StormyStore {
    /// Returns the last response of each source in `coverage`, in the same order.
    package func warningAnswers(_ coverage: WarningCoverage, at place: Place, now: Date) throws -> [WarningResult] {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return coverage.sources.map { source in
            let record = records.first { $0.service == source.key }
            let standing = (record?.events(at: place, now: now) ?? []).filter { event in
                event.state == .standing && event.infos.contains { $0.until > now && $0.noDanger == nil }
            }
            let answeredAt = record.flatMap { $0.askedAt > .distantPast ? $0.askedAt : nil }
            return WarningResult(
                source: source, outcome: Self.outcome(of: source, record),
                remark: record.flatMap { $0.isPartial ? $0.trouble : nil }, activeCount: standing.count,
                answeredAt: answeredAt, dataTime: record?.dataTime)
        }
    }

    private static func outcome(of source: WarningCoverage.Source, _ record: WarningRecord?) -> WarningResult.Outcome {
        if let refusal = source.refusal { return .refused(refusal) }
        guard let record else { return .notRequested }
        if let trouble = record.trouble, !record.isPartial { return .failed(trouble) }
        return record.isOutside ? .notCovered : .answered
    }

    /// Returns the services whose last response was not usable, was possibly incomplete, or reported that the place is not
    /// covered.
    package func failingServices(at place: Place) throws -> Set<AlertService> {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return Set(records.filter(\.needsSubstitute).compactMap { AlertService(rawValue: $0.service) })
    }

    /// Returns the stored records of each source at a place, and whether the source counts. A feed does not count if `cap_feeds`
    /// does not contain the feed any more. A service that requires a contact does not count if the configuration contains no
    /// contact. MeteoAlarm does not count if the country's own service has responded.
    static func records(of place: Place, _ database: Database) throws -> [(record: WarningRecord, counts: Bool)] {
        let records = try WarningRecord.filter(Column("place") == place.id).fetchReadable(database)
        guard !records.isEmpty, StormySettings.areSet else { return records.map { ($0, true) } }
        // If a service was not requested yet, the sources that this service would replace are kept.
        let answering = records.filter { !$0.needsSubstitute }.compactMap { AlertService(rawValue: $0.service) }
        let failing = Set(AlertService.allCases).subtracting(answering)
        let coverage = StormySettings.current.warningCoverage(of: place, failing: failing)
        return records.map { record in
            (record, coverage?.sources.contains { $0.key == record.service && $0.refusal == nil } ?? true)
        }
    }

    /// Deletes the records of services and feeds that Stormy no longer uses. The same transaction has marked the storms of these
    /// sources as no longer expected.
    static func removeUncounted(at place: Place, _ database: Database) throws {
        for (record, counts) in try records(of: place, database) where !counts {
            try database.execute(
                sql: "DELETE FROM warning WHERE place = ? AND service = ?", arguments: [place.id, record.service])
        }
    }

    /// Records that a service responded that the place is outside its area. Earlier warnings stay valid until their end.
    func recordOutsideArea(by service: String, of place: Place, now: Date) throws {
        try updateWarnings(by: service, of: place) { record in
            (record.askedAt, record.trouble, record.isPartial, record.isOutside) = (now, nil, false, true)
        }
    }
}
