/// Finds the kind of a hazard from the codes of different publishers.
///
/// Sources: OASIS "Event Terms List" 1.2; NWR-SAME event codes; NWS Instruction 10-1703 (phenomena of P-VTEC); MeteoAlarm's
/// `awareness_type`; the CAP profile of the Deutscher Wetterdienst 2.1.13 (`II`, `GROUP`); CAP-CP events 0.4; CMA event types.
enum HazardCodes {
    // MARK: OASIS

    /// Returns the kind of a code such as "OET-159". `nil` if the term is unspecific, such as "weather", or if the term is newer
    /// than version 1.2.
    static func oasis(_ code: String) -> AlertHazard? {
        guard code.uppercased().hasPrefix("OET-"), let number = Int(code.dropFirst(4)) else { return nil }
        if let hazard = oasisTerms.first(where: { $0.value.contains(number) })?.key { return hazard }
        return (1...223).contains(number) && !unspecificOasisTerms.contains(number) ? .other : nil
    }

    /// The numbers of the terms "meteorological issue" and "weather", which do not show a kind.
    private static let unspecificOasisTerms: Set<Int> = [128, 216]

    private static let oasisTerms: [AlertHazard: Set<Int>] = [
        // The codes mean: hail, lightning, thunderstorm.
        .thunderstorm: [95, 122, 194],
        // The codes mean: blowing dust, cyclone, dust storm, hurricane, sandstorm, squall, storm, tornadic waterspout, tornado,
        // tropical depression, tropical storm, typhoon, waterspout, wind, wind change.
        .wind: [25, 51, 66, 106, 170, 186, 187, 195, 196, 201, 202, 204, 215, 218, 219],
        // The codes mean: dam break, dyke break, flash flood, flood, high water, levee break, overland flood.
        .flood: [52, 67, 79, 81, 103, 121, 140],
        // The codes mean: monsoon, rain.
        .rain: [132, 159],
        // The codes mean: blizzard, blowing snow, flash freeze, freezing drizzle, freezing rain, ice, ice storm, lake effect
        // snow, sleet, snow, snowstorm, winter storm, winter weather.
        .snow: [23, 26, 80, 88, 89, 107, 109, 116, 181, 182, 183, 222, 223],
        // The codes mean: freezing spray, hazardous seas, high seas, ice pressure, iceberg, lake wind, rapid ice closing of water
        // passage, rogue waves.
        .marine: [90, 96, 100, 108, 110, 117, 160, 168],
        // The codes mean: beach hazard, coastal flood, high surf, high tide, low tide, rip current, shoreline threat, storm
        // surge, swells.
        .coastal: [21, 42, 101, 102, 124, 164, 179, 189, 191],
        // The codes mean: heat, humidity.
        .heat: [98, 105],
        // The codes mean: Arctic outflow, cold, cold weather, freeze, frost, wind chill.
        .cold: [16, 43, 44, 87, 91, 220],
        // The codes mean: dense fog, fog, limited visibility.
        .fog: [58, 82, 123],
        // The codes mean: bush, chemical, forest, grass, industrial, radiological and structure fire, fire, wildfire.
        .fire: [33, 36, 78, 86, 94, 113, 157, 190, 217],
        .avalanche: [18],
        // The codes mean: air quality, air stagnation, ashfall, dense smoke.
        .air: [4, 6, 17, 59],
        .drought: [63],
        // The codes mean: debris flow, earthquake, geophysical issue, landslide, mudslide, pyroclastic flow, sinkhole, tsunami,
        // volcanoes.
        .ground: [56, 68, 93, 119, 133, 153, 180, 203, 208, 209, 210, 211],
        // The codes mean: meteoroid, satellite debris, space debris, space weather.
        .space: [127, 171, 184, 185],
    ]

    // MARK: United States

    /// Returns the kind of an NWR-SAME event code, for example "TOR". `nil` for "SPS" and other codes without a specific kind.
    static func same(_ code: String) -> AlertHazard? { sameCodes.first { $0.value.contains(code) }?.key }

    private static let sameCodes: [AlertHazard: Set<String>] = [
        .thunderstorm: ["SVA", "SVR", "SVS"],
        .wind: ["DSW", "EWW", "HLS", "HUA", "HUW", "HWA", "HWW", "TOA", "TOR", "TRA", "TRW"],
        .flood: ["DBA", "DBW", "FFA", "FFS", "FFW", "FLA", "FLS", "FLW"],
        .snow: ["BZW", "FSW", "SQW", "WSA", "WSW"],
        .marine: ["IBW", "SMW"],
        .coastal: ["CFA", "CFW", "SSA", "SSW"],
        .cold: ["FZW"],
        .fire: ["FRW", "IFW", "WFA", "WFW"],
        .avalanche: ["AVA", "AVW"],
        .ground: ["EQW", "LSW", "TSA", "TSW", "VOW"],
        .other: [
            "ADR", "BHW", "BLU", "BWW", "CAE", "CDW", "CEM", "CHW", "CWW", "DEW", "DMO", "EAN", "EAT", "EVA", "EVI", "HMW", "LAE",
            "LEW", "MEP", "NAT", "NIC", "NMN", "NPT", "NST", "NUW", "POS", "RHW", "RMT", "RWT", "SPW", "TOE",
        ],
    ]

    /// Returns the kind of a code of the US National Weather Service: a P-VTEC phenomenon and significance ("SVW"), or a product
    /// ("AQA").
    static func nationalWeatherService(_ code: String) -> AlertHazard? {
        if let product = products[code] ?? same(code) { return product }
        guard code.count == 3, "WAYSFON".contains(code.suffix(1)) else { return nil }
        let phenomenon = String(code.prefix(2))
        return phenomena.first { $0.value.contains(phenomenon) }?.key
    }

    /// The codes of the marine weather statement, the air quality alert, the hydrologic outlook, and lake effect snow. In SAME,
    /// the code "LEW" has another meaning, which is law enforcement.
    private static let products: [String: AlertHazard] = ["MWS": .marine, "AQA": .air, "ESF": .flood, "LEW": .snow]

    private static let phenomena: [AlertHazard: Set<String>] = [
        .thunderstorm: ["SV"],
        // The codes mean: dust storm, blowing dust, extreme wind, inland hurricane wind, hurricane, high wind, inland tropical
        // storm wind, tornado, tropical storm, typhoon, wind.
        .wind: ["DS", "DU", "EW", "HI", "HU", "HW", "TI", "TO", "TR", "TY", "WI"],
        .flood: ["FA", "FF", "FL", "HY"],
        // The codes mean: blowing snow, blizzard, heavy sleet, heavy snow, sleet, ice storm, lake effect snow, snow squall,
        // winter storm and weather, freezing rain.
        .snow: ["BS", "BZ", "HP", "HS", "IP", "IS", "LB", "LE", "SB", "SN", "SQ", "WS", "WW", "ZR"],
        // The codes mean: brisk wind, gale, hurricane force wind, low water, lake wind, marine, rough bar, small craft (four),
        // hazardous seas, storm, ice accretion, freezing spray.
        .marine: ["BW", "GL", "HF", "LO", "LW", "MA", "RB", "SC", "SE", "SI", "SR", "SW", "UP", "ZY"],
        // The codes mean: beach hazard, coastal flood, lakeshore flood, rip current, storm surge, surf.
        .coastal: ["BH", "CF", "LS", "RP", "SS", "SU"],
        .heat: ["EH", "HT", "XH"],
        .cold: ["CW", "EC", "FR", "FZ", "HZ", "WC"],
        .fog: ["FG", "MF", "ZF"],
        .fire: ["FW"],
        .avalanche: ["AV"],
        // The codes mean: ashfall, air stagnation, marine ashfall, marine dense smoke, dense smoke.
        .air: ["AF", "AS", "MH", "MS", "SM"],
        // The codes mean: debris flow, earthquake, tsunami, volcano.
        .ground: ["DF", "EQ", "TS", "VO"],
    ]

    /// Returns `true` for zones of the sea and of the Great Lakes. Source of the rule: NWS Instruction 10-302.
    static func isSeaZone(_ code: String) -> Bool {
        let parts = (code.prefix(2), code.dropFirst(2).first)
        return code.count == 6 && parts.1 == "Z" && seaZones.contains(String(parts.0))
    }

    private static let seaZones: Set<String> = [
        "AM", "AN", "GM", "LC", "LE", "LH", "LM", "LO", "LS", "PH", "PK", "PM", "PS", "PZ", "SL",
    ]

    // MARK: Europe

    /// Returns the kind of a text such as "3; Thunderstorm". The words after the number differ between countries.
    static func meteoAlarm(_ text: String) -> AlertHazard? {
        guard let number = Int(text.drop { $0.isWhitespace }.prefix { $0.isASCII && $0.isNumber }) else { return nil }
        let kinds: [Int: AlertHazard] = [
            1: .wind, 2: .snow, 3: .thunderstorm, 4: .fog, 5: .heat, 6: .cold, 7: .coastal, 8: .fire, 9: .avalanche, 10: .rain,
            12: .flood, 13: .rain,
        ]
        return kinds[number]
    }

    /// Returns the kind of an event code of the Deutscher Wetterdienst.
    static func germany(_ code: String) -> AlertHazard? {
        switch Int(code) {
        case 31, 33, 34, 36, 38, 40, 41, 42, 44, 45, 46, 48, 49, 90, 91, 92, 93, 95, 96: .thunderstorm
        case 51, 52, 53, 54, 55, 56: .wind
        case 61, 62, 63, 64, 65, 66: .rain
        // The codes mean: snow, snow drift, slippery roads, glaze.
        case 24, 70, 71, 72, 73, 74, 75, 76, 77, 78, 84, 85, 86, 87: .snow
        // The code means a thaw, in which much snow melts while rain falls on the snow.
        case 88, 89: .flood
        // The codes mean warnings for the high seas, the coast and inland lakes.
        case 11, 12, 13, 14, 15, 16, 57, 58: .marine
        case 22, 81, 82: .cold
        case 59: .fog
        case 247, 248: .heat
        // The codes mean: swinging power lines, ultraviolet radiation, tests.
        case 79, 98, 99, 246: .other
        default: nil
        }
    }

    // MARK: Others

    /// Returns the kind of an event type of the China Meteorological Administration.
    static func china(_ code: String) -> AlertHazard? {
        let kinds: [String: AlertHazard] = ["11B03": .rain, "11B06": .wind, "11B09": .heat, "11B17": .fog, "11B21": .snow]
        return kinds[code.uppercased()]
    }

    /// Returns `true` for the lists whose codes are English terms: the German groups, and the profiles of Canada and Taiwan.
    static func hasTerms(_ list: String) -> Bool { list == "GROUP" || list.contains("CAP-CP") || list.contains("CAP-TWP") }

    /// Returns the kind of an English term that is used as a code. Examples are "winterStorm" of the Canadian profile and
    /// "SNOWFALL" of the German profile.
    ///
    /// - Parameter list: the name of the list of codes.
    static func term(_ code: String, list: String) -> AlertHazard? {
        let term = code.lowercased().filter { $0.isASCII && $0.isLetter }
        if windForces.contains(term) { return list.contains("CAP-CP") ? .marine : .wind }
        return terms.first { $0.value.contains(term) }?.key
    }

    /// Terms that are warnings for the sea in the Canadian list. Taiwan uses the same terms for land.
    private static let windForces: Set<String> = [
        "galewind", "hurricfrcwnd", "squall", "stormfrcwind", "stormfrcwnd", "strongwind", "waterspout",
    ]

    private static let terms: [AlertHazard: Set<String>] = [
        .thunderstorm: ["hail", "lightning", "severethunderstorm", "thunderstorm"],
        .wind: [
            "cyclone", "duststorm", "hurricane", "sandstorm", "tornado", "tropcyclone", "tropstorm", "tropicalcyclone",
            "tropicalstorm", "typhoon", "wind",
        ],
        .flood: ["dambreach", "damoverflow", "flashflood", "flood", "highwater", "overflood", "riverflood", "thaw"],
        .rain: ["heavyrain", "rain", "rainfall"],
        .snow: [
            "blizzard", "flashfreeze", "freezedrzl", "freezerain", "freezingdrizzle", "freezingrain", "glaze", "ice", "snow",
            "snowdrift", "snowfall", "snowsquall", "winterstorm",
        ],
        .marine: ["freezngspray", "iceberg", "icepressure", "marine", "spclice", "spclmarine"],
        .coastal: ["beachtsunami", "largesurf", "largeswell", "stormsurge"],
        .heat: ["heat", "heathumidity", "heatwave"],
        .cold: ["arcticoutflow", "cold", "coldoutbreak", "coldwave", "frost", "windchill"],
        .fog: ["fog"],
        .fire: ["fire", "fireweather", "forestfire", "industryfire", "urbanfire", "wildfire"],
        .avalanche: ["avalanche"],
        .air: ["airquality", "airstagnation", "volcanicash"],
        .drought: ["drought"],
        .ground: ["debrisflow", "earthquake", "lahar", "landslide", "landtsunami", "lavaflow", "tsunami", "volcano"],
        .space: ["magnetstorm", "meteor", "spaceweather"],
        .other: ["powerlinevibration", "test", "testmessage", "uv"],
    ]
}
