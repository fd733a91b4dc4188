/// The WMO weather codes that Open-Meteo uses (a subset of WMO 4677, with different texts).
package enum WeatherCode {
    /// The 28 codes that Open-Meteo sends, ascending.
    package static let all = descriptions.keys.sorted()

    /// Returns the text for a code, or `nil` for a code that Open-Meteo does not send.
    package static func text(_ code: Int) -> String? { descriptions[code] }

    /// Returns whether the code means a current thunderstorm. Open-Meteo sends 95, 96 and 99. The codes 97 and 98 are
    /// thunderstorms in the full table. The codes 17, 29 and 91...94 (audible thunder, or past thunder) are not current
    /// thunderstorms.
    package static func isThunderstorm(_ code: Int) -> Bool { (95...99).contains(code) }

    /// Returns the name of a code's thunderstorm. The name never contains hail. Open-Meteo's server computes the code 96 from a
    /// score of how unstable the air is, and calls this thunderstorm "strong". In contrast, the public table of Open-Meteo
    /// contains "slight hail" for the code 96.
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
