import Foundation
import GRDB
import StormyWeather

/// The last forecast of a place, as fetched.
struct ForecastRecord: StoreRecord {
    static let databaseTableName = "forecast"
    var place: Int64
    var content: Forecast
    var fetchedAt: Date
    /// Of another service, asked as this one has thunder that nothing confirms.
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
    /// `nil` when nothing could be judged.
    package var assessment: Assessment?
    /// Why the service could not be asked, or its answer not be used.
    package var trouble: String?
    package var source: String
    package var fetchedAt: Date?

    package var isStormy: Bool? { assessment?.isStormy }
}

extension CheckRecord: StoreRecord {
    package static let databaseTableName = "checkResult"
}

/// What a check comes to: the judgement, how old its data is, and what went wrong on the way.
package struct CheckOutcome: Sendable {
    package var place: Place
    package var assessment: Assessment?
    package var fetchedAt: Date?
    /// Why the stored copy was used, or why there is nothing.
    package var trouble: String?
    /// Not refreshed just now although that was tried, or too old to rely on.
    package var isStale: Bool
    package var source: String
    /// Services that were asked before, each with its reason.
    package var notAnswered: [String] = []
    /// What was judged; `nil`: there is none.
    package var forecast: Forecast?
}

extension StormyStore {
    package func checks() throws -> [CheckRecord] { try queue.read { try CheckRecord.fetchAll($0) } }

    /// What the last one came to; `nil`: there was none.
    func check(of place: Place) throws -> CheckRecord? { try queue.read { try CheckRecord.fetchOne($0, key: place.id) } }

    func lastForecast(of place: Place) throws -> ForecastRecord? { try queue.read { Self.forecast(of: place, $0) } }

    /// The last answer, for whoever asks again. `nil`: none, or one that was fetched under a clock that was ahead.
    func lastAnswer(of place: Place, now: Date) throws -> FetchedForecast? {
        try lastForecast(of: place).flatMap { record in
            guard record.fetchedAt <= now else { return nil }
            var fetched = record.fetched
            fetched.fetchedAt = record.fetchedAt
            return fetched
        }
    }

    /// What cannot be read is as good as none: the next answer takes its place.
    static func forecast(of place: Place, _ database: Database) -> ForecastRecord? {
        do {
            return try ForecastRecord.fetchOne(database, key: place.id)
        } catch {
            logError("the forecast of \(place.name) cannot be read: \(error)")
            return nil
        }
    }

    /// Takes an answer in one transaction: forecast, judgement, storms. Taking the same answer twice changes nothing more.
    ///
    /// - Parameter second: of another service, where one was asked.
    func take(
        _ fetched: FetchedForecast, beside second: Forecast? = nil, of place: Place, fetchedAt: Date, rule: StormRule, now: Date
    ) throws -> Assessment {
        let forecast = fetched.content
        return try queue.write { database in
            let warnings = try Self.warnings(of: place, database, now: now)
            let assessment = rule.assess(forecast, beside: second, alerts: warnings, now: now)
            // Removed while its answer was on the way.
            guard var known = try Place.fetchOne(database, key: place.id) else { return assessment }
            // A service's word names a file of the zone tables: only a name that is known, never a path.
            if let zone = forecast.timeZoneIdentifier, zone != known.timeZone, !zone.contains(".."),
                TimeZone(identifier: zone) != nil
            {
                known.timeZone = zone
                try known.update(database)
            }
            // An answer that was handed over may arrive after a fresher one. One from the future was taken by a clock that was ahead.
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
            let look = StormLook(assessment, rule: rule, forecast: isNewest ? forecast : nil, fetchedAt: fetchedAt, now: now)
            try Self.follow(look, place: place.id!, database)
            try Self.removeUncounted(at: place, database)
            return assessment
        }
    }

    /// Warnings may arrive after the forecast of the same check, or without one.
    ///
    /// - Parameter knowsForecast: `false` if the warnings alone were judged. They do not replace the result of an earlier calm check.
    static func note(_ assessment: Assessment, knowsForecast: Bool, of place: Place, _ database: Database, now: Date) throws {
        let known = try CheckRecord.fetchOne(database, key: place.id)
        guard assessment.isStormy == true || known?.isStormy == true || known != nil && knowsForecast else { return }
        var check = known ?? CheckRecord(place: place.id!, at: now, source: OpenMeteo.source)
        check.assessment = assessment
        try check.save(database)
    }

    /// A check that brought no usable answer. What is known stays.
    func noteTrouble(_ trouble: String, of place: Place, now: Date) throws {
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
