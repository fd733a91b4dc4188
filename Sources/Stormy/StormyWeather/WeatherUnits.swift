/// The units in which the weather is shown to the user. Output for scripts is always metric.
package enum WeatherUnits: Sendable, CaseIterable {
    /// km/h, mm, degrees Celsius.
    case metric
    /// Miles per hour, mm, degrees Celsius.
    case british
    /// Miles per hour, inches, degrees Fahrenheit.
    case unitedStates

    /// Returns the units of a region. Source: CLDR 44, unitPreferenceData (wind speed, rainfall, weather temperature).
    ///
    /// - Parameter region: a region code such as "US". `nil` if the region is unknown.
    package init(region: String?) {
        self =
            switch region {
            case "US", "PR", "GU", "VI", "AS", "MP", "UM": .unitedStates
            case "GB", "GG", "IM", "JE": .british
            default: .metric
            }
    }

    private static let milesPerKilometre = 0.621_371
    private static let inchesPerMillimetre = 1 / 25.4

    /// Formats a speed: "92 km/h", "57 mph".
    func speed(_ kmh: Double) -> String { "\(speedNumber(kmh)) \(self == .metric ? "km/h" : "mph")" }

    func speedNumber(_ kmh: Double) -> Int { Int((self == .metric ? kmh : kmh * Self.milesPerKilometre).rounded()) }

    /// Formats an amount of rain: "4.2 mm per hour", "0.17 in per hour".
    func rain(_ mmPerHour: Double) -> String {
        guard self == .unitedStates else { return "\(StormReason.tenths(mmPerHour)) mm per hour" }
        let hundredths = Int((mmPerHour * Self.inchesPerMillimetre * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) in per hour"
    }

    func degrees(_ celsius: Double) -> Int { Int((self == .unitedStates ? celsius * 1.8 + 32 : celsius).rounded()) }

    /// The name of the temperature scale.
    var scale: String { self == .unitedStates ? "Fahrenheit" : "Celsius" }
}
