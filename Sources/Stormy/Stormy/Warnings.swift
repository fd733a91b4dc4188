import BackgroundRuntime
import BackgroundTasks
import Foundation
import GRDB
import StormyWeather

/// The warnings of one service at one place.
struct WarningRecord: StoreRecord {
    static let databaseTableName = "warning"
    var place: Int64
    /// The name of a source, ``WarningCoverage/Source/key``. Each country of MeteoAlarm is a source.
    var service: String
    var messages: [AlertMessage]
    /// The time of the last response.
    var askedAt: Date
    /// The reason why a later request failed, or why a part of the last response is not used. `nil` if there is no problem.
    var trouble: String?
    /// `true` if ``trouble`` is about a part of the last response. The other parts of the response were used.
    var isPartial = false
    /// The latest time that the service has stated for its data (see ``DataTime``).
    var dataTime: Date?
    /// `true` if the service responded that the place is outside its area.
    var isOutside = false
    /// `true` if the last response may not contain all warnings, because a part was unreadable, or because the data was not newer
    /// than before.
    var isLacking = false

    /// `true` if MeteoAlarm is requested in place of the service.
    var needsSubstitute: Bool { isOutside || isLacking || trouble != nil && !isPartial }

    /// Returns the events at the place for the judgement.
    func events(at place: Place, now: Date) -> [AlertEvent] {
        let language = UserLocale.current.language.languageCode?.identifier
        let events = AlertBook(messages).events(at: place.coordinates, language: language, now: now, listedAt: askedAt)
        guard AlertService(key: service) == .meteoAlarm, let coordinates = place.coordinates else { return events }
        return AlertEvent.joined(events, at: coordinates, language: language)
    }
}

extension WarningRecord {
    /// Replaces the MeteoAlarm row of each place with one row for each country of the place. This method is a migration.
    static func divide(_ database: Database) throws {
        let (decoder, encoder) = (databaseJSONDecoder(for: "messages"), databaseJSONEncoder(for: "messages"))
        for place in try Place.all().fetchReadable(database) {
            let text: String? = try String.fetchOne(
                database, sql: "SELECT messages FROM warning WHERE place = ? AND service = 'meteoalarm'", arguments: [place.id])
            guard let text, let countries = place.coordinates.map({ RegionCoverage(of: $0).countries }) else { continue }
            let messages = (try? decoder.decode([AlertMessage].self, from: Data(text.utf8))) ?? []
            for country in countries {
                let own = messages.filter { Self.country(of: $0, in: messages, countries) == country }
                // If the place has several countries, the stored time is the oldest time of several feeds, and is removed.
                // Without this time, the next response must be newer than the last request.
                try database.execute(
                    sql: """
                        INSERT INTO warning
                            (place, service, messages, askedAt, trouble, dataTime, isPartial, isOutside, isLacking)
                        SELECT place, ?, ?, askedAt, trouble, CASE WHEN ? THEN dataTime END, isPartial, isOutside, isLacking
                        FROM warning WHERE place = ? AND service = 'meteoalarm'
                        """,
                    arguments: [
                        country.key, String(decoding: try encoder.encode(own), as: UTF8.self), countries.count == 1, place.id,
                    ])
            }
        }
        try database.execute(sql: "DELETE FROM warning WHERE service = 'meteoalarm'")
    }

    /// Returns the country whose feed links to a message, or to a message that this message replaces or ends. Returns the first
    /// country if no address belongs to a country.
    private static func country(
        of message: AlertMessage, in all: [AlertMessage], _ countries: [MeteoAlarmCountry]
    ) -> MeteoAlarmCountry? {
        let links = [message.link] + all.filter { message.references.contains($0.identifier) }.map(\.link)
        let named = links.compactMap(\.self).compactMap { link in countries.first { link.contains("/feeds-\($0.slug)/") } }
        return named.first ?? countries.first
    }
}

/// The result after the warning messages of one response were stored.
struct StoredWarnings {
    /// Parts of the messages that are not used as the service wrote them, one sentence each.
    var unused: [String] = []
    /// The number of warnings that are not listed any more, but are kept because the data is not newer than before.
    var keptCount = 0
}

extension StormyStore {
    /// The number of seconds for which messages are kept after the announced event has ended. A late cancellation can then still
    /// be matched with the event.
    private static let retention: Double = 3 * 86_400
    /// The number of seconds for which a stored forecast is used to judge a new warning.
    private static let usefulAge: Double = 12 * 3600

    /// Returns the events of all services at a place.
    func warnings(of place: Place) throws -> [AlertEvent] {
        try queue.read { try Self.warnings(of: place, $0, now: BGTaskScheduler.now) }
    }

    static func warnings(of place: Place, _ database: Database, now: Date) throws -> [AlertEvent] {
        var (own, substituteEvents, others): ([AlertEvent], [AlertEvent], [AlertEvent]) = ([], [], [])
        for (record, counts) in try Self.records(of: place, database) {
            let events = record.events(at: place, now: now)
            switch AlertService(key: record.service) {
            // Storms whose warnings come only from services and feeds that Stormy no longer uses are marked as no longer
            // expected.
            case _ where !counts: others += events.map { AlertEvent(messages: $0.messages, state: .cancelled, infos: []) }
            case .meteoAlarm?: substituteEvents += events
            case .some: own += events
            case nil: others += events
            }
        }
        return AlertEvent.joined(own, substituteEvents: substituteEvents) + others
    }

    /// Returns the time of the last response of each service. A service whose latest request failed is left out.
    func warningsAskedAt(at place: Place) throws -> [String: Date] {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return Dictionary(
            uniqueKeysWithValues: records.filter { $0.trouble == nil || $0.isPartial }.map { ($0.service, $0.askedAt) })
    }

    /// Returns the reasons why services could not be requested for warnings at a place.
    package func warningTroubles(of place: Place) throws -> [String] { try warningTroubles(of: place.id ?? 0) }

    package func warningTroubles(of place: Int64) throws -> [String] {
        let records = try queue.read { database in
            try Place.fetchOne(database, key: place).map { try Self.records(of: $0, database) } ?? []
        }
        return records.compactMap { record, counts in
            guard counts else { return nil }
            return record.trouble.map { "warnings of \(Self.shown(record.service)): \($0)" }
        }
    }

    /// The address of a feed may contain a key, so a short name is shown.
    static func shown(_ service: String) -> String { WarningCoverage.name(ofFeed: service) }

    /// Stores the current warnings of a service, and updates the storms that the warnings begin or end. The method uses one
    /// transaction.
    ///
    /// - Parameters:
    ///   - isFeed: `true` if the warnings are of a feed. Warnings that are not listed are kept, because a feed may list only its
    ///     newest warnings. Messages without an area count only together with a message of the same event that has an area.
    ///   - isComplete: `true` if warnings that are not listed have ended.
    ///   - emptyLinks: documents of a feed that contain no warning.
    ///   - dataTime: the time of the data according to the service.
    ///   - hasOwnTime: `true` if each response contains the time of the data. If the value is `false`, the time is compared with
    ///     the time of the last request.
    @discardableResult
    func storeWarnings(
        _ current: [AlertMessage], isFeed: Bool = false, isComplete: Bool = true, emptyLinks: Set<String> = [],
        dataTime: Date? = nil, hasOwnTime: Bool = true, by service: String, of place: Place, rule: StormRule, now: Date
    ) throws -> StoredWarnings {
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return StoredWarnings() }
            let known = try Self.record(service, place, database)
            let before = known?.messages ?? []
            let current = AlertMessage.keepingSeverities(current, before: before)
            var (book, taken) = (AlertBook(before), StoredWarnings())
            let last = hasOwnTime ? known?.dataTime ?? known?.askedAt : known?.askedAt
            let isNewer = DataTime.isNewer(dataTime, than: last, now: now)
            book.add(current, keepsUnlisted: isFeed || !isComplete || !isNewer, now: now)
            if isFeed {
                book.endEmptyDocuments(emptyLinks, current, now: now)
                if isComplete, isNewer { book.assumeUnlistedEnds(by: current) }
            } else if isComplete {
                taken.keptCount = book.endMissingWarnings(from: current, before, isNewer: isNewer, now: now)
            }
            book.prune(before: now - Self.retention)
            if let coordinates = place.coordinates { book.removeDistant(at: coordinates, isAsked: !isFeed) }
            var record = WarningRecord(place: place.id!, service: service, messages: book.messages, askedAt: now)
            // A complete response may end warnings even if an incomplete response of the same time was stored before.
            record.isLacking = !isComplete || taken.keptCount > 0
            record.dataTime = isComplete ? DataTime.latest(dataTime, known?.dataTime, now: now) : known?.dataTime
            try record.save(database)
            try Self.judgeWarnings(of: place, rule: rule, now: now, database)
            taken.unused = book.unusedReferences(of: current, now: now) + AlertMessage.doubts(in: current)
            return taken
        }
    }

    /// Judges the warnings of a place together with the stored forecast, and updates the storms of the place.
    private static func judgeWarnings(of place: Place, rule: StormRule, now: Date, _ database: Database) throws {
        let forecast = Self.forecast(of: place, database)
        let isUseful = forecast.map { (0...Self.usefulAge).contains(now.timeIntervalSince($0.fetchedAt)) } ?? false
        let useful = isUseful ? forecast?.content : nil
        let assessment = rule.assess(
            useful ?? Forecast(hours: []), beside: useful == nil ? nil : forecast?.second,
            alerts: try Self.warnings(of: place, database, now: now), now: now)
        let look = StormCheckData(assessment, rule: rule, forecast: useful, fetchedAt: forecast?.fetchedAt, now: now)
        try Self.follow(look, place: place.id!, database)
        try Self.removeUncounted(at: place, database)
        try Self.storeJudgement(assessment, knowsForecast: useful != nil, of: place, database, now: now)
    }

    /// Marks a storm as no longer expected if Stormy no longer uses the service or feed of its warning. The method does not need
    /// a response of a service.
    func endUncounted(at place: Place, rule: StormRule, now: Date) throws {
        let hasUncounted = try queue.read { try Self.records(of: place, $0) }.contains { !$0.counts }
        if !hasUncounted { return }
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return }
            try Self.judgeWarnings(of: place, rule: rule, now: now, database)
        }
    }

    /// Returns whether a response no longer lists a stored warning that has not ended.
    func hasUnlisted(_ current: [AlertMessage], by service: String, of place: Place, now: Date) throws -> Bool {
        let before = try queue.read { try Self.record(service, place, $0) }?.messages ?? []
        var book = AlertBook(before)
        book.add(current, now: now)
        return book.endMissingWarnings(from: current, before, isNewer: false, now: now) > 0
    }

    /// Records that a service could not be requested. Earlier warnings of the service stay valid.
    ///
    /// - Parameter isPartial: `true` if the service responded, and only a part of its response is not used.
    func storeWarningTrouble(_ trouble: String, isPartial: Bool = false, by service: String, of place: Place) throws {
        try updateWarnings(by: service, of: place) { ($0.trouble, $0.isPartial) = (trouble, isPartial) }
    }

    func storeWarningTrouble(_ error: WeatherError, by service: String, of place: Place) throws {
        try storeWarningTrouble(error.message, isPartial: error.isOfUsedAnswer, by: service, of: place)
    }

    func updateWarnings(by service: String, of place: Place, _ change: (inout WarningRecord) -> Void) throws {
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return }
            var record =
                try Self.record(service, place, database)
                ?? WarningRecord(place: place.id!, service: service, messages: [], askedAt: .distantPast)
            change(&record)
            try record.save(database)
        }
    }

    private static func record(_ service: String, _ place: Place, _ database: Database) throws -> WarningRecord? {
        try WarningRecord.filter(Column("place") == place.id && Column("service") == service).fetchReadable(database).first
    }
}
