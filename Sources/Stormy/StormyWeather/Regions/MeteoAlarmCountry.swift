/// A country whose weather service sends its warnings to MeteoAlarm. The raw value is the last part of its feed's address.
///
/// Source: the list of feeds of MeteoAlarm, 2026-09.
package enum MeteoAlarmCountry: String, Sendable, CaseIterable {
    case andorra, austria, belgium
    case bosnia = "bosnia-herzegovina"
    case bulgaria, croatia, cyprus, czechia, denmark, estonia, finland, france, germany, greece, hungary, iceland, ireland, israel
    case italy, latvia, lithuania, luxembourg, malta, moldova, montenegro, netherlands
    case northMacedonia = "republic-of-north-macedonia"
    case norway, poland, portugal, romania, serbia, slovakia, slovenia, spain, sweden, switzerland, ukraine
    case unitedKingdom = "united-kingdom"

    package var slug: String { rawValue }

    /// The name of the feed in the store, for example "meteoalarm/france". Each feed is stored separately, because each feed has
    /// another time, and a warning may disappear from only one feed.
    package var key: String { AlertService.meteoAlarm.rawValue + "/" + slug }

    /// Creates the country with a ``key``. Returns `nil` if no country has this key.
    package init?(key: String) {
        guard let country = Self.allCases.first(where: { $0.key == key }) else { return nil }
        self = country
    }

    /// The name of the country in messages.
    package var name: String {
        switch self {
        case .bosnia: "Bosnia and Herzegovina"
        case .northMacedonia: "North Macedonia"
        case .unitedKingdom: "the United Kingdom"
        case .netherlands: "the Netherlands"
        default: rawValue.prefix(1).uppercased() + rawValue.dropFirst()
        }
    }

    /// Creates the country of a region from the letters of the region's code. Returns `nil` if the letters are unknown.
    package init?(of region: WarningRegion) {
        if region.code == Self.andorraRegion {
            self = .andorra
        } else if let country = Self.prefixes[String(region.code.prefix { $0.isLetter })] {
            self = country
        } else {
            return nil
        }
    }

    /// MeteoAlarm counts Andorra as a region of France.
    private static let andorraRegion = "FR001"

    private static let prefixes: [String: MeteoAlarmCountry] = [
        "AT": .austria, "BE": .belgium, "BA": .bosnia, "BG": .bulgaria, "HR": .croatia, "CY": .cyprus, "CZ": .czechia,
        "DK": .denmark,
        "EE": .estonia, "FI": .finland, "FR": .france, "DE": .germany, "GR": .greece, "HU": .hungary, "IS": .iceland,
        "IE": .ireland,
        "EI": .ireland, "IL": .israel, "IT": .italy, "LV": .latvia, "LT": .lithuania, "LU": .luxembourg, "MT": .malta,
        "MD": .moldova,
        "ME": .montenegro, "NL": .netherlands, "MK": .northMacedonia, "NO": .norway, "PL": .poland, "PT": .portugal,
        "RO": .romania,
        "RS": .serbia, "SK": .slovakia, "SI": .slovenia, "ES": .spain, "SE": .sweden, "CH": .switzerland, "UA": .ukraine,
        "GB": .unitedKingdom, "UK": .unitedKingdom,
    ]

    /// The service that Stormy requests in this country before MeteoAlarm. `nil` if MeteoAlarm is the only service.
    package var ownService: AlertService? {
        switch self {
        case .norway: .metNorway
        case .germany: .brightSky
        default: nil
        }
    }

    // MARK: Countries without outlines

    /// The countries without outlines in the region table. Warnings of these countries have polygons or circles, or codes that
    /// the table does not contain.
    package static let withoutOutlines: [MeteoAlarmCountry] = [.switzerland, .ukraine, .unitedKingdom]

    /// A coarse frame of a country without outlines: latitude and longitude of its corners. Inside the frame, a place that no
    /// outline contains belongs to the country. For this reason, the frame is exact only at borders to countries without
    /// outlines, and on the coasts of other countries. Switzerland's frame contains Liechtenstein, because the Swiss service also
    /// sends warnings for Liechtenstein.
    private var frame: [(Double, Double)] {
        switch self {
        case .switzerland: [(45.7, 5.9), (45.7, 10.6), (47.9, 10.6), (47.9, 5.9)]
        case .ukraine:
            [
                (48.0, 22.0), (49.3, 22.3), (50.5, 23.0), (51.6, 23.5), (51.95, 24.3), (51.95, 25.3), (51.7, 27.2), (51.55, 27.8),
                (51.5, 30.55), (52.15, 31.5), (52.4, 33.2), (52.35, 34.1), (51.75, 34.4), (51.1, 35.4), (50.4, 36.3),
                (50.35, 37.5),
                (49.95, 38.2), (49.7, 40.15), (49.0, 40.2), (47.85, 39.8), (47.6, 38.3), (46.9, 38.25), (45.3, 36.65),
                (44.2, 33.5),
                (45.0, 31.0), (45.2, 30.0), (45.33, 29.72), (45.2, 28.1), (47.5, 26.0), (47.6, 24.5), (47.8, 22.8),
            ]
        case .unitedKingdom:
            [
                (58.5, -8.8), (61.2, -3.5), (61.2, 0.5), (58.0, 0.5), (53.0, 2.2), (52.0, 2.0), (51.1, 1.58), (50.85, 1.3),
                (50.5, 0.5),
                (50.3, -1.5), (50.0, -3.0), (49.7, -5.0), (49.7, -6.8), (51.5, -6.0), (52.0, -5.85), (53.0, -5.6), (53.4, -5.3),
                (53.9, -5.3), (54.03, -6.1), (54.1, -6.3), (54.03, -6.7), (54.1, -7.4), (54.3, -8.05), (54.5, -8.1),
                (54.95, -7.5),
                (55.1, -7.05), (55.25, -6.9), (55.45, -6.5), (55.6, -6.7), (56.7, -7.8), (57.7, -8.8),
            ]
        default: []
        }
    }

    /// Returns the country without outlines at a place. `nil` if the place is in another country, or if an outline contains the
    /// place.
    static func withoutOutline(at place: Coordinates, in table: RegionTable) -> MeteoAlarmCountry? {
        guard let country = withoutOutlines.first(where: { $0.isInFrame(place) }) else { return nil }
        let container = table.container(of: place)
        return container == nil || container?.isSea == true ? country : nil
    }

    private func isInFrame(_ place: Coordinates) -> Bool {
        AlertArea.contains(
            frame.compactMap { try? Coordinates(latitude: $0.0, longitude: $0.1) }, place)
    }
}

/// The regions of a place at MeteoAlarm, and the countries whose feeds have the warnings for these regions.
///
/// The rule: a place belongs to every land region within 500 m. If no land region is within 500 m, the place belongs to the
/// nearest land region within 5 km. Sea regions are never used. If a place is in a country without outlines (Switzerland with
/// Liechtenstein, Ukraine, the United Kingdom), the feed of this country is also used. Near its border, such a place also has the
/// regions of the neighbour country. The distances are necessary because towns such as Konstanz are outside of the coarse
/// outlines of their region.
package struct RegionCoverage: Sendable, Equatable {
    /// The reason why a place has no region.
    package enum Gap: Sendable, Equatable {
        /// The table has no outlines of the country. From the feed of this country, only warnings with a polygon or a circle are
        /// used.
        case noOutlines(MeteoAlarmCountry)
        /// Only a sea region contains the place.
        case onlySea(WarningRegion)
        /// No region is within 5 km.
        case nothingNear

        /// The reason as a sentence without a full stop, for a list of reasons.
        package var message: String {
            switch self {
            case .noOutlines(let country):
                "MeteoAlarm's regions of \(country.name) have no outlines, so only warnings with a polygon or circle are found"
            case .onlySea(let region):
                "only the sea region \(region.text) of MeteoAlarm contains this place, "
                    + "so only warnings with a polygon or circle are found"
            case .nothingNear: "no land region of MeteoAlarm is within \(Int(RegionTable.nearby)) km of this place"
            }
        }
    }

    /// The land regions of the place, in the order of their codes.
    package let regions: [WarningRegion]
    /// The countries whose feeds are requested for the place. The array is empty if MeteoAlarm does not cover the place.
    package let countries: [MeteoAlarmCountry]
    /// The reason why ``regions`` is empty. `nil` if the array is not empty.
    package let gap: Gap?

    package init(of place: Coordinates, in table: RegionTable = .europe) {
        let country = MeteoAlarmCountry.withoutOutline(at: place, in: table)
        regions = table.landRegions(at: place)
        let sea = regions.isEmpty && country == nil ? table.container(of: place) : nil
        var countries: [MeteoAlarmCountry] = []
        for found in (regions + [sea].compactMap { $0 }).compactMap(MeteoAlarmCountry.init(of:)) + [country].compactMap({ $0 })
        where !countries.contains(found) { countries.append(found) }
        self.countries = countries
        if !regions.isEmpty {
            gap = nil
        } else if let country {
            gap = .noOutlines(country)
        } else {
            gap = sea.map { .onlySea($0) } ?? .nothingNear
        }
    }

    /// Returns the place's regions in one country, separated by commas, for example "Haute Savoie (FR035)". If the place has no
    /// region in this country, the country's name is returned.
    package func text(of country: MeteoAlarmCountry) -> String {
        let own = regions.filter { MeteoAlarmCountry(of: $0) == country }
        return own.isEmpty ? country.name : own.map(\.text).joined(separator: ", ")
    }
}
