import Foundation

/// Bright Sky: forecasts for Germany from the open data of the Deutscher Wetterdienst, without an API key. Data: CC BY 4.0.
///
/// Source of the rules: brightsky.dev and its documentation. The precipitation that the service lists for a time is the
/// precipitation of the hour before this time. The units are the DWD's units.
package struct BrightSky: WeatherService {
    package var source: String { "Deutscher Wetterdienst (Bright Sky)" }
    package var longestAge: TimeInterval? { nil }
    private let address: ServiceAddress
    private let days: Int

    package init(baseURL: String? = nil, days: Int = 3) {
        address = ServiceAddress("https://api.brightsky.dev", replacement: baseURL)
        self.days = days
    }

    package func covers(_ place: Coordinates) -> Bool {
        (47.2...55.1).contains(place.latitude) && (5.8...15.1).contains(place.longitude)
    }

    /// Returns a request for days by their dates, because the service has no other request for a forecast.
    package func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest {
        let days = [0, days].map { now.addingTimeInterval(Double($0) * 86_400).formatted(.iso8601.year().month().day()) }
        let query = [
            "lat=\(Coordinates.decimal(place.latitude))", "lon=\(Coordinates.decimal(place.longitude))", "date=\(days[0])",
            "last_date=\(days[1])", "tz=Etc/UTC", "units=dwd",
        ]
        return WeatherRequest(url: try address.url("/weather") + "?" + query.joined(separator: "&"))
    }

    package func read(
        _ data: Data, status: Int, to request: WeatherRequest, now: Date
    ) throws(WeatherError) -> WeatherResponse {
        let answer = try ServiceResponse.jsonOfAPlace(data, status: status)
        var hours: [Date: ForecastHour] = [:]
        var values = StormValues()
        for row in answer["weather"]?.elements ?? [] {
            guard let start = ServiceTime.date(row["timestamp"]), hours[start] == nil else { continue }
            hours[start] = Self.hour(row, start, &values)
        }
        guard !hours.isEmpty else { throw .noData }
        return .forecast(
            Forecast(hours: hours.values.sorted { $0.start < $1.start }, source: source, unreadable: values.unreadable))
    }

    private static func hour(_ row: JSONValue, _ start: Date, _ values: inout StormValues) -> ForecastHour? {
        let hour = ForecastHour(
            start: start, weatherCode: code(row), precipitationMM: values.rain(row["precipitation"]?.finite, nil),
            precipitationProbability: ServiceUnit.percent(row["precipitation_probability"]),
            gustsKMH: values.gusts(row["wind_gust_speed"]?.finite, nil), temperatureC: ServiceUnit.celsius(row["temperature"]))
        let hasValue = hour.weatherCode != nil || hour.precipitationMM != nil || hour.gustsKMH != nil
        return hasValue ? hour : nil
    }

    /// Returns the WMO code that is nearest to the words. The member `condition` contains the precipitation, and the member
    /// `icon` contains the other weather.
    private static func code(_ row: JSONValue) -> Int? {
        let (condition, icon) = (row["condition"]?.text, row["icon"]?.text)
        if condition == "thunderstorm" || icon == "thunderstorm" { return 95 }
        let codes = ["rain": 61, "sleet": 66, "snow": 73, "fog": 45, "hail": 77]
        if let condition, let code = codes[condition] { return code }
        guard let icon else { return condition == nil ? nil : 3 }
        if icon.hasPrefix("clear") { return 0 }
        return icon.hasPrefix("partly") ? 2 : codes[icon] ?? 3
    }
}
