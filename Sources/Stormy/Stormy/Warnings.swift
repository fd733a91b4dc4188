import BackgroundRuntime
import BackgroundTasks
import Foundation
import GRDB
import StormyWeather

/// What one service warns of at one place.
struct WarningRecord: StoreRecord {
    static let databaseTableName = "warning"
    var place: Int64
    /// Of an ``AlertService``, or a feed's address.
    var service: String
    var messages: [AlertMessage]
    /// When it answered last.
    var askedAt: Date
    /// Why it could not be asked since; `nil`: it could.
    var trouble: String?

    /// What a feed warned of that was taken out of the configuration counts no more.
    var isAsked: Bool {
        guard StormySettings.areSet, AlertService(rawValue: service) == nil else { return true }
        return StormySettings.current.warningFeeds.contains(service)
    }
}

extension StormyStore {
    /// Seconds that messages are kept after their event, so that a late cancellation still finds it.
    private static let retention: Double = 3 * 86_400
    /// Seconds for which a forecast says enough to be judged beside a new warning.
    private static let usefulAge: Double = 12 * 3600

    /// What is warned of at a place, of all services.
    func warnings(of place: Place) throws -> [AlertEvent] {
        try queue.read { try Self.warnings(of: place, $0, now: BGTaskScheduler.now) }
    }

    static func warnings(of place: Place, _ database: Database, now: Date) throws -> [AlertEvent] {
        let records = try WarningRecord.filter(Column("place") == place.id).fetchReadable(database).filter(\.isAsked)
        let language = PersonLocale.current.language.languageCode?.identifier
        return records.flatMap { record in
            AlertBook(record.messages).events(at: place.coordinates, language: language, now: now, listedAt: record.askedAt)
        }
    }

    /// When each service answered last. One that could not be asked since is left out.
    func warningsAskedAt(at place: Place) throws -> [String: Date] {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place.id).fetchReadable($0) }
        return Dictionary(uniqueKeysWithValues: records.filter { $0.trouble == nil }.map { ($0.service, $0.askedAt) })
    }

    /// Why services could not be asked for warnings at a place.
    package func warningTroubles(of place: Place) throws -> [String] { try warningTroubles(of: place.id ?? 0) }

    package func warningTroubles(of place: Int64) throws -> [String] {
        let records = try queue.read { try WarningRecord.filter(Column("place") == place).fetchReadable($0) }.filter(\.isAsked)
        return records.compactMap { record in record.trouble.map { "warnings of \(Self.shown(record.service)): \($0)" } }
    }

    /// A feed's address may hold a key.
    static func shown(_ service: String) -> String {
        guard let url = URLComponents(string: service), let host = url.host else { return service }
        return host + url.path
    }

    /// Takes what a service warns of now, in one transaction: the messages, and the storms that they make or end.
    ///
    /// - Parameters:
    ///   - isFeed: what it does not list is not taken back, as a feed may hold its newest ones alone; and what draws no area is
    ///     not meant by itself.
    ///   - isComplete: what is not listed is not warned of any more.
    ///   - emptyLinks: documents of a feed that contain no warning.
    /// - Returns: what of the messages is not used, one sentence each.
    @discardableResult
    func takeWarnings(
        _ current: [AlertMessage], isFeed: Bool = false, isComplete: Bool = true, emptyLinks: Set<String> = [],
        by service: String, of place: Place, rule: StormRule, now: Date
    ) throws -> [String] {
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return [] }
            let before = try Self.record(service, place, database)?.messages ?? []
            var book = AlertBook(before)
            for message in current { book.note(message) }
            if isFeed {
                book.noteEmpty(emptyLinks, current, now: now)
                if isComplete { book.noteUnlisted(by: current) }
            } else if isComplete {
                book.noteMissing(from: current, before, now: now)
            }
            book.prune(before: now - Self.retention)
            if let coordinates = place.coordinates { book.keep(at: coordinates, isAsked: !isFeed) }
            var record = WarningRecord(place: place.id!, service: service, messages: book.messages, askedAt: now)
            try record.save(database)
            let forecast = Self.forecast(of: place, database)
            let isUseful = forecast.map { (0...Self.usefulAge).contains(now.timeIntervalSince($0.fetchedAt)) } ?? false
            let known = isUseful ? forecast?.content : nil
            let assessment = rule.assess(
                known ?? Forecast(hours: []), beside: known == nil ? nil : forecast?.second,
                alerts: try Self.warnings(of: place, database, now: now), now: now)
            try Self.follow(assessment, place: place.id!, now: now, database)
            return book.unusedReferences(of: current, now: now)
        }
    }

    /// A service that could not be asked. What it warned of before stands.
    func noteWarningTrouble(_ trouble: String, by service: String, of place: Place) throws {
        try queue.write { database in
            guard try Place.fetchOne(database, key: place.id) != nil else { return }
            var record =
                try Self.record(service, place, database)
                ?? WarningRecord(place: place.id!, service: service, messages: [], askedAt: .distantPast)
            record.trouble = trouble
            try record.save(database)
        }
    }

    private static func record(_ service: String, _ place: Place, _ database: Database) throws -> WarningRecord? {
        try WarningRecord.filter(Column("place") == place.id && Column("service") == service).fetchReadable(database).first
    }
}
