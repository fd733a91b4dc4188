import Foundation

/// Open-Meteo: forecasts for all places on Earth, without an API key. Data: CC BY 4.0, credited as "Open-Meteo".
package struct OpenMeteo: WeatherService {
    package static let source = "Open-Meteo"
    package var source: String { Self.source }
    package var longestAge: TimeInterval? { nil }
    private let address: ServiceAddress
    private let days: Int

    /// - Parameters:
    ///   - baseURL: an address that replaces scheme, host and port, for tests and mirrors. If this address has a path, the path
    ///     becomes a prefix.
    ///   - days: the number of days of the forecast, from today.
    package init(baseURL: String? = nil, days: Int = 3) {
        address = ServiceAddress("https://api.open-meteo.com", replacement: baseURL)
        self.days = days
    }

    package func covers(_ place: Coordinates) -> Bool { true }

    /// Returns the request for hourly values. Requests for the same place and number of days are always equal: they contain no
    /// date, and the order of their parameters is constant.
    package func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest {
        let query = [
            "latitude=\(Coordinates.decimal(place.latitude))",
            "longitude=\(Coordinates.decimal(place.longitude))",
            "hourly=weather_code,precipitation,showers,precipitation_probability,wind_gusts_10m,temperature_2m,"
                + "cape,convective_inhibition,lifted_index",
            "timeformat=unixtime",
            "timezone=auto",
            "forecast_days=\(days)",
            "wind_speed_unit=kmh",
            "precipitation_unit=mm",
        ]
        return WeatherRequest(url: try address.url("/v1/forecast") + "?" + query.joined(separator: "&"))
    }

    package func read(
        _ data: Data, status: Int, to request: WeatherRequest, now: Date
    ) throws(WeatherError) -> WeatherResponse {
        .forecast(try Self.parseForecast(data, status: status, around: now))
    }

    /// Returns the request that searches for a place by its name.
    /// - Parameters:
    ///   - name: the name that the user typed, with an optional qualifier after a comma ("Paris, Texas").
    ///   - count: the maximum number of matches, limited to the service's range 1...100.
    ///   - language: the ISO 639-1 code for the names in the response.
    ///   - baseURL: an address that replaces scheme, host and port. If this address has a path, the path becomes a prefix.
    /// - Throws: ``WeatherRequestError``
    package static func geocodingURL(
        name: String, count: Int = 5, language: String = "en", baseURL: String? = nil
    ) throws(WeatherRequestError) -> String {
        let wanted = name.trimmingCharacters(in: .whitespacesAndNewlines)
        guard wanted.count >= 2 else { throw .nameTooShort(name) }
        let endpoint = try ServiceAddress("https://geocoding-api.open-meteo.com", replacement: baseURL).url("/v1/search")
        return endpoint + "?name=\(escaped(wanted))&count=\(min(max(count, 1), 100))&language=\(escaped(language))&format=json"
    }

    /// Percent-encodes all characters except the unreserved characters of RFC 3986. Foundation's query set does not encode `&`
    /// and `+`.
    private static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
}
