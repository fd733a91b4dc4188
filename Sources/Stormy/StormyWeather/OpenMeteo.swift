import Foundation

/// Why no request can be written.
package enum OpenMeteoRequestError: Error, Equatable, Sendable {
    /// The replacement address is not `http(s)://HOST[:PORT][/PATH]`.
    case invalidBaseURL(String)
    /// The geocoding service needs at least two letters.
    case nameTooShort(String)

    /// One sentence for a person.
    package var message: String {
        switch self {
        case .invalidBaseURL(let text):
            "“\(text.singleLine(limit: 120))” is not a service's address: write http:// or https://, a host and perhaps a port"
        case .nameTooShort(let name):
            "“\(name.singleLine(limit: 60))” is too short to look up: write at least two letters, or give LAT,LON"
        }
    }
}

/// Open-Meteo's requests and answers. Data: CC BY 4.0, to be credited as "Open-Meteo".
package enum OpenMeteo {
    /// The credit the licence asks for; also ``Forecast/source``.
    package static let source = "Open-Meteo"
    /// The largest answer that is looked at, in bytes (a usual one has about 10 KiB).
    package static let maximumAnswerBytes = 4 * 1024 * 1024

    /// The request for three days of hours.
    ///
    /// The same place always gives the same text: no date, a stable order. A cancelled transfer is adopted again
    /// under its URL, and the service's caches work.
    /// - Parameter baseURL: replaces scheme, host and port (tests, mirrors); a path in it becomes a prefix.
    /// - Throws: ``OpenMeteoRequestError/invalidBaseURL(_:)``
    package static func forecastURL(for place: Coordinates, baseURL: String? = nil) throws(OpenMeteoRequestError) -> String {
        let endpoint = try endpoint("https://api.open-meteo.com", path: "/v1/forecast", replacement: baseURL)
        let query = [
            "latitude=\(Coordinates.decimal(place.latitude))",
            "longitude=\(Coordinates.decimal(place.longitude))",
            "hourly=weather_code,precipitation,showers,precipitation_probability,wind_gusts_10m,temperature_2m,"
                + "cape,convective_inhibition,lifted_index",
            "timeformat=unixtime",
            "timezone=auto",
            "forecast_days=3",
            "wind_speed_unit=kmh",
            "precipitation_unit=mm",
        ]
        return endpoint + "?" + query.joined(separator: "&")
    }

    /// The request that looks a place's name up.
    /// - Parameters:
    ///   - name: as typed; may have one comma qualifier ("Paris, Texas").
    ///   - count: how many matches at most, clamped to the service's 1...100.
    ///   - language: ISO 639-1 code of the names in the answer.
    ///   - baseURL: replaces scheme, host and port; a path in it becomes a prefix.
    /// - Throws: ``OpenMeteoRequestError``
    package static func geocodingURL(
        name: String, count: Int = 5, language: String = "en", baseURL: String? = nil
    ) throws(OpenMeteoRequestError) -> String {
        let wanted = name.trimmingCharacters(in: .whitespacesAndNewlines)
        guard wanted.count >= 2 else { throw .nameTooShort(name) }
        let endpoint = try endpoint("https://geocoding-api.open-meteo.com", path: "/v1/search", replacement: baseURL)
        return endpoint + "?name=\(escaped(wanted))&count=\(min(max(count, 1), 100))&language=\(escaped(language))&format=json"
    }

    private static func endpoint(_ origin: String, path: String, replacement: String?) throws(OpenMeteoRequestError) -> String {
        guard let replacement, !replacement.isEmpty else { return origin + path }
        guard let parts = URLComponents(string: replacement),
            let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = parts.host, !host.isEmpty,
            parts.query == nil, parts.fragment == nil
        else { throw .invalidBaseURL(replacement) }
        var base = replacement
        while base.hasSuffix("/") { base.removeLast() }
        // Who copied the whole address from the service's manual means the same.
        return base.hasSuffix(path) ? base : base + path
    }

    /// Percent-encodes everything but RFC 3986's unreserved characters; Foundation's query set leaves `&` and `+`.
    private static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
}
