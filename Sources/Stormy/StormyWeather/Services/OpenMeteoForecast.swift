import Foundation

extension OpenMeteo {
    /// Reads the answer, tolerant in details and strict in the whole.
    ///
    /// Accepted: null anywhere, arrays of unequal length (what is missing is null), unix times and local ISO 8601 times,
    /// `weathercode` for `weather_code`, other units (converted), a list with one place, missing gusts. Values no
    /// weather can have are treated as null. An answer that is not complete JSON is an error, never a calm sky.
    /// - Parameters:
    ///   - data: the body, decompressed, at most ``ServiceAnswer/maximumBytes``.
    ///   - status: the HTTP status.
    ///   - now: of years of hours those that nobody asks about then are not looked at; `nil`: all are.
    package static func parseForecast(
        _ data: Data, status: Int = 200, around now: Date? = nil
    ) throws(WeatherError) -> Forecast {
        var answer = try ServiceAnswer.json(data, status: status)
        if let places = answer.elements {
            // Several places turn the answer into a list; we ask for one.
            guard let only = places.first, places.count == 1 else { throw .noData }
            answer = only
        }
        guard let hourly = answer["hourly"], let times = hourly["time"]?.elements else { throw .noData }
        let offset = ServiceUnit.plausible(answer["utc_offset_seconds"]?.finite, in: -64_800...64_800).map { Int($0) }
        let zone = answer["timezone"]?.text
        // Local times without an offset cannot be placed; guessing could move a storm by half a day.
        let localOffset = offset ?? (zone == "GMT" || zone == "UTC" ? 0 : nil)
        let columns = Columns(hourly: hourly, units: answer["hourly_units"])
        let starts = times.indices.map { AnswerTime.date(times[$0], utcOffset: localOffset) }
        let window = now.map { Forecast.keptSpan(around: $0) }
        // Those of another time say what is wrong with the answer.
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
    /// The rest only says more about these.
    fileprivate var hasValue: Bool {
        weatherCode != nil || precipitationMM != nil || gustsKMH != nil || temperatureC != nil
    }
}

/// The parallel arrays of `hourly`, each under its spelling and in its unit.
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
                // An empty array is a missing one.
                guard let values = hourly[spelling]?.elements, !values.isEmpty else { continue }
                columns[name] = Column(values: values, unit: units?[spelling]?.text)
            }
        }
    }

    func hour(at index: Int, start: Date, _ values: inout StormValues) -> ForecastHour {
        func value(_ name: String) -> JSONValue? { columns[name]?[index] }
        func unit(_ name: String) -> String? { columns[name]?.unit }
        // Some models write what holds back as a negative number.
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
