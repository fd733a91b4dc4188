import Foundation
import StormyWeather
import Testing

@testable import Stormy

/// What is kept of a forecast, whatever the clock said when it came.
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
        _ = try store.take(
            FetchedForecast(forecast(code, from: now), by: .openMeteo, nil), of: place, fetchedAt: fetchedAt, rule: StormRule(),
            now: now)
    }

    /// By a day, and by a year: what was fetched then gives way to what is fetched under the right clock.
    @Test(arguments: [86_400, 365 * 86_400] as [Double]) func aClockThatWasAheadHoldsNoForecast(_ ahead: Double) throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(0, of: place, fetchedAt: noon + ahead, now: noon + ahead)
        try take(95, of: place, fetchedAt: noon, now: noon)
        #expect(try store.lastForecast(of: place)?.fetchedAt == noon)
        #expect(try store.checks().map(\.isStormy) == [true])
    }

    @Test func aLateAnswerReplacesNoFresherOne() throws {
        let place = try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1))
        try take(95, of: place, fetchedAt: noon, now: noon)
        try take(0, of: place, fetchedAt: noon - 60, now: noon + 60)
        #expect(try store.lastForecast(of: place)?.fetchedAt == noon)
    }

    /// Storms and given photos stay; what was written under a clock that was ahead, too.
    @Test func whatIsLongOverIsForgotten() throws {
        let (old, place) = (noon - 31 * 86_400, try store.addPlace("Here", Coordinates(latitude: 1, longitude: 1)))
        try take(95, of: place, fetchedAt: old, now: old)
        let storm = try #require(try store.storms().first)
        try store.markTold(storm, now: old)
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
}
