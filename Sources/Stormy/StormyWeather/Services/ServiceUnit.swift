/// Converts values of a service to Stormy's units. The result is `nil` if the value is not a number, if its unit is unknown, or
/// if the value is impossible.
///
/// The limits are slightly above the measured records (401 mm in an hour, gusts of 408 km/h, -89 and 57 °C). Values outside these
/// limits come from a broken model, or are fill values such as 9999.
enum ServiceUnit {
    /// - Parameter unit: The unit of the value. `nil` if the value already has the requested unit.
    static func kilometresPerHour(_ value: Double?, _ unit: String?) -> Double? {
        let factor: Double? =
            switch unit {
            case nil, "km/h", "wmoUnit:km_h-1": 1
            case "m/s", "ms", "wmoUnit:m_s-1": 3.6
            case "mp/h", "mph": 1.609344
            case "kn", "kt": 1.852
            default: nil
            }
        return plausible(value, times: factor, in: 0...500)
    }

    static func millimetres(_ value: Double?, _ unit: String?) -> Double? {
        let factor: Double? =
            switch unit {
            case nil, "mm", "wmoUnit:mm": 1
            case "inch": 25.4
            default: nil
            }
        return plausible(value, times: factor, in: 0...500)
    }

    static func celsius(_ value: JSONValue?, _ unit: String? = nil) -> Double? {
        let isFahrenheit = unit == "°F" || unit == "F" || unit == "fahrenheit"
        return plausible(value?.finite.map { isFahrenheit ? ($0 - 32) / 1.8 : $0 }, in: -100...70)
    }

    static func percent(_ value: JSONValue?) -> Double? { plausible(value?.finite, in: 0...100) }

    /// Returns a plausible value of CAPE or of convective inhibition.
    static func joulesPerKilogram(_ value: JSONValue?) -> Double? { plausible(value?.finite, in: 0...15_000) }

    static func plausible(_ value: Double?, times factor: Double? = 1, in range: ClosedRange<Double>) -> Double? {
        guard let value, let factor, range.contains(value * factor) else { return nil }
        return value * factor
    }
}
