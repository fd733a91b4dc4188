import Foundation

/// Responses in the format of Open-Meteo, for the hours around the current time.
package enum Weather {
    /// - Parameters:
    ///   - thunder: The hours with thunderstorms, counted from now.
    ///   - padding: The number of bytes of an additional member that makes the response long.
    ///   - gusts: The gusts in the hours with thunderstorms, in km/h.
    ///   - start: A time in the first hour.
    package static func forecast(
        thunder: Set<Int> = [4, 5, 6], padding: Int = 0, gusts: Double? = nil, from start: Date = Date()
    ) -> String {
        let first = Int(start.timeIntervalSince1970 / 3600) * 3600
        let hours = (0..<72).map { first + $0 * 3600 }
        var forecast: [String: Any] = [
            "latitude": 1.0, "longitude": 1.0, "utc_offset_seconds": 3600, "timezone": "Europe/Berlin",
            "hourly_units": ["time": "unixtime", "wind_gusts_10m": "km/h", "precipitation": "mm"],
            "hourly": [
                "time": hours, "weather_code": hours.indices.map { thunder.contains($0) ? 95 : 3 },
                "wind_gusts_10m": hours.indices.map { thunder.contains($0) ? gusts ?? 20.0 : 20.0 },
                "cape": hours.map { _ in 900.0 },
                "precipitation": hours.indices.map { thunder.contains($0) ? 2.4 : 0.1 },
                "temperature_2m": hours.map { _ in 20.0 },
            ],
        ]
        if padding > 0 { forecast["padding"] = String(repeating: "x", count: padding) }
        return json(forecast)
    }

    package static var calm: String { forecast(thunder: []) }

    package static let path = "/v1/forecast*"

    static func json(_ object: Any) -> String {
        let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        return String(decoding: data ?? Data(), as: UTF8.self)
    }
}
