import Foundation
import GRDB
import StormyWeather

/// The last forecast that a weather service sent for a place.
struct ForecastRecord: StoreRecord {
    static let databaseTableName = "forecast"
    var place: Int64
    var content: Forecast
    var fetchedAt: Date
    /// The forecast of a second service. The second service was requested because this forecast contains thunder that no other
    /// data confirms.
    var second: Forecast?
    var provider: WeatherProvider?
    var lastModified: String?
    var expiresAt: Date?

    var fetched: FetchedForecast {
        FetchedForecast(content: content, provider: provider, lastModified: lastModified, expiresAt: expiresAt)
    }
}

/// The last check of a place.
package struct CheckRecord: Codable, Sendable, Equatable {
    package var place: Int64
    package var at: Date
    /// The assessment. `nil` if the check had no forecast to assess.
    package var assessment: Assessment?
    /// The reason why the service could not be requested, or why its response could not be used.
    package var trouble: String?
    package var source: String
    package var fetchedAt: Date?

    package var isStormy: Bool? { assessment?.isStormy }
}

extension CheckRecord: StoreRecord {
    package static let databaseTableName = "checkResult"
}

/// The result of a check: the assessment, the age of its data, and the problems of the check.
package struct CheckOutcome: Sendable {
    package var place: Place
    package var assessment: Assessment?
    package var fetchedAt: Date?
    /// The reason why the stored forecast was used, or why the check has no forecast.
    package var trouble: String?
    /// `true` if this check could not refresh the forecast, or if the data is too old.
    package var isStale: Bool
    package var source: String
    /// The services whose requests failed, each with the reason.
    package var notAnswered: [String] = []
    /// The forecast in which the check searched for storms. `nil` if the check has no forecast.
    package var forecast: Forecast?
}

extension StormyStore {
    package func checks() throws -> [CheckRecord] { try queue.read { try CheckRecord.fetchAll($0) } }

    /// Returns the result of the last check. `nil` before the first check.
    func check(of place: Place) throws -> CheckRecord? { try queue.read { try CheckRecord.fetchOne($0, key: place.id) } }

    func lastForecast(of place: Place) throws -> ForecastRecord? { try queue.read { Self.forecast(of: place, $0) } }

    /// Returns the last stored response for a place, so that the next request can be conditional. Returns `nil` if no response is
    /// stored, or if the response was fetched while the clock was ahead.
    func lastAnswer(of place: Place, now: Date) throws -> FetchedForecast? {
        try lastForecast(of: place).flatMap { record in
            guard record.fetchedAt <= now else { return nil }
            var fetched = record.fetched
            fetched.fetchedAt = record.fetchedAt
            return fetched
        }
    }

    /// Returns the stored forecast. If the stored forecast cannot be decoded, returns `nil`. The next response replaces such a
    /// forecast.
    static func forecast(of place: Place, _ database: Database) -> ForecastRecord? {
        do {
            return try ForecastRecord.fetchOne(database, key: place.id)
        } catch {
            logError("the forecast of \(place.name) cannot be read: \(error)")
            return nil
        }
    }

    /// Stores the forecast, the judgement and the storms of a response in one transaction. If the method is called again with the
    /// same response, the store does not change.
    ///
    /// - Parameter second: The forecast of another service. `nil` if no other service was requested.
    func storeResponse(
        _ fetched: FetchedForecast, beside second: Forecast? = nil, of place: Place, fetchedAt: Date, rule: StormRule, now: Date
    ) throws -> Assessment {
        let forecast = fetched.content
        return try queue.write { database in
            let warnings = try Self.warnings(of: place, database, now: now)
            let assessment = rule.assess(forecast, beside: second, alerts: warnings, now: now)
            // The user may have removed the place while the request was running.
            guard var known = try Place.fetchOne(database, key: place.id) else { return assessment }
            // A time zone identifier is also the name of a file in the time zone database. The identifier comes from a server, so
            // only known identifiers without ".." are used.
            if let zone = forecast.timeZoneIdentifier, zone != known.timeZone, !zone.contains(".."),
                TimeZone(identifier: zone) != nil
            {
                known.timeZone = zone
                try known.update(database)
            }
            // If a request continued in the agent, its response may arrive after a newer response. The older response does not
            // replace the newer response. A stored date in the future is ignored, because it was written while the clock was
            // ahead.
            let held = Self.forecast(of: place, database)?.fetchedAt ?? .distantPast
            let isNewest = held <= fetchedAt || held > now
            if isNewest {
                var record = ForecastRecord(
                    place: place.id!, content: forecast, fetchedAt: fetchedAt, second: second, provider: fetched.provider,
                    lastModified: fetched.lastModified, expiresAt: fetched.expiresAt)
                try record.save(database)
                var check = CheckRecord(
                    place: place.id!, at: now, assessment: assessment, trouble: nil, source: forecast.source,
                    fetchedAt: fetchedAt)
                try check.save(database)
            }
            let look = StormCheckData(assessment, rule: rule, forecast: isNewest ? forecast : nil, fetchedAt: fetchedAt, now: now)
            try Self.follow(look, place: place.id!, database)
            try Self.removeUncounted(at: place, database)
            return assessment
        }
    }

    /// Stores a judgement. Stores the judgement of warnings, which may arrive after the forecast of the same check, or without a
    /// forecast.
    ///
    /// - Parameter knowsForecast: `false` if only warnings were judged. If only warnings were judged and no storm is expected,
    ///   the result of an earlier calm check is kept.
    static func storeJudgement(_ assessment: Assessment, knowsForecast: Bool, of place: Place, _ database: Database, now: Date)
        throws
    {
        let known = try CheckRecord.fetchOne(database, key: place.id)
        guard assessment.isStormy == true || known?.isStormy == true || known != nil && knowsForecast else { return }
        var check = known ?? CheckRecord(place: place.id!, at: now, source: OpenMeteo.source)
        check.assessment = assessment
        try check.save(database)
    }

    /// Stores the reason why a check had no usable response. The judgement of an earlier check is kept.
    func storeCheckTrouble(_ trouble: String, of place: Place, now: Date) throws {
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return }
            var check =
                try CheckRecord.fetchOne(database, key: place.id)
                ?? CheckRecord(place: place.id!, at: now, source: OpenMeteo.source)
            check.at = now
            check.trouble = trouble
            try check.save(database)
        }
    }
}
