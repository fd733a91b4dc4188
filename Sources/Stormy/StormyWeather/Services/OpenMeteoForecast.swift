import Foundation

extension OpenMeteo {
    /// Parses a forecast response. Single values may be absent or have other forms, but the response must be complete.
    ///
    /// The parser accepts null at any position, arrays of unequal length (absent values are null), and responses without gusts.
    /// The parser accepts unix times and local ISO 8601 times, `weathercode` for `weather_code`, other units (which are
    /// converted), and a list with one place. Impossible values are treated as null. A response that is not complete JSON is an
    /// error, and never a calm forecast.
    /// - Parameters:
    ///   - data: the body, decompressed, at most ``ServiceResponse/maximumBytes``.
    ///   - status: the HTTP status.
    ///   - now: the time around which hours are kept, if the response has years of hours. `nil` to keep all hours.
    package static func parseForecast(
        _ data: Data, status: Int = 200, around now: Date? = nil
    ) throws(WeatherError) -> Forecast {
        var answer = try ServiceResponse.json(data, status: status)
        if let places = answer.elements {
            // A request for several places would return a list. Stormy requests one place.
            guard let only = places.first, places.count == 1 else { throw .noData }
            answer = only
        }
        guard let hourly = answer["hourly"], let times = hourly["time"]?.elements else { throw .noData }
        let offset = ServiceUnit.plausible(answer["utc_offset_seconds"]?.finite, in: -64_800...64_800).map { Int($0) }
        let zone = answer["timezone"]?.text
        // Local times without an offset cannot be converted. If the offset were guessed, the time of a storm could be wrong by
        // half a day.
        let localOffset = offset ?? (zone == "GMT" || zone == "UTC" ? 0 : nil)
        let columns = Columns(hourly: hourly, units: answer["hourly_units"])
        let starts = times.indices.map { ServiceTime.date(times[$0], utcOffset: localOffset) }
        let window = now.map { Forecast.keptSpan(around: $0) }
        // If no hour is near the present time, all hours are kept, because the error message contains their time.
        let isOfThisTime = window.map { window in starts.contains { $0.map(window.contains) ?? false } } ?? false
        var hours: [Date: ForecastHour] = [:]
        var values = StormValues()
        for index in times.indices {
            guard let start = starts[index], !isOfThisTime || window?.contains(start) != false else { continue }
            let hour = columns.hour(at: index, start: start, &values)
            guard hour.hasValue, hours[start] == nil else { continue }
            hours[start] = hour
        }
        guard !hours.isEmpty else { throw .noData }
        return Forecast(
            utcOffsetSeconds: offset ?? 0, timeZoneIdentifier: zone,
            hours: hours.values.sorted { $0.start < $1.start }, source: source, unreadable: values.unreadable)
    }
}

extension ForecastHour {
    /// `true` if the hour has a main value. Other values of an hour only supplement the main values.
    fileprivate var hasValue: Bool {
        weatherCode != nil || precipitationMM != nil || gustsKMH != nil || temperatureC != nil
    }
}

/// The parallel arrays of `hourly`, with the accepted names and units.
private struct Columns {
    private struct Column {
        let values: [JSONValue]
        let unit: String?

        subscript(index: Int) -> JSONValue? { values.indices.contains(index) ? values[index] : nil }
    }

    private var columns: [String: Column] = [:]

    init(hourly: JSONValue, units: JSONValue?) {
        let spellings = ["weather_code": "weathercode", "wind_gusts_10m": "windgusts_10m"]
        let names = [
            "weather_code", "precipitation", "showers", "precipitation_probability", "wind_gusts_10m", "temperature_2m", "cape",
            "convective_inhibition", "lifted_index",
        ]
        for name in names {
            for spelling in [name, spellings[name]].compactMap({ $0 }) where columns[name] == nil {
                // An empty array is treated like an array that the response does not contain.
                guard let values = hourly[spelling]?.elements, !values.isEmpty else { continue }
                columns[name] = Column(values: values, unit: units?[spelling]?.text)
            }
        }
    }

    func hour(at index: Int, start: Date, _ values: inout StormValues) -> ForecastHour {
        func value(_ name: String) -> JSONValue? { columns[name]?[index] }
        func unit(_ name: String) -> String? { columns[name]?.unit }
        // Some models give convective inhibition as a negative number.
        let inhibition = ServiceUnit.plausible(value("convective_inhibition")?.finite.map { abs($0) }, in: 0...5000)
        return ForecastHour(
            start: start,
            weatherCode: ServiceUnit.plausible(value("weather_code")?.finite, in: 0...99).flatMap { Int(exactly: $0) },
            precipitationMM: values.rain(value("precipitation")?.finite, unit("precipitation")),
            showersMM: values.rain(value("showers")?.finite, unit("showers")),
            precipitationProbability: ServiceUnit.percent(value("precipitation_probability")),
            gustsKMH: values.gusts(value("wind_gusts_10m")?.finite, unit("wind_gusts_10m")),
            temperatureC: ServiceUnit.celsius(value("temperature_2m"), unit("temperature_2m")),
            cape: ServiceUnit.joulesPerKilogram(value("cape")), convectiveInhibition: inhibition,
            liftedIndex: ServiceUnit.plausible(value("lifted_index")?.finite, in: -50...100))
    }
}
