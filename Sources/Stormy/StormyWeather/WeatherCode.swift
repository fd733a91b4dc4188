/// WMO weather codes as Open-Meteo uses them (a subset of WMO 4677, with its own wording).
package enum WeatherCode {
    /// The 28 codes Open-Meteo sends, ascending.
    package static let all = descriptions.keys.sorted()

    /// What a code means in words; nil for a code Open-Meteo does not send.
    package static func text(_ code: Int) -> String? { descriptions[code] }

    /// Whether the code is a thunderstorm now. Open-Meteo sends 95, 96 and 99; 97 and 98 are thunderstorms in the
    /// full table. 17, 29 and 91...94 (thunder heard, or over already) are not.
    package static func isThunderstorm(_ code: Int) -> Bool { (95...99).contains(code) }

    /// The thunderstorm a code names. Never hail: Open-Meteo's server computes 96 from a score of how unstable the air is, and calls it
    /// "strong" itself, though its public table says "slight hail".
    static func thunderstorm(_ code: Int) -> String {
        switch code {
        case 96: "strong thunderstorm"
        case 97, 99: "heavy thunderstorm"
        case 98: "thunderstorm with dust storm"
        default: "thunderstorm"
        }
    }

    private static let descriptions: [Int: String] = [
        0: "clear sky", 1: "mainly clear", 2: "partly cloudy", 3: "overcast",
        45: "fog", 48: "depositing rime fog",
        51: "light drizzle", 53: "moderate drizzle", 55: "dense drizzle",
        56: "light freezing drizzle", 57: "dense freezing drizzle",
        61: "slight rain", 63: "moderate rain", 65: "heavy rain",
        66: "light freezing rain", 67: "heavy freezing rain",
        71: "slight snowfall", 73: "moderate snowfall", 75: "heavy snowfall", 77: "snow grains",
        80: "slight rain showers", 81: "moderate rain showers", 82: "violent rain showers",
        85: "slight snow showers", 86: "heavy snow showers",
        95: "thunderstorm", 96: "strong thunderstorm", 99: "heavy thunderstorm",
    ]
}
