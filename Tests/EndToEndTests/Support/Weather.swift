import FaultyServer
import Foundation

/// Answers in the shape of Open-Meteo's, for the hours around now.
enum Weather {
    /// - Parameters:
    ///   - thunder: hours from now with thunderstorms.
    ///   - padding: bytes of an extra member, to make the answer long.
    static func forecast(
        thunder: Set<Int> = [4, 5, 6], padding: Int = 0, gusts: Double? = nil, from: Date = Date()
    ) -> String {
        let start = Int(from.timeIntervalSince1970 / 3600) * 3600
        let hours = (0..<72).map { start + $0 * 3600 }
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
        let data = try? JSONSerialization.data(withJSONObject: forecast, options: [.sortedKeys])
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    static let calm = forecast(thunder: [])

    static func serve(_ script: ResponseScript, on server: FaultyServer) { server.route("GET", path, script) }

    /// A stormy forecast whose head comes at once and whose body waits for the gate "rest", closed here.
    static func serveHeld(on server: FaultyServer) {
        server.closeGate("rest")
        let forecast = forecast()
        serve(
            ResponseScript([
                .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]), .hold(until: "rest"),
                .body(.text(forecast)),
            ]), on: server)
    }

    static let path = "/v1/forecast*"
}
