import Foundation

/// The US National Weather Service. The first request returns the address of the forecast for a point, and the second request
/// returns the hourly forecast. The data is in the public domain.
///
/// Source of the rules: api.weather.gov and its documentation. The User-Agent contains the name of the program, and coordinates
/// have at most four decimals. A cached response may be hours old. The cache depends on the request's headers, so an old response
/// is requested again with another `Accept`.
package struct NationalWeatherService: WeatherService {
    package var source: String { "US National Weather Service" }
    package var longestAge: TimeInterval? { 8 * 3600 }
    private let address: ServiceAddress

    package init(baseURL: String? = nil) { address = ServiceAddress("https://api.weather.gov", replacement: baseURL) }

    /// Returns whether a place is approximately in the states and territories of the US.
    package func covers(_ place: Coordinates) -> Bool {
        ServiceOutline.continentalStatesContain(place)
            || Self.areas.contains { $0.latitudes.contains(place.latitude) && $0.longitudes.contains(place.longitude) }
    }

    private static let areas: [(latitudes: ClosedRange<Double>, longitudes: ClosedRange<Double>)] = [
        (51...72, -180 ... -141), (54.5...60.4, -141 ... -129.9), (51...54, 172...180), (18...23, -161 ... -154),
        (17...19, -68 ... -64),
        (13...21, 144...147), (-15 ... -10, -172 ... -168),
    ]

    package func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest {
        WeatherRequest(url: try address.url("/points/\(place.text)"), headers: ["Accept": Self.accepted[0]])
    }

    private static let accepted = ["application/geo+json", "application/ld+json"]

    package func read(
        _ data: Data, status: Int, to request: WeatherRequest, now: Date
    ) throws(WeatherError) -> WeatherResponse {
        let answer = try ServiceResponse.jsonOfAPlace(data, status: status)
        // If the response is linked data (JSON-LD), the members are at the top level.
        let properties = answer["properties"] ?? answer
        if let place = properties["forecastHourly"]?.text { return .more(try hourly(place)) }
        var values = StormValues()
        let hours = (properties["periods"]?.elements ?? []).compactMap { Self.hour($0, &values) }
        guard !hours.isEmpty else { throw .noData }
        let issued = ServiceTime.date(properties["updateTime"]) ?? ServiceTime.date(properties["generatedAt"])
        let forecast = Forecast(
            utcOffsetSeconds: 0,
            hours: Dictionary(hours.map { ($0.start, $0) }) { first, _ in first }.values
                .sorted { $0.start < $1.start },
            source: source, issuedAt: issued, unreadable: values.unreadable)
        guard forecast.isOld(for: self, now: now) else { return .forecast(forecast) }
        guard request.headers["Accept"] == Self.accepted[1] else {
            return .more(WeatherRequest(url: request.url, headers: ["Accept": Self.accepted[1]]))
        }
        return .forecast(forecast)
    }

    /// Requests a forecast only from this service's host, because a response must not be able to redirect requests to another
    /// host.
    private func hourly(_ place: String) throws(WeatherError) -> WeatherRequest {
        guard let parts = URLComponents(string: place), parts.path.hasPrefix("/gridpoints/"), !parts.path.contains(".."),
            let url = try? address.url(parts.percentEncodedPath)
        else { throw .noData }
        return WeatherRequest(url: url, headers: ["Accept": Self.accepted[0]])
    }

    private static func hour(_ period: JSONValue, _ values: inout StormValues) -> ForecastHour? {
        guard let start = ServiceTime.date(period["startTime"]) else { return nil }
        let words = period["shortForecast"]?.text?.lowercased()
        let unit = period["temperatureUnit"]?.text
        return ForecastHour(
            // The start is rounded down to the full hour, as in other services.
            start: Date(timeIntervalSince1970: (start.timeIntervalSince1970 / 3600).rounded(.down) * 3600),
            weatherCode: words.flatMap(code),
            precipitationProbability: ServiceUnit.percent(period["probabilityOfPrecipitation"]?["value"]),
            gustsKMH: speed(period["windGust"], &values),
            temperatureC: ServiceUnit.celsius(period["temperature"], unit))
    }

    /// Returns the speed in a text such as "15 mph" or "10 to 15 mph", or in a value with a unit. If there are two speeds, the
    /// greater speed is returned.
    private static func speed(_ value: JSONValue?, _ values: inout StormValues) -> Double? {
        if let number = value?["value"] ?? value?["maxValue"] {
            return values.gusts(number.finite, value?["unitCode"]?.text)
        }
        let words = (value?.text ?? "").split(separator: " ")
        guard let number = words.compactMap({ Double($0) }).max(), let unit = words.last else { return nil }
        return values.gusts(number, String(unit))
    }

    /// Returns the WMO code that is nearest to words such as "Slight Chance Showers And Thunderstorms". For weather without
    /// thunder, the code does not depend on the intensity.
    private static func code(_ words: String) -> Int? {
        let codes: [(String, Int)] = [
            ("thunder", 95), ("t-storm", 95), ("tstm", 95), ("freezing", 66), ("sleet", 66), ("snow", 73), ("showers", 80),
            ("rain", 61),
            ("drizzle", 51), ("fog", 45), ("haze", 45), ("mostly clear", 1), ("mostly sunny", 1), ("partly", 2), ("cloudy", 3),
            ("clear", 0), ("sunny", 0),
        ]
        return codes.first { words.contains($0.0) }?.1 ?? (words.isEmpty ? nil : 3)
    }
}
