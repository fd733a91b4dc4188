/// The thunder score that Open-Meteo's server computes if a weather model has no weather codes. The code follows the server's
/// source of 2026-07-03 (`WeatherCode.swift`). The score is a weighted mean of some values of an hour. Other values then increase
/// or reduce the score.
struct OpenMeteoScore {
    var cape: Double
    var liftedIndex: Double?
    var inhibition: Double?
    /// The precipitation of the hour in millimetres.
    var precipitation: Double
    var showers: Double?
    /// The gusts in metres per second.
    var gusts: Double?
    /// The cloud cover in percent.
    var cloudCover: Double
    var latitude = 50.0
    /// The height of the boundary layer in metres.
    var boundaryLayer: Double?

    /// The weather code 95 or 96; `nil` if the hour has no thunder.
    var thunderCode: Int? { score > 85 ? 96 : score > 60 ? 95 : nil }

    /// The score, from 0 to 100.
    var score: Double {
        if cape <= 10 || cloudCover < 30 || inhibition ?? 0 > 250 || liftedIndex ?? 0 > 2 { return 0 }
        let tropics = 1 - min(abs(latitude), 30) / 30
        var parts: [(weight: Double, value: Double)] = [(0.25, part(cape, from: 300, to: 2500 + 1500 * tropics))]
        if let inhibition { parts.append((0.15, 1 - part(inhibition, from: 15, to: 150))) }
        if let liftedIndex { parts.append((0.15, part(-liftedIndex, from: 0, to: 8))) }
        let reference = 2 + 3 * tropics
        if let showers, showers > 0 {
            parts.append((0.25, part(showers, from: 0, to: reference)))
        } else {
            parts.append((0.25 * 0.6, part(precipitation, from: 0, to: reference * 1.6)))
        }
        if let boundaryLayer { parts.append((0.075, part(boundaryLayer, from: 300, to: 1500))) }
        if let gusts { parts.append((0.075, part(gusts, from: 5, to: 18))) }
        var score = 100 * parts.reduce(0) { $0 + $1.weight * $1.value } / parts.reduce(0) { $0 + $1.weight }
        if let showers, let inhibition, showers > 0.1, cape > 300, inhibition < 50 { score = min(score * 1.3, 100) }
        if showers ?? precipitation <= 0 { score *= 0.7 }
        if inhibition ?? 0 > 100 { score *= 0.3 }
        if cloudCover < 60 { score *= 0.6 + 0.4 * (cloudCover - 30) / 30 }
        return min(max(score * (1 - 0.2 * tropics), 0), 100)
    }

    /// Returns the position of a value between two limits, from 0 to 1.
    private func part(_ value: Double, from: Double, to: Double) -> Double { min(max((value - from) / (to - from), 0), 1) }
}
