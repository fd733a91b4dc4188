import Foundation
import StormyWeather
import Testing

private func at(_ latitude: Double, _ longitude: Double) throws -> Coordinates {
    try Coordinates(latitude: latitude, longitude: longitude)
}

/// Tests which services have warnings for a place, and the reasons why other services do not.
@Suite struct WarningCoverageTests {
    private func coverage(
        _ latitude: Double, _ longitude: Double, least: CAPSeverity = .severe, hasContact: Bool = false, feeds: [String] = []
    ) throws -> WarningCoverage {
        WarningCoverage(at: try at(latitude, longitude), least: least, hasContact: hasContact, feeds: feeds)
    }

    @Test func `the US service is requested without a contact`() throws {
        for hasContact in [false, true] {
            let sources = try coverage(25.76, -80.19, hasContact: hasContact).sources
            #expect(sources == [WarningCoverage.Source(.nws)] && sources.first?.name == "US National Weather Service")
        }
        let candidates = WeatherProvider.candidates(for: try at(25.76, -80.19), first: .openMeteo, hasContact: false)
        #expect(candidates == [.openMeteo, .nws])
    }

    @Test func `MET Norway is refused without a contact and the reason is known`() throws {
        let refused = try coverage(59.91, 10.75)
        #expect(refused.sources.first == WarningCoverage.Source(.metNorway, refusal: .noContact) && refused.gap == nil)
        #expect(refused.sources.map(\.service) == [.metNorway, .meteoAlarm] && refused.sources.last?.region != nil)
        #expect(try coverage(59.91, 10.75, hasContact: true).sources == [WarningCoverage.Source(.metNorway)])
    }

    @Test func `MeteoAlarm replaces a service that fails`() throws {
        let place = try at(52.52, 13.4)
        func services(_ failing: Set<AlertService>) -> [AlertService?] {
            WarningCoverage(at: place, least: .severe, hasContact: true, failing: failing).sources.map(\.service)
        }
        #expect(services([]) == [.brightSky] && services([.brightSky]) == [.brightSky, .meteoAlarm])
        #expect(try coverage(47.3769, 8.5417).sources.map(\.service) == [.meteoAlarm], "Zürich is in no region of Germany")
    }

    /// In the table of region outlines, Kehl is in France and Guben is in Poland.
    @Test(arguments: [
        ("Kehl", 48.5726, 7.8147), ("Guben", 51.95, 14.717), ("Konstanz", 47.66, 9.1758), ("Berlin", 52.52, 13.405),
    ])
    func `the German service is requested in towns at the border`(
        _ town: String, _ latitude: Double, _ longitude: Double
    ) throws {
        #expect(try coverage(latitude, longitude).sources.map(\.service) == [.brightSky])
    }

    @Test(arguments: [("Prague", 50.08, 14.43), ("Zürich", 47.3769, 8.5417), ("Nancy", 48.69, 6.18), ("Groningen", 53.22, 6.57)])
    func `the German service is not requested far from Germany`(
        _ town: String, _ latitude: Double, _ longitude: Double
    ) throws {
        #expect(try coverage(latitude, longitude).sources.map(\.service) == [.meteoAlarm])
    }

    @Test func `each country of MeteoAlarm is a source with its own regions`() throws {
        let valga = try coverage(57.775, 26.032).sources
        #expect(
            valga.map(\.key) == ["meteoalarm/estonia", "meteoalarm/latvia"] && valga.map(\.service) == [.meteoAlarm, .meteoAlarm])
        #expect(valga[0].region?.contains("(EE013)") == true && valga[1].region?.contains("(LV048)") == true, "\(valga)")
        #expect(WarningCoverage.name(ofFeed: valga[1].key) == "MeteoAlarm, Latvia")
        #expect(try coverage(47.3769, 8.5417).sources.map(\.region) == ["Switzerland"])
        for key in ["meteoalarm", "meteoalarm/atlantis", "https://a.example/f"] { #expect(MeteoAlarmCountry(key: key) == nil) }
    }

    @Test func `a place without a service has a reason`() throws {
        #expect(try coverage(-33.87, 151.21).gap == .noService)
        #expect(try coverage(25.76, -80.19, least: .off) == coverage(59.91, 10.75, least: .off))
        #expect(try coverage(25.76, -80.19, least: .off, feeds: ["https://a.example/f"]).gap == .off)
    }

    @Test func `feeds follow the services and their keys are not shown`() throws {
        let feed = "https://me:secret@cap.example/au/feed.xml?key=secret"
        let found = try coverage(-33.87, 151.21, feeds: [feed])
        #expect(
            found.sources.map(\.name) == ["cap.example/au/feed.xml"] && found.sources.map(\.key) == [feed] && found.gap == nil)
        #expect(try coverage(52.52, 13.4, feeds: [feed]).sources.map(\.service) == [.brightSky, nil])
    }

    /// The places are towns on both sides of borders.
    @Test(arguments: [
        ("Bellingham", 48.75, -122.48), ("Point Roberts", 48.99, -123.07), ("International Falls", 48.6, -93.41),
        ("Grand Portage", 47.96, -89.68), ("Sault Ste. Marie, Michigan", 46.49, -84.35), ("Port Huron", 42.97, -82.42),
        ("Detroit", 42.33, -83.05), ("Put-in-Bay", 41.65, -82.82), ("Buffalo", 42.89, -78.88), ("Niagara Falls", 43.09, -79.06),
        ("Massena", 44.93, -74.89), ("Derby Line", 45.0, -72.1), ("Madawaska", 47.36, -68.33), ("Eastport", 44.9, -66.98),
        ("Key West", 24.56, -81.78), ("Brownsville", 25.9, -97.5), ("Laredo", 27.51, -99.51), ("Presidio", 29.56, -104.37),
        ("El Paso", 31.76, -106.49), ("Nogales, Arizona", 31.34, -110.93), ("Yuma", 32.69, -114.62),
        ("San Diego", 32.72, -117.16),
        ("Eureka", 40.8, -124.16), ("Anchorage", 61.22, -149.9), ("Juneau", 58.3, -134.42), ("Ketchikan", 55.34, -131.65),
        ("Attu", 52.9, 172.9), ("Honolulu", 21.31, -157.86), ("San Juan", 18.47, -66.11), ("Hagåtña", 13.48, 144.75),
        ("Pago Pago", -14.28, -170.7), ("Cape Hatteras", 35.25, -75.53),
    ])
    func `the US service covers the United States`(_ town: String, _ latitude: Double, _ longitude: Double) throws {
        #expect(AlertService.nws.covers(try at(latitude, longitude)))
    }

    @Test(arguments: [
        ("Toronto", 43.65, -79.38), ("Ottawa", 45.42, -75.7), ("Montreal", 45.5, -73.57), ("Vancouver", 49.28, -123.12),
        ("Victoria", 48.43, -123.37), ("Winnipeg", 49.9, -97.14), ("Thunder Bay", 48.38, -89.25), ("Fredericton", 45.96, -66.64),
        ("Halifax", 44.65, -63.58), ("Whitehorse", 60.72, -135.06), ("Monterrey", 25.67, -100.31), ("Chihuahua", 28.63, -106.09),
        ("Hermosillo", 29.07, -110.96), ("Ensenada", 31.87, -116.6), ("Nassau", 25.05, -77.35), ("Havana", 23.11, -82.37),
        ("Lisbon", 38.72, -9.14),
    ])
    func `the US service does not cover its neighbours`(_ town: String, _ latitude: Double, _ longitude: Double) throws {
        #expect(!AlertService.nws.covers(try at(latitude, longitude)))
    }

    @Test(arguments: [
        ("Oslo", 59.91, 10.75), ("Bergen", 60.39, 5.32), ("Trondheim", 63.43, 10.4), ("Tromsø", 69.65, 18.96),
        ("Kirkenes", 69.73, 30.05), ("Vardø", 70.37, 31.1), ("Røros", 62.57, 11.38), ("Halden", 59.12, 11.39),
        ("Kristiansand", 58.15, 8.0), ("Lindesnes", 57.98, 7.05), ("Kautokeino", 69.01, 23.04), ("Karasjok", 69.47, 25.51),
        ("Narvik", 68.44, 17.43), ("Kongsvinger", 60.19, 12.0), ("Trysil", 61.31, 12.26), ("Longyearbyen", 78.22, 15.64),
        ("Jan Mayen", 70.92, -8.72), ("Tana Bru", 70.2, 28.2),
    ])
    func `MET Norway covers Norway`(_ town: String, _ latitude: Double, _ longitude: Double) throws {
        #expect(AlertService.metNorway.covers(try at(latitude, longitude)))
    }

    @Test(arguments: [
        ("Stockholm", 59.33, 18.07), ("Gothenburg", 57.71, 11.97), ("Karlstad", 59.38, 13.5), ("Östersund", 63.18, 14.64),
        ("Kiruna", 67.86, 20.23), ("Helsinki", 60.17, 24.94), ("Inari", 68.91, 27.03), ("Tallinn", 59.44, 24.75),
        ("Riga", 56.95, 24.11), ("Skagen", 57.72, 10.58), ("Aberdeen", 57.15, -2.09), ("Lerwick", 60.15, -1.15),
        ("Tórshavn", 62.01, -6.77), ("Murmansk", 68.97, 33.08), ("Reykjavík", 64.15, -21.94),
    ])
    func `MET Norway does not cover its neighbours`(_ town: String, _ latitude: Double, _ longitude: Double) throws {
        #expect(!AlertService.metNorway.covers(try at(latitude, longitude)))
    }
}
