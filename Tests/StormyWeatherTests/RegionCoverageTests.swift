import StormyWeather
import Testing

@Suite struct RegionCoverageTests {
    private func coverage(_ latitude: Double, _ longitude: Double) throws -> RegionCoverage {
        RegionCoverage(of: try Coordinates(latitude: latitude, longitude: longitude))
    }

    @Test func `a place at a border belongs to the regions of both sides`() throws {
        // The places are the bridge between Braunau and Simbach, and the bridge between Görlitz and Zgorzelec.
        let bridges = [
            (48.2593, 13.0335, [MeteoAlarmCountry.austria, .germany]), (51.1520, 14.9935, [.germany, .poland]),
        ]
        for (latitude, longitude, countries) in bridges {
            #expect(Set(try coverage(latitude, longitude).countries) == Set(countries), "\(latitude),\(longitude)")
        }
    }

    @Test func `a place outside of all land regions belongs to the nearest within 5 km`() throws {
        let helsinki = try coverage(60.1699, 24.9384)
        #expect(helsinki.regions.map(\.code) == ["FI034"] && helsinki.countries == [.finland] && helsinki.gap == nil)
        #expect(helsinki.text(of: .finland) == "Uusimaa (FI034)")
        // Höfn is 5.6 km outside of its region, which is more than the limit of 5 km.
        #expect(try coverage(64.2539, -15.2082).regions.isEmpty)
    }

    @Test func `a sea region does not count for a place`() throws {
        let helgoland = try coverage(54.1810, 7.8860)
        guard case .onlySea(let region)? = helgoland.gap else {
            Issue.record("\(helgoland)")
            return
        }
        #expect(region.code == "DE803" && region.isSea && helgoland.countries == [.germany])
        #expect(helgoland.gap?.message.contains("Helgoland (DE803)") == true)
    }

    @Test func `a district with a number of 801 and more in a country without a coast is a land region`() throws {
        #expect(try coverage(47.5031, 9.7471).regions.map(\.code) == ["AT002", "AT802"])
        let names = ["AT801", "AT802", "AT803", "AT804"].compactMap {
            RegionTable.europe.region(RegionCode(type: "EMMA_ID", value: $0))
        }
        #expect(names.map(\.name) == ["Bludenz", "Bregenz", "Dornbirn", "Feldkirch"] && names.allSatisfy { !$0.isSea })
        #expect(RegionTable.europe.regions.count { $0.isSea } == 175)
    }

    @Test(arguments: [
        // The places are Zürich, Basel, Lugano, Sankt Moritz, Genève and Vaduz.
        (
            MeteoAlarmCountry.switzerland,
            [(47.3769, 8.5417), (47.5596, 7.5886), (46.0037, 8.9511), (46.4908, 9.8355), (46.2044, 6.1432), (47.1410, 9.5209)]
        ),
        // The places are London, Edinburgh, Belfast, Dover, Penzance, Lerwick, Douglas and Londonderry.
        (
            .unitedKingdom,
            [
                (51.5074, -0.1278), (55.9533, -3.1883), (54.5973, -5.9301), (51.1279, 1.3134), (50.1188, -5.5376),
                (60.1530, -1.1493), (54.1500, -4.4821),
            ]
        ),
        // The places are Kyiv, Lviv, Odesa, Kharkiv, Uzhhorod and Chernihiv.
        (
            .ukraine,
            [
                (50.4501, 30.5234), (49.8397, 24.0297), (46.4825, 30.7233), (49.9935, 36.2304), (48.6208, 22.2879),
                (51.4982, 31.2893),
            ]
        ),
    ])
    func `a place in a country without outlines has the feed of the country`(
        _ country: MeteoAlarmCountry, _ towns: [(Double, Double)]
    ) throws {
        for (latitude, longitude) in towns {
            let found = try coverage(latitude, longitude)
            #expect(found.countries.last == country, "\(latitude),\(longitude): \(found)")
            #expect(found.gap == (found.regions.isEmpty ? .noOutlines(country) : nil))
            if let gap = found.gap { #expect(gap.message.contains(country.name)) }
        }
    }

    @Test func `a place near a country without outlines has the regions of its side`() throws {
        // The centre of Konstanz is 4.7 km outside of its region, and Kreuzlingen is next to it.
        let konstanz = try coverage(47.6603, 9.1758)
        #expect(konstanz.regions.map(\.code) == ["DE419"] && konstanz.countries == [.germany, .switzerland])
        #expect(try coverage(47.3769, 8.5417).gap == .noOutlines(.switzerland))
        #expect(try coverage(54.15, -4.4821).countries == [.unitedKingdom])
    }

    @Test func `a town on the coast across from a country without outlines keeps its region`() throws {
        // The places are Calais, Boulogne, Dublin, Dundalk, Letterkenny, Constance on the lake, Bregenz, Tulcea and Sulina.
        let towns = [
            (50.9581, 1.8520, MeteoAlarmCountry.france), (50.7264, 1.6147, .france), (53.3498, -6.2603, .ireland),
            (54.0037, -6.4169, .ireland), (54.9558, -7.7342, .ireland), (47.5031, 9.7471, .austria), (45.1787, 28.8050, .romania),
            (45.1556, 29.6539, .romania),
        ]
        for (latitude, longitude, country) in towns {
            let found = try coverage(latitude, longitude)
            #expect(!found.regions.isEmpty && found.countries.contains(country), "\(latitude),\(longitude): \(found)")
        }
    }

    @Test(arguments: [(40.7128, -74.0060), (-33.87, 151.21), (55.7558, 37.6173), (89.9, 10), (-90, 0), (0, 180), (0, -180)])
    func `a place elsewhere has no feed and a reason`(_ latitude: Double, _ longitude: Double) throws {
        let found = try coverage(latitude, longitude)
        #expect(found.regions.isEmpty && found.countries.isEmpty && found.gap == .nothingNear)
        #expect(found.gap?.message.contains("5 km") == true)
    }

    @Test func `Andorra is a region of France with a separate feed`() throws {
        #expect(try coverage(42.5063, 1.5218).countries == [.andorra])
    }

    @Test func `Bulgaria is known by its NUTS3 codes alone`() throws {
        let sofia = try coverage(42.6977, 23.3219)
        #expect(sofia.text(of: .bulgaria) == "Sofia (city) (BG411)" && sofia.countries == [.bulgaria])
        let table = RegionTable.europe
        #expect(table.region(RegionCode(type: "NUTS3", value: "BG411")) == sofia.regions.first)
        #expect(table.region(RegionCode(type: "EMMA_ID", value: "BG017")) == nil)
        #expect(table.regions.filter { $0.code.hasPrefix("BG") }.allSatisfy { $0.code.count == 5 && $0.code >= "BG311" })
    }

    @Test func `Norway and Germany have a service before MeteoAlarm`() {
        #expect(MeteoAlarmCountry.allCases.filter { $0.ownService != nil } == [.germany, .norway])
        #expect(MeteoAlarmCountry.norway.ownService == .metNorway && MeteoAlarmCountry.germany.ownService == .brightSky)
    }

    @Test func `every region of the table belongs to a country with a feed`() {
        #expect(RegionTable.europe.regions.allSatisfy { MeteoAlarmCountry(of: $0) != nil })
        #expect(Set(RegionTable.europe.regions.compactMap(MeteoAlarmCountry.init(of:))).count == 36)
        #expect(Set(MeteoAlarmCountry.allCases.map(\.slug)).count == MeteoAlarmCountry.allCases.count)
    }
}
