import Foundation
import StormyWeather
import Testing

@Suite struct AlertJoiningTests {
    private static let start = Date(timeIntervalSince1970: 1_783_000_000)

    private func vienna() throws -> Coordinates { try Coordinates(latitude: 48.2085, longitude: 16.3721) }

    private func area(_ code: String) -> AlertArea { AlertArea(name: code, codes: [RegionCode(type: "EMMA_ID", value: code)]) }

    /// Returns an event of one message. The times of the event are in hours.
    private func event(
        _ name: String, _ from: Double, _ until: Double, hazard: AlertHazard = .wind, severity: CAPSeverity? = .severe,
        language: String? = "de-DE", areas: [AlertArea]? = nil
    ) -> AlertEvent {
        let info = AlertInfo(
            language: language, event: "\(name) \(language ?? "")", hazard: hazard, severity: severity,
            from: Self.start.addingTimeInterval(from * 3600), until: Self.start.addingTimeInterval(until * 3600), issuer: "x",
            areas: areas ?? [area("AT901")])
        return AlertEvent(messages: [name], state: .standing, infos: [info])
    }

    private func hours(_ event: AlertEvent) -> [[Double]] {
        event.infos.map { [$0.from, $0.until].map { $0.timeIntervalSince(Self.start) / 3600 } }
    }

    @Test func `messages of one region for two days are one warning`() throws {
        let events = [event("b", 10, 34), event("a", 0, 9.99)]
        for order in [events, events.reversed()] {
            let joined = AlertEvent.joined(order, at: try vienna(), language: "de")
            #expect(joined.count == 1 && joined[0].messages == ["a", "b"] && hours(joined[0]) == [[0, 34]])
        }
    }

    @Test func `warnings that another joins are one`() throws {
        let events = [event("a", 0, 10), event("c", 20, 30), event("b", 10, 20)]
        let joined = AlertEvent.joined(events, at: try vienna(), language: nil)
        #expect(joined.map(\.messages) == [["a", "b", "c"]] && hours(joined[0]) == [[0, 30]])
    }

    @Test func `an all-clear is not joined with a warning of an unknown severity`() throws {
        var clear = event("clear", 0, 10, severity: nil)
        clear.infos[0].noDanger = .allClear
        let warning = event("a", 0, 10, severity: nil)
        for order in [[clear, warning], [warning, clear]] {
            let joined = AlertEvent.joined(order, at: try vienna(), language: "de")
            #expect(joined.count == 2 && joined.flatMap(\.infos).count { $0.noDanger == nil } == 1)
        }
        #expect(AlertEvent.joined([clear], substituteEvents: [warning]).flatMap(\.infos).count { $0.noDanger == nil } == 1)
        // The message has two languages.
        var english = warning.infos[0]
        english.language = "en"
        let message = AlertMessage(identifier: "m", sent: Self.start, infos: clear.infos + [english])
        let infos = AlertBook([message]).events(at: nil, language: "de").flatMap(\.infos)
        #expect(infos.contains { $0.noDanger == nil } && infos.contains { $0.noDanger == .allClear })
    }

    @Test func `another hazard, level, region or time is another warning`() throws {
        let first = event("a", 0, 10)
        let others = [
            event("b", 10.2, 20), event("b", 10, 20, hazard: .rain), event("b", 10, 20, severity: .extreme),
            event("b", 10, 20, severity: nil), event("b", 10, 20, areas: [area("AT010")]),
        ]
        for other in others {
            #expect(AlertEvent.joined([first, other], at: try vienna(), language: nil).count == 2, "\(other.infos)")
        }
        #expect(AlertEvent.joined([first, event("b", 10.08, 20)], at: try vienna(), language: nil).count == 1)
    }

    @Test func `messages that differ only in language are one warning in the reader's language`() throws {
        let events = [
            event("a", 0, 10, language: "fr-FR"), event("b", 0, 10, language: "en-GB"), event("c", 0, 10, language: "de-DE"),
            event("d", 0, 10, language: nil),
        ]
        for (reader, text) in [("de", "c de-DE"), ("fr", "a fr-FR"), ("en", "b en-GB"), ("pl", "b en-GB"), ("", "b en-GB")] {
            for order in [events, events.reversed()] {
                let joined = AlertEvent.joined(order, at: try vienna(), language: reader)
                #expect(joined.count == 1 && joined[0].infos.map(\.event) == [text], "\(reader)")
            }
        }
    }

    @Test func `drawn warnings are one if they have one area`() throws {
        let ring = [(48.0, 16.0), (49, 16), (49, 17), (48, 17)].compactMap { try? Coordinates(latitude: $0.0, longitude: $0.1) }
        let other = [(47.0, 15.0), (49, 15), (49, 17), (47, 17)].compactMap { try? Coordinates(latitude: $0.0, longitude: $0.1) }
        let first = event("a", 0, 10, areas: [AlertArea(name: "Wien", polygons: [ring])])
        let renamed = event("b", 10, 20, language: "fr", areas: [AlertArea(name: "Vienne", polygons: [ring])])
        let redrawn = event("b", 10, 20, areas: [AlertArea(name: "Wien", polygons: [other])])
        let elsewhere = event("b", 10, 20, areas: [AlertArea(name: "Ost", polygons: [other])])
        #expect(AlertEvent.joined([first, renamed], at: try vienna(), language: nil).count == 1)
        #expect(AlertEvent.joined([first, redrawn], at: try vienna(), language: nil).count == 1)
        #expect(AlertEvent.joined([first, elsewhere], at: try vienna(), language: nil).count == 2)
    }

    @Test func `cancelled events and events without a text are not joined`() throws {
        let cancelled = AlertEvent(messages: ["c"], state: .cancelled, infos: event("c", 0, 10).infos)
        let empty = AlertEvent(messages: ["d"], state: .standing, infos: [])
        let events = [event("a", 0, 10), cancelled, empty]
        #expect(AlertEvent.joined(events, at: try vienna(), language: nil) == events)
    }

    @Test func `every order of many messages gives the same warnings`() throws {
        var random = SystemRandomNumberGenerator()
        let events = (0..<8).map { event("\($0)", Double($0) * 6, Double($0) * 6 + ($0 == 3 ? 5 : 6)) }
        for _ in 0..<50 {
            let joined = AlertEvent.joined(events.shuffled(using: &random), at: try vienna(), language: nil)
            #expect(Set(joined.map(\.messages)) == [["0", "1", "2", "3"], ["4", "5", "6", "7"]])
            #expect(Set(joined.flatMap(hours)) == [[0, 23], [24, 48]])
        }
    }
}
