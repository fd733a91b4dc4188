import Foundation

// Responses in the formats of the weather services other than Open-Meteo.

/// MET Norway, Locationforecast.
package enum MetNorwayAnswer {
    package static let path = "/weatherapi/locationforecast/2.0/complete*"

    /// - Parameter thunder: Whether the hours four to six have thunderstorms.
    package static func forecast(thunder: Bool, from start: Date) -> String {
        let times = hours(48, from: start)
        let series = times.enumerated().map { index, time in
            let isThunder = thunder && (4...6).contains(index)
            return [
                "time": time,
                "data": [
                    "instant": ["details": ["air_temperature": 20.5]],
                    "next_1_hours": [
                        "summary": ["symbol_code": isThunder ? "rainshowersandthunder_day" : "fair_day"],
                        "details": ["precipitation_amount": isThunder ? 3.1 : 0.0],
                    ],
                ],
            ] as [String: Any]
        }
        let meta: [String: Any] = ["updated_at": times[0], "units": ["precipitation_amount": "mm"]]
        return Weather.json(["type": "Feature", "properties": ["meta": meta, "timeseries": series]])
    }
}

/// The National Weather Service of the United States.
package enum NationalWeatherServiceAnswer {
    package static let pointsPath = "/points/30,-85"
    package static let forecastPath = "/gridpoints/TAE/58,65/forecast/hourly"

    /// The response for a point. The response contains the URL of the forecast.
    package static let points = Weather.json([
        "properties": ["forecastHourly": "https://api.weather.gov" + forecastPath]
    ])

    /// - Parameter thunder: Whether the hours four to six have thunderstorms.
    package static func forecast(thunder: Bool, from start: Date) -> String {
        let times = hours(48, from: start)
        let periods = times.enumerated().map { index, time in
            let isThunder = thunder && (4...6).contains(index)
            return [
                "startTime": time, "shortForecast": isThunder ? "Thunderstorms Likely" : "Mostly Sunny", "temperature": 70,
                "temperatureUnit": "F", "windGust": isThunder ? "40 mph" : "10 mph",
            ] as [String: Any]
        }
        return Weather.json(["properties": ["updateTime": times[0], "periods": periods]])
    }
}

/// Bright Sky, a service for the data of Deutscher Wetterdienst.
package enum BrightSkyAnswer {
    package static let forecastPath = "/weather*"
    package static let warningsPath = "/alerts*"

    /// Returns a forecast with a thunderstorm in the fifth hour.
    package static func forecast(from start: Date) -> String {
        let rows = hours(48, from: start).enumerated().map { index, time in
            [
                "timestamp": time, "condition": index == 5 ? "thunderstorm" : "dry", "precipitation": index == 5 ? 4.2 : 0.0,
                "wind_gust_speed": 20.0,
            ] as [String: Any]
        }
        return Weather.json(["weather": rows])
    }

    package static let noWarnings = #"{"alerts":[]}"#

    /// Returns a warning of a thunderstorm that lasts from two to five hours from now.
    package static func warning(_ severity: String = "severe", id: String = "2.49.0.0.276.1", now: Date) -> String {
        func time(_ hours: Double) -> String { now.addingTimeInterval(hours * 3600).formatted(.iso8601) }
        return Weather.json([
            "alerts": [
                [
                    "alert_id": id, "status": "actual", "effective": time(-0.1), "onset": time(2), "expires": time(5),
                    "severity": severity, "event_en": "severe thunderstorm", "event_de": "SCHWERES GEWITTER",
                ]
            ]
        ])
    }
}

private func hours(_ count: Int, from start: Date) -> [String] {
    let first = (start.timeIntervalSince1970 / 3600).rounded(.down) * 3600
    return (0..<count).map { Date(timeIntervalSince1970: first + Double($0) * 3600).formatted(.iso8601) }
}
