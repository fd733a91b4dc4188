import Foundation

/// MET Norway's Locationforecast 2.0: forecasts for all places on Earth, with hourly values for two and a half days. Data: CC BY
/// 4.0 and NLOD.
///
/// Source of the rules: the terms of service and the documentation at api.met.no. The User-Agent must contain a contact.
/// Coordinates have at most four decimals. A request is repeated only after `Expires`, with the exact `Last-Modified`. The status
/// 203 is also a success, and means that the API version is deprecated.
package struct MetNorway: WeatherService {
    package var source: String { "MET Norway" }
    /// The maximum age of a forecast: 12 hours, although the service makes a new forecast about every hour.
    package var longestAge: TimeInterval? { 12 * 3600 }
    private let address: ServiceAddress

    package init(baseURL: String? = nil) { address = ServiceAddress("https://api.met.no", replacement: baseURL) }

    package func covers(_ place: Coordinates) -> Bool { true }

    package func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest {
        let path = try address.url("/weatherapi/locationforecast/2.0/complete")
        return WeatherRequest(
            url: "\(path)?lat=\(Coordinates.decimal(place.latitude))&lon=\(Coordinates.decimal(place.longitude))")
    }

    package func read(
        _ data: Data, status: Int, to request: WeatherRequest, now: Date
    ) throws(WeatherError) -> WeatherResponse {
        let properties = try ServiceResponse.json(data, status: status)["properties"]
        let units = properties?["meta"]?["units"]
        var hours: [Date: ForecastHour] = [:]
        var values = StormValues()
        for step in properties?["timeseries"]?.elements ?? [] {
            guard let start = ServiceTime.date(step["time"]), hours[start] == nil else { continue }
            // After the part with hourly entries, each entry contains values for the next six hours. The values are used for each
            // of the six hours.
            let span = step["data"]?["next_1_hours"] == nil ? 6 : 1
            for index in 0..<span {
                let hour = Self.hour(step["data"], span, units, start: start + Double(index) * ForecastHour.seconds, &values)
                if let hour, hours[hour.start] == nil { hours[hour.start] = hour }
            }
        }
        guard !hours.isEmpty else { throw .noData }
        return .forecast(
            Forecast(
                hours: hours.values.sorted { $0.start < $1.start }, source: source,
                issuedAt: ServiceTime.date(properties?["meta"]?["updated_at"]), unreadable: values.unreadable))
    }

    private static func hour(
        _ data: JSONValue?, _ span: Int, _ units: JSONValue?, start: Date, _ values: inout StormValues
    ) -> ForecastHour? {
        let (instant, next) = (data?["instant"]?["details"], data?[span == 1 ? "next_1_hours" : "next_6_hours"])
        let symbol = next?["summary"]?["symbol_code"]?.text
        let rain = values.rain(next?["details"]?["precipitation_amount"]?.finite, units?["precipitation_amount"]?.text)
        let hour = ForecastHour(
            start: start, weatherCode: symbol.flatMap(code),
            precipitationMM: rain.map { $0 / Double(span) },
            precipitationProbability: ServiceUnit.percent(next?["details"]?["probability_of_precipitation"]),
            gustsKMH: values.gusts(instant?["wind_speed_of_gust"]?.finite, units?["wind_speed_of_gust"]?.text ?? "m/s"),
            temperatureC: ServiceUnit.celsius(instant?["air_temperature"], units?["air_temperature"]?.text))
        return hour.weatherCode != nil || hour.precipitationMM != nil ? hour : nil
    }

    /// Returns the WMO code that is nearest to a symbol such as "heavyrainshowersandthunder_day". Source of the rule: the legend
    /// of metno/weathericons, with its two misspelt symbols.
    private static func code(_ symbol: String) -> Int? {
        if symbol.contains("thunder") { return 95 }
        return codes[String(symbol.prefix { $0 != "_" })]
    }

    private static let codes = [
        "clearsky": 0, "fair": 1, "partlycloudy": 2, "cloudy": 3, "fog": 45,
        "lightrain": 61, "rain": 63, "heavyrain": 65, "lightrainshowers": 80, "rainshowers": 81, "heavyrainshowers": 82,
        "lightsleet": 66, "sleet": 67, "heavysleet": 67, "lightsleetshowers": 66, "sleetshowers": 67, "heavysleetshowers": 67,
        "lightsnow": 71, "snow": 73, "heavysnow": 75, "lightsnowshowers": 85, "snowshowers": 85, "heavysnowshowers": 86,
    ]
}
