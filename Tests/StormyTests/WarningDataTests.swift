import Foundation
import GRDB
import StormyWeather
import Testing

@testable import Stormy

/// Tests stored warnings if a service sends old data. Also tests the stored time of the last response of each service.
@Suite final class WarningDataTests {
    private let folder: URL
    private let store: StormyStore
    private let place: Place
    private let noon = Date(timeIntervalSince1970: 1_800_000_000)

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        store = try StormyStore(folder: folder)
        place = try store.addPlace("Miami", Coordinates(latitude: 25.76, longitude: -80.19))
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func warning(_ identifier: String = "a") -> AlertMessage {
        let info = AlertInfo(
            event: "Tornado Warning", hazard: .wind, severity: .severe, from: noon, until: noon + 10 * 3600, issuer: "NWS",
            areas: [])
        return AlertMessage(identifier: identifier, sent: noon, infos: [info])
    }

    /// - Parameters:
    ///   - hours: The time of the request, in hours after noon.
    ///   - data: The time of the service's data, in hours after noon.
    /// - Returns: The number of warnings that were kept.
    private func take(_ messages: [AlertMessage], at hours: Double, data: Double?, hasOwnTime: Bool = true) throws -> Int {
        try store.storeWarnings(
            messages, dataTime: data.map { noon + $0 * 3600 }, hasOwnTime: hasOwnTime, by: "nws", of: place, rule: StormRule(),
            now: noon + hours * 3600
        ).keptCount
    }

    private var standing: Int {
        get throws { try store.warnings(of: place).count { $0.state == .standing } }
    }

    @Test func `a warning that disappears is kept while the service's data is not newer`() throws {
        #expect(try take([warning()], at: 1, data: 1) == 0)
        // The service responds again. The data of the service is from before its outage.
        #expect(try take([], at: 2, data: 0.5) == 1 && standing == 1)
        #expect(try take([], at: 3, data: 1) == 1 && standing == 1)
        #expect(try take([warning("b")], at: 3.5, data: 1) == 1 && standing == 2, "a new warning counts at once")
        #expect(try take([], at: 4, data: 3.9) == 0 && standing == 0)
        #expect(try take([warning()], at: 5, data: 3) == 0 && standing == 0, "old data does not restore a warning")
    }

    @Test func `a response without a time ends warnings as before`() throws {
        #expect(try take([warning()], at: 1, data: 1) == 0)
        #expect(try take([], at: 2, data: nil) == 0 && standing == 0)
    }

    @Test func `a time in the future is not stored and does not hold warnings`() throws {
        #expect(try take([warning()], at: 1, data: 900) == 0)
        #expect(try take([], at: 2, data: 1.5) == 0 && standing == 0)
    }

    @Test func `a wrong clock of this machine does not keep a warning`() throws {
        // The clock was a month ahead, so the time of the service's data did not seem to be in the future.
        #expect(try take([warning()], at: 720, data: 720) == 0)
        #expect(try take([warning()], at: 1, data: 0.9) == 0)
        #expect(try take([], at: 2, data: 1.9) == 0 && standing == 0)
    }

    /// Stormy requests the time of Bright Sky's data only when a warning disappears.
    @Test func `a separate time is compared with the last request`() throws {
        #expect(try take([warning()], at: 5, data: nil, hasOwnTime: false) == 0)
        #expect(try store.hasUnlisted([], by: "nws", of: place, now: noon + 6 * 3600))
        #expect(try !store.hasUnlisted([warning()], by: "nws", of: place, now: noon + 6 * 3600))
        #expect(try !store.hasUnlisted([], by: "nws", of: place, now: noon + 11 * 3600), "it is over")
        #expect(try take([], at: 6, data: 4.5, hasOwnTime: false) == 1 && standing == 1)
        #expect(try take([], at: 7, data: 6.5, hasOwnTime: false) == 0 && standing == 0)
    }

    @Test func `an incomplete response does not set the time`() throws {
        #expect(try take([warning()], at: 1, data: 1) == 0)
        try store.storeWarnings(
            [], isComplete: false, dataTime: noon + 2 * 3600, by: "nws", of: place, rule: StormRule(), now: noon + 2 * 3600)
        #expect(try standing == 1)
        #expect(try take([], at: 3, data: 2) == 0 && standing == 0)
    }

    @Test func `the last response of each service of a place is stored`() throws {
        var settings = StormySettings(dataFolder: folder)
        settings.warningFeeds = ["https://cap.example/feed"]
        let coverage = try #require(settings.warningCoverage(of: place))
        func answers(at hours: Double) throws -> [WarningResult] {
            try store.warningAnswers(coverage, at: place, now: noon + hours * 3600)
        }
        #expect(try answers(at: 1).map(\.outcome) == [.notRequested, .notRequested])
        _ = try take([warning()], at: 1, data: 1)
        try store.storeWarningTrouble("no route", by: "https://cap.example/feed", of: place)
        let first = try answers(at: 2)
        #expect(first.map(\.outcome) == [.answered, .failed("no route")] && first.map(\.activeCount) == [1, 0])
        #expect(first.map(\.answeredAt) == [noon + 3600, nil] && first[0].dataTime == noon + 3600)
        #expect(try answers(at: 11).map(\.activeCount) == [0, 0], "it is over")
        try store.recordOutsideArea(by: "nws", of: place, now: noon + 3 * 3600)
        let outside = try answers(at: 3)
        #expect(outside[0].outcome == .notCovered && outside[0].activeCount == 1, "a 404 ends no warning")
        _ = try take([warning()], at: 4, data: 4)
        #expect(try answers(at: 4)[0].outcome == .answered)
    }

    @Test func `a response that may lack warnings needs a substitute, but a remark does not`() throws {
        func failing() throws -> Bool { try store.failingServices(at: place) == [.nws] }
        _ = try take([warning()], at: 1, data: 1)
        #expect(try !failing())
        try store.storeWarningTrouble(.unusedReferences(["a reference is not used"]), by: "nws", of: place)
        #expect(try !failing())
        #expect(try take([], at: 2, data: 0.5) == 1 && failing(), "old data")
        _ = try take([], at: 3, data: 3)
        #expect(try !failing())
        try store.storeWarningTrouble("no route", by: "nws", of: place)
        #expect(try failing())
    }

    @Test func `a hazard in warnings of a service and of its substitute counts once`() throws {
        _ = try take([warning()], at: 1, data: 1)
        var same = warning("m")
        same.infos[0].until = noon + 12 * 3600
        var other = warning("n")
        other.infos[0].severity = .extreme
        try store.storeWarnings(
            [same, other], by: "meteoalarm/germany", of: place, rule: StormRule(), now: noon + 2 * 3600)
        let events = try store.warnings(of: place)
        #expect(Set(events.map(\.messages)) == [["a", "m"], ["n"]] && events.allSatisfy { $0.infos.count == 1 }, "\(events)")
        #expect(events.first { $0.messages.contains("a") }?.infos.first?.until == noon + 12 * 3600)
        // The service for the place responds again, without the warning.
        #expect(try take([], at: 3, data: 3) == 0)
        let left = try store.warnings(of: place).filter { $0.state == .standing }
        #expect(Set(left.map(\.messages)) == [["m"], ["n"]], "\(left)")
    }

    @Test func `documents of a feed with one identifier are stored apart`() throws {
        func document(_ link: String, severity: CAPSeverity) throws -> AlertMessage {
            var message = warning()
            message.link = link
            message.infos[0].severity = severity
            message.infos[0].areas = [
                AlertArea(name: "", circles: [.init(center: try #require(place.coordinates), kilometres: 50)])
            ]
            return message
        }
        let documents = try [document("/1", severity: .severe), document("/2", severity: .extreme)]
        func severities(_ listed: [AlertMessage], at hours: Double) throws -> [CAPSeverity?] {
            try store.storeWarnings(
                listed, isFeed: true, by: "https://cap.example/feed", of: place, rule: StormRule(), now: noon + hours * 3600)
            return try store.warnings(of: place).flatMap(\.infos).map(\.severity)
        }
        for hours in [1.0, 2] { #expect(try severities(documents, at: hours) == [.severe, .extreme]) }
        #expect(try severities([documents[1]], at: 3) == [.severe, .extreme], "a feed may list its newest alone")
        // This service always lists all its warnings. A warning that the service no longer lists is therefore no longer valid.
        for (count, listed) in [documents, [documents[0]]].enumerated() {
            try store.storeWarnings(
                listed, by: "meteoalarm/germany", of: place, rule: StormRule(), now: noon + Double(4 + count) * 3600)
        }
        let stored = try store.queue.read { try WarningRecord.filter(Column("service") == "meteoalarm/germany").fetchAll($0) }
        #expect(stored.first?.messages.compactMap(\.link) == ["/1"])
    }

    @Test func `documents of a feed that are not used are reported`() {
        var found = FeedWarnings.Found(messages: [], missing: 0, notRequested: 0, leftOut: 0, emptyLinks: [])
        #expect(found.lacking.isEmpty)
        (found.missing, found.notRequested, found.leftOut) = (1, 250, 3)
        #expect(
            found.lacking == [
                "1 of the feed's documents could not be read, and will be requested again",
                "250 of the feed's documents were not requested yet, because there are too many for one check",
                "3 of the feed's documents were not used, because they exceed a limit or their links are not valid",
            ])
    }

    @Test func `stored warnings of all countries are assigned to their countries by the migration`() throws {
        let valga = try store.addPlace("Valga", Coordinates(latitude: 57.775, longitude: 26.032))
        let annecy = try store.addPlace("Annecy", Coordinates(latitude: 45.8992, longitude: 6.1294))
        func message(_ country: String) -> AlertMessage {
            var message = warning(country)
            message.link = "https://feeds.meteoalarm.org/api/v1/warnings/feeds-\(country)/1"
            return message
        }
        func take(_ messages: [AlertMessage], _ place: Place, _ service: String, at hours: Double) throws {
            try store.storeWarnings(
                messages, dataTime: noon + hours * 3600, by: service, of: place, rule: StormRule(), now: noon + hours * 3600)
        }
        let unlinked = warning("unlinked")
        var ended = message("latvia")
        (ended.identifier, ended.link) = ("ended", ended.link.map { $0 + "2" })
        for (hours, listed) in [(1.0, [ended]), (2.0, [])] {
            try take([message("estonia"), message("latvia"), unlinked] + listed, valga, "meteoalarm", at: hours)
        }
        try take([message("france")], annecy, "meteoalarm", at: 2)
        try store.queue.write { try $0.execute(sql: "DELETE FROM grdb_migrations WHERE identifier LIKE '15:%'") }
        let migrated = try StormyStore(folder: folder)
        func stored(_ place: Place) throws -> [String: [String]] {
            let records = try migrated.queue.read { try WarningRecord.filter(Column("place") == place.id).fetchAll($0) }
            return Dictionary(uniqueKeysWithValues: records.map { ($0.service, $0.messages.map(\.identifier).sorted()) })
        }
        let rows = try stored(valga)
        #expect(
            rows == [
                "meteoalarm/estonia": ["estonia", "unlinked"], "meteoalarm/latvia": ["ended", "ended gone", "latvia"],
            ], "\(rows)")
        #expect(try stored(annecy) == ["meteoalarm/france": ["france"]])
        let times = try migrated.queue.read { try WarningRecord.order(Column("service")).fetchAll($0) }.map(\.dataTime)
        #expect(times == [nil, noon + 2 * 3600, nil], "the oldest time of two feeds is not the time of one")
        func standing() throws -> Int { try migrated.warnings(of: valga).count { $0.state == .standing } }
        #expect(try standing() == 2, "the warnings of one country are joined")
        try migrated.storeWarnings(
            [], dataTime: noon + 1.5 * 3600, by: "meteoalarm/estonia", of: valga, rule: StormRule(), now: noon + 3 * 3600)
        #expect(try standing() == 2)
        try migrated.storeWarnings(
            [], dataTime: noon + 3.5 * 3600, by: "meteoalarm/estonia", of: valga, rule: StormRule(), now: noon + 4 * 3600)
        #expect(try standing() == 1)
    }

    @Test func `a store of the version before is migrated and keeps its warnings`() throws {
        _ = try take([warning()], at: 1, data: nil)
        try store.queue.write { database in
            try database.execute(
                sql: """
                    ALTER TABLE warning DROP COLUMN dataTime; ALTER TABLE warning DROP COLUMN isOutside;
                    DELETE FROM grdb_migrations WHERE identifier LIKE '9:%'
                    """)
        }
        let migrated = try StormyStore(folder: folder)
        #expect(try migrated.warnings(of: place).count == 1)
        try migrated.storeWarnings(
            [], dataTime: noon + 2 * 3600, by: "nws", of: place, rule: StormRule(), now: noon + 2 * 3600)
        #expect(try migrated.warnings(of: place).map(\.state) == [.cancelled])
    }
}
