import Foundation
import FoundationNetworking
import GRDB
import StormyWeather
import Testing

@testable import Stormy

/// Tests stored forecasts and checks, also if they were stored while the clock was wrong.
@Suite final class CheckTests {
    private let folder: URL
    private let store: StormyStore
    private let noon = Date(timeIntervalSince1970: 1_800_000_000)

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        store = try StormyStore(folder: folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func forecast(_ code: Int, from start: Date) -> Forecast {
        Forecast(
            hours: (0..<24).map {
                ForecastHour(start: start.addingTimeInterval(Double($0) * 3600), weatherCode: code, precipitationMM: 3)
            })
    }

    private func take(_ code: Int, of place: Place, fetchedAt: Date, now: Date) throws {
        _ = try store.storeResponse(
            FetchedForecast(forecast(code, from: now), by: .openMeteo, nil), of: place, fetchedAt: fetchedAt, rule: StormRule(),
            now: now)
    }

    /// The clock was ahead by a day or by a year.
    @Test(arguments: [86_400, 365 * 86_400] as [Double])
    func `a forecast that was fetched under a clock that was ahead is replaced`(_ ahead: Double) throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(0, of: place, fetchedAt: noon + ahead, now: noon + ahead)
        try take(95, of: place, fetchedAt: noon, now: noon)
        #expect(try store.lastForecast(of: place)?.fetchedAt == noon)
        #expect(try store.checks().map(\.isStormy) == [true])
    }

    private func warn(_ place: Place, isListed: Bool = true, at now: Date) throws {
        let info = AlertInfo(
            event: "Tornado", hazard: .wind, severity: .severe, from: noon, until: noon + 10 * 3600, issuer: "X", areas: [])
        let message = AlertMessage(identifier: "a", sent: noon, infos: [info])
        try store.storeWarnings(isListed ? [message] : [], by: "nws", of: place, rule: StormRule(), now: now)
    }

    @Test func `the last check includes warnings that arrive after its forecast`() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(0, of: place, fetchedAt: noon, now: noon)
        try warn(place, at: noon + 2)
        #expect(try store.checks().map(\.isStormy) == [true])
        #expect(try store.checks().map(\.at) == [noon])
        try warn(place, isListed: false, at: noon + 4)
        #expect(try store.checks().map(\.isStormy) == [false])
    }

    @Test func `the last check includes warnings while no forecast is known`() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try warn(place, isListed: false, at: noon)
        #expect(try store.checks().isEmpty)
        try warn(place, at: noon + 1)
        #expect(try store.checks().map(\.isStormy) == [true])
        try store.storeCheckTrouble("no answer", of: place, now: noon + 2)
        #expect(try store.checks().map(\.isStormy) == [true])
        try warn(place, isListed: false, at: noon + 3)
        #expect(try store.checks().map(\.isStormy) != [true])
    }

    @Test func `warnings alone do not replace an earlier calm check`() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(0, of: place, fetchedAt: noon, now: noon)
        try warn(place, isListed: false, at: noon + 5 * 86_400)
        #expect(try store.checks().map(\.isStormy) == [false])
    }

    @Test func `a late response does not replace a fresher forecast`() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(95, of: place, fetchedAt: noon, now: noon)
        try take(0, of: place, fetchedAt: noon - 60, now: noon + 60)
        #expect(try store.lastForecast(of: place)?.fetchedAt == noon)
    }

    /// Records that were written while the clock was ahead are also kept.
    @Test func `old forecasts and cancelled photo requests are removed, storms and photos are kept`() throws {
        let (old, place) = (noon - 31 * 86_400, try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1)))
        try take(95, of: place, fetchedAt: old, now: old)
        let storm = try #require(try store.storms().first)
        try store.openPhotoRequest(of: storm, now: old)
        try store.queue.write { database in
            try database.execute(
                sql: """
                    UPDATE photo SET state = 'cancelled';
                    INSERT INTO photo (state, path, createdAt, changedAt) VALUES ('completed', '/a.jpg', 0, 0), ('cancelled', '/b.jpg', 0, 0);
                    INSERT INTO photo (state, createdAt, changedAt) VALUES ('awaitingPhoto', 0, 0), ('cancelled', 0, 2e9);
                    """)
        }
        try store.prune(now: noon)
        #expect(try store.lastForecast(of: place) == nil)
        #expect(try store.storms().map(\.id) == [storm.id])
        #expect(try store.photos().map(\.state) == [.completed, .cancelled, .awaitingPhoto, .cancelled])
        #expect(try store.checks().count == 1)
    }

    /// If a row cannot be read, it is damaged or comes from a later version. Stormy still reads the other rows.
    @Test func `a row that cannot be read is skipped and replaced by the next response`() throws {
        let (here, there) = (
            try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1)),
            try store.addPlace("There", Coordinates(latitude: 2, longitude: 1))
        )
        func warn(_ place: Place) throws {
            let info = AlertInfo(
                event: "Storm", hazard: .wind, severity: .severe, from: noon, until: noon + 3600, issuer: "X", areas: [])
            try store.storeWarnings(
                [AlertMessage(identifier: "a", sent: noon, infos: [info])], by: "nws", of: place, rule: StormRule(), now: noon)
        }
        try warn(here)
        try warn(there)
        try store.queue.write { database in
            try database.execute(
                sql: """
                    UPDATE warning SET messages = '[{}]' WHERE place = 1; UPDATE storm SET reasons = '?' WHERE place = 1;
                    UPDATE place SET provider = 'of-2030' WHERE id = 1
                    """)
        }
        #expect(try store.places().map(\.provider) == [nil, nil])
        #expect(try store.warnings(of: here).isEmpty && store.warnings(of: there).count == 1)
        #expect(try store.storms().map(\.place) == [2])
        try warn(here)
        #expect(try store.warnings(of: here).count == 1)
    }

    /// If a storm was called off and is expected again, it can have another photo.
    @Test func `a storm has one photo request, and another after the first is cancelled`() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(95, of: place, fetchedAt: noon, now: noon)
        let storm = try #require(try store.storms().first)
        for _ in 0..<2 { try store.openPhotoRequest(of: storm, now: noon) }
        #expect(try store.photos().count == 1)
        _ = try store.cancelPhoto(1)
        try store.openPhotoRequest(of: storm, now: noon)
        #expect(try store.photos().map(\.state) == [.cancelled, .awaitingPhoto])
    }

    /// The age of a forecast is counted from the time when the service issued it, and not from the time of the response 304.
    @Test func `a response without a newer forecast does not make an old forecast fresh`() async throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 60, longitude: 10), provider: .metNorway)
        let source = try #require(WeatherSource(.metNorway, place, StormySettings(dataFolder: folder)))
        var old = forecast(0, from: noon)
        old.issuedAt = noon - 5 * 3600
        let stored = FetchedForecast(
            content: old, provider: .metNorway, lastModified: "Fri, 01 Jan 2027 00:00:00 GMT", expiresAt: nil)
        let url = try #require(try source.firstRequest(now: noon).url)
        let nothingNewer = try #require(HTTPURLResponse(url: url, statusCode: 304, httpVersion: nil, headerFields: nil))
        func ask(at now: Date) async throws -> [String?] {
            var asked: [String?] = []
            _ = try await source.fetch(stored: stored, now: now) { request in
                asked.append(request.value(forHTTPHeaderField: "If-Modified-Since"))
                return (Data(), nothingNewer)
            }
            return asked
        }
        #expect(try await ask(at: noon) == [stored.lastModified])
        // If the stored forecast is too old, the request contains no `If-Modified-Since`. Without `If-Modified-Since`, a response
        // 304 is an error.
        await #expect(throws: WeatherError.self) { _ = try await ask(at: noon + 30 * 3600) }
    }
}

/// Tests storms that an earlier version stored.
@Suite struct StormMigrationTests {
    private static let earlier = [
        "1: places, forecasts, storms, photos", "2: photos can be given again", "3: where photos went",
        "4: no passwords in destinations", "5: photos that wait for a good moment", "6: more than one weather service",
        "7: official warnings",
    ]

    @Test func `flags of an earlier version become lives`() throws {
        let database = try DatabaseQueue()
        let migrator = StormyStore.migrator
        try migrator.migrate(database, upTo: Self.earlier[6])
        try database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO place (name, latitude, longitude) VALUES ('Here', 1, 1);
                    INSERT INTO storm (place, begins, ends, isTold, isClosed, isCancelled, reasons) VALUES
                        (1, 100, 200, 1, 0, 0, '[{"kind":"gusts","peak":110,"from":100000,"until":200000}]'),
                        (1, 100, 200, 0, 0, 0, '[{"kind":"gusts","peak":90,"from":100000,"until":200000}]'),
                        (1, 100, 200, 1, 1, 0, '[]'), (1, 100, 200, 0, 1, 1, '[]'), (1, 100, 200, 1, 0, 0, '?')
                    """)
        }
        try migrator.migrate(database)
        let lives = try database.read { try StormRecord.order(Column("id")).fetchReadable($0) }.map(\.life)
        #expect(lives.map(\.isShown) == [true, false, false, false], "a damaged row is left out")
        #expect(lives[0].shown?.alerted.level == .severe && lives[0].isOpen(now: Date(timeIntervalSince1970: 150)))
        #expect(lives[2].isClosed && lives[2].shown != nil)
        #expect(lives[3].outlook == .notExpected)
        let moment = Date(timeIntervalSince1970: 150)
        for var life in [lives[0], lives[3]] {
            #expect(!life.handle(.checked(StormNotificationState(.dismissed), now: moment)).contains(.alert))
        }
    }
}
