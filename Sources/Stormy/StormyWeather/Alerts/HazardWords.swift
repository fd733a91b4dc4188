import Foundation

/// What a warning is about, by its service's words.
///
/// Source of the rules: the event names of the US service, the event codes of MET Norway and of the DWD (`GROUP`), and MeteoAlarm's
/// `awareness_type`, whose numbers say it in every language.
enum HazardWords {
    /// Most telling first: whole words, in lower case, and parts of words that are long enough to stand for nothing else.
    private static let words: [(hazard: AlertHazard, whole: Set<String>, parts: [String])] = [
        (
            .other,
            ["surge", "craft", "current", "currents", "chill", "storage", "smoke", "ashfall"],
            ["sandstorm", "forestfire", "waldbrand"]
        ),
        (
            .thunderstorm,
            [
                "hail", "lyn", "orage", "orages", "burza", "burze", "grad", "onweer", "bouřka", "bouřky", "búrka", "búrky",
                "zivatar",
                "zivatarok", "nevihta", "nevihte", "oluja", "oluje", "åska", "torden", "grêle", "granizo", "grandine",
                "lightning",
                "pērkons", "perkūnija", "äike",
            ],
            [
                "thunder", "t-storm", "severe weather", "gewitter", "hagel", "tormenta", "trovoada", "tempestade", "temporal",
                "tordenvær",
                "åskväder", "ukkonen", "ukkos", "ukonilma", "furtun", "grmljavin", "καταιγίδ",
            ]
        ),
        (
            .wind,
            [
                "wind", "winds", "windy", "gale", "gales", "storm", "storms", "squall", "squalls", "vent", "vents", "vento",
                "venti",
                "viento", "vientos", "vind", "kuling", "orkan", "böe", "böen", "wiatr", "vítr", "vietor", "vjetar", "veter",
                "szél",
                "tuuli", "myrsky", "vânt", "vijelie", "polarlow", "bora", "marine",
            ],
            [
                "tornado", "hurricane", "typhoon", "cyclone", "tropical storm", "polar low", "sturm", "orkan", "vendaval",
                "windböe",
                "tempête", "waterspout", "άνεμ",
            ]
        ),
        (
            .snow,
            [
                "snow", "winter", "neige", "nieve", "neve", "nevadas", "snø", "sne", "snö", "śnieg", "sníh", "sneeuw", "lumi",
                "hó", "ninsoare",
            ],
            ["blizzard", "snowfall", "snowstorm", "schnee", "snowsquall", "snow-ice"]
        ),
        (
            .rain,
            [
                "rain", "rainfall", "pluie", "lluvia", "lluvias", "regn", "chuva", "pioggia", "deszcz", "déšť", "sade", "eső",
                "ploaie",
            ],
            [
                "flash flood", "starkregen", "dauerregen", "rain-flood", "rainflood", "skyfall", "opady deszczu",
                "pluie-inondation", "regen",
            ]
        ),
    ]

    /// MeteoAlarm's numbers.
    private static let awareness: [Int: AlertHazard] = [1: .wind, 2: .snow, 3: .thunderstorm, 10: .rain, 13: .rain]

    /// - Parameter awarenessType: "3; Thunderstorm", which counts before all words.
    static func hazard(_ texts: [String], awarenessType: String? = nil) -> AlertHazard {
        if let number = awarenessType.flatMap({ Int($0.prefix { $0.isNumber }) }) { return awareness[number] ?? .other }
        // Hail in some languages, and degrees in German.
        let text = texts.joined(separator: " | ").lowercased().replacing(/[0-9]+\s*(grad)/, with: "")
        let found = Set(text.split { !$0.isLetter }.map(String.init))
        return words.first { !$0.whole.isDisjoint(with: found) || $0.parts.contains(where: text.contains) }?.hazard ?? .other
    }
}
