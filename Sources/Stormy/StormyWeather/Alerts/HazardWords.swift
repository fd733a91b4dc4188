/// What a warning is about, by its service's words.
///
/// Source of the rules: the event names of the US service, the event codes of MET Norway and of the DWD (`GROUP`), and MeteoAlarm's
/// `awareness_type`.
enum HazardWords {
    /// Most telling first. A word is a part of the text, in lower case.
    private static let words: [(AlertHazard, [String])] = [
        (.other, ["storm surge", "small craft", "rip current", "wind chill", "fire", "sandstorm", "dust"]),
        (.thunderstorm, ["thunder", "lightning", "gewitter", "orage", "tormenta", "torden", "åsk", "hail"]),
        (
            .wind,
            [
                "tornado", "hurricane", "typhoon", "tropical storm", "tropical cyclone", "squall", "wind", "gale", "storm",
                "sturm", "böe",
                "orkan", "polarlow", "polar low", "vent", "viento", "vind", "kuling",
            ]
        ),
        (.snow, ["snow", "blizzard", "schnee", "winter", "neige", "nieve", "snø"]),
        (.rain, ["rain", "flash flood", "regen", "pluie", "lluvia", "regn"]),
    ]

    static func hazard(_ texts: [String]) -> AlertHazard {
        let text = texts.joined(separator: " ").lowercased()
        return words.first { $0.1.contains(where: text.contains) }?.0 ?? .other
    }
}
