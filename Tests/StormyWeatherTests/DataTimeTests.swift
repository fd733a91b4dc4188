import Foundation
import StormyWeather
import Testing

private let noon = Date(timeIntervalSince1970: 1_770_465_600)

/// Tests the time of a service's data. A response with data from before an outage must not end warnings.
@Suite struct DataTimeTests {
    /// Each row contains the time in the response, the stored time, and whether the response may end warnings. The times in the
    /// rows are in hours after noon.
    @Test(
        arguments: [
            (0, -1, true), (-1, -1, false), (-5, -1, false), (nil, -1, true), (0, nil, true), (nil, nil, true),
            // If a time is in the future, the service's clock or this machine's clock is wrong. A time in the future counts as
            // missing.
            (1, -1, true), (24 * 365, -1, true), (-1, 1, true), (2, 1, true),
        ] as [(Double?, Double?, Bool)])
    func `only times that can be true are compared`(_ time: Double?, _ last: Double?, _ isNewer: Bool) {
        func date(_ hours: Double?) -> Date? { hours.map { noon + $0 * 3600 } }
        #expect(DataTime.isNewer(date(time), than: date(last), now: noon) == isNewer)
    }

    @Test(
        arguments: [
            (0, -1, 0), (-5, -1, -1), (nil, -1, -1), (1, -1, -1), (-1, nil, -1), (-1, 1, -1), (2, nil, nil), (nil, nil, nil),
        ] as [(Double?, Double?, Double?)])
    func `the stored time never goes backwards or ahead of the clock`(_ time: Double?, _ last: Double?, _ stored: Double?) {
        func date(_ hours: Double?) -> Date? { hours.map { noon + $0 * 3600 } }
        #expect(DataTime.latest(date(time), date(last), now: noon) == date(stored))
    }

    @Test func `a time that was rounded when it was stored is the same time`() {
        let time = noon + 0.906_349
        let stored = Date(timeIntervalSince1970: (time.timeIntervalSince1970 * 1000).rounded(.down) / 1000)
        #expect(!DataTime.isNewer(time, than: stored, now: noon + 60))
        #expect(DataTime.isNewer(time + 0.01, than: stored, now: noon + 60))
    }

    private func warning(_ identifier: String) -> AlertMessage {
        AlertMessage(
            identifier: identifier, sent: noon,
            infos: [
                AlertInfo(
                    event: "Gale", hazard: .wind, severity: .severe, from: noon, until: noon + 7200, issuer: "X", areas: [])
            ])
    }

    @Test func `data that is not newer ends no warning and brings none back`() {
        var book = AlertBook([warning("a"), warning("b")])
        func list(_ messages: [AlertMessage], isNewer: Bool) -> Int {
            let before = book.messages
            for message in messages { book.add(message) }
            return book.endMissingWarnings(from: messages, before, isNewer: isNewer, now: noon)
        }
        func states() -> [AlertEvent.State] {
            book.events(at: nil, language: nil).sorted { $0.messages[0] < $1.messages[0] }.map(\.state)
        }
        #expect(list([], isNewer: false) == 2 && states() == [.standing, .standing])
        #expect(list([warning("b")], isNewer: true) == 0 && states() == [.cancelled, .standing])
        // The old data contains a warning that has ended since then.
        #expect(list([warning("a"), warning("c")], isNewer: false) == 1 && states() == [.cancelled, .standing, .standing])
        #expect(list([warning("a"), warning("b"), warning("c")], isNewer: true) == 0)
        #expect(states() == [.standing, .standing, .standing])
    }

    @Test func `the times of the services are read`() throws {
        func time(_ text: String, _ service: AlertService = .nws) throws -> Date? {
            try service.read(Data(text.utf8), status: 200, now: noon).dataTime
        }
        let updated = try #require(try? Date("2026-02-07T10:00:00Z", strategy: .iso8601))
        #expect(try time(#"{"features":[],"updated":"2026-02-07T10:00:00+00:00"}"#) == updated)
        #expect(try time(#"{"@graph":[],"updated":"2026-02-07T05:00:00-05:00"}"#) == updated)
        for nonsense in [#"{"features":[]}"#, #"{"features":[],"updated":"noon"}"#, #"{"features":[],"updated":[]}"#] {
            #expect(try time(nonsense) == nil)
        }
        let sources = """
            {"weather":{},"sources":[{"observation_type":"forecast","last_record":"2026-02-17T10:00:00+00:00"},
            {"observation_type":"synop","last_record":"2026-02-07T09:30:00+00:00"},
            {"observation_type":"current","last_record":"2026-02-07T10:00:00+00:00"},{"last_record":null},7]}
            """
        #expect(AlertService.brightSky.dataTime(Data(sources.utf8), status: 200) == updated)
        for (text, status) in [(sources, 500), ("<html>", 200), ("{}", 200), (#"{"sources":{}}"#, 200)] {
            #expect(AlertService.brightSky.dataTime(Data(text.utf8), status: status) == nil)
        }
        let berlin = try Coordinates(latitude: 52.52, longitude: 13.4)
        #expect(
            try AlertService.allCases.compactMap { try $0.dataTimeRequest(for: berlin)?.url } == [
                "https://api.brightsky.dev/current_weather?lat=52.52&lon=13.4&tz=Etc/UTC"
            ])
    }

    @Test func `the time of a feed is not the time of an entry`() throws {
        func time(_ text: String) throws -> Date? {
            try AlertFeed.parse(Data("<feed>\(text)</feed>".utf8), base: "https://a.example/").dataTime
        }
        let entry = "<entry><updated>2026-02-07T11:00:00Z</updated><link href=\"/a\"/></entry>"
        #expect(
            try time("\(entry)<updated> 2026-02-07T10:00:00Z </updated>")
                == (try? Date("2026-02-07T10:00:00Z", strategy: .iso8601)))
        #expect(try time(entry) == nil && time("<updated>2026-02-07T10:00:00</updated>") == nil, "without an offset")
    }
}
