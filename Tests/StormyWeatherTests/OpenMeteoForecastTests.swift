import Foundation
import StormyWeather
import Testing

func fixture(_ name: String) throws -> Data {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    return try Data(contentsOf: folder.appending(path: "Fixtures/\(name).json"))
}

private func parse(_ text: String, status: Int = 200) throws(WeatherError) -> Forecast {
    try OpenMeteo.parseForecast(Data(text.utf8), status: status)
}

@Suite struct OpenMeteoForecastTests {
    @Test func `local times of a recorded response are read`() throws {
        let forecast = try OpenMeteo.parseForecast(fixture("forecast_new_york_current_hourly_daily"), status: 200)
        #expect(forecast.hours.count == 168)
        #expect(forecast.utcOffsetSeconds == -18_000)
        #expect(forecast.timeZoneIdentifier == "America/New_York")
        #expect(forecast.source == "Open-Meteo")
        // The local time 2026-02-06T00:00 with the offset -5 h is 05:00 GMT.
        #expect(
            forecast.hours.first
                == ForecastHour(
                    start: Date(timeIntervalSince1970: 1_770_354_000), weatherCode: 0, precipitationMM: 0, temperatureC: -7.1))
        #expect(forecast.hours.last?.start == Date(timeIntervalSince1970: 1_770_354_000 + 167 * 3600))
        let now = Date(timeIntervalSince1970: 1_770_413_400)
        #expect(StormRule().assess(forecast, now: now) == Assessment(verdict: .calm))
    }

    @Test func `a response without weather codes is unknown, not calm`() throws {
        let forecast = try OpenMeteo.parseForecast(fixture("forecast_berlin_old_current_weather"), status: 200)
        #expect(forecast.hours.count == 168)
        #expect(forecast.hours[0] == ForecastHour(start: Date(timeIntervalSince1970: 1_770_418_800), temperatureC: 6.4))
        let assessment = StormRule().assess(forecast, now: Date(timeIntervalSince1970: 1_770_477_300))
        #expect(assessment.isStormy == nil)
    }

    @Test func `invalid values are skipped, and valid values are kept`() throws {
        let forecast = try parse(
            """
            [{"utc_offset_seconds":3600,"timezone":"Europe/Berlin","hourly":{
            "time":[7200,3600,null,10800,14400,"x",18000],
            "weathercode":[96,null,3,95.5,1e300,3],
            "precipitation":[-1,2.5,1,9999,null,1],
            "windgusts_10m":[null,10,10,true,99999,10],
            "temperature_2m":["warm",-3,1,4,500,1]}}]
            """)
        #expect(
            forecast.hours == [
                ForecastHour(start: Date(timeIntervalSince1970: 3600), precipitationMM: 2.5, gustsKMH: 10, temperatureC: -3),
                ForecastHour(start: Date(timeIntervalSince1970: 7200), weatherCode: 96),
                ForecastHour(start: Date(timeIntervalSince1970: 10_800), temperatureC: 4),
            ])
    }

    @Test(arguments: [("km/h", 100.0), ("m/s", 360.0), ("mp/h", 160.9344), ("kn", 185.2)])
    func `wind and rain are converted from the units of the response`(_ unit: String, _ expected: Double) throws {
        let forecast = try parse(
            """
            {"hourly_units":{"wind_gusts_10m":"\(unit)","precipitation":"inch","temperature_2m":"°F"},
            "hourly":{"time":[0],"wind_gusts_10m":[100],"precipitation":[2],"temperature_2m":[212]}}
            """)
        #expect(abs(try #require(forecast.hours[0].gustsKMH) - expected) < 0.001)
        #expect(forecast.hours[0].precipitationMM == 50.8)
        #expect(forecast.hours[0].temperatureC == nil, "a temperature at the boiling point is not possible")
    }

    /// An hour needs a weather code or another main value. Lists of additional values may be shorter than the list of hours.
    @Test func `values that confirm thunder are read and add no hours`() throws {
        let forecast = try parse(
            """
            {"hourly_units":{"showers":"inch"},"hourly":{"time":[0,3600,7200],"weather_code":[95,96,null],"showers":[0.1,null],
            "cape":[900,99999,5],"convective_inhibition":[-20,1e9],"lifted_index":[-4.5],"precipitation_probability":[80,101]}}
            """)
        #expect(
            forecast.hours == [
                ForecastHour(
                    start: Date(timeIntervalSince1970: 0), weatherCode: 95, showersMM: 2.54, precipitationProbability: 80,
                    cape: 900, convectiveInhibition: 20, liftedIndex: -4.5),
                ForecastHour(start: Date(timeIntervalSince1970: 3600), weatherCode: 96),
            ])
    }

    @Test func `a value in an unknown unit is unknown`() throws {
        let forecast = try parse(
            #"{"hourly_units":{"wind_gusts_10m":"furlong"},"hourly":{"time":[0],"wind_gusts_10m":[9],"weather_code":[1]}}"#)
        #expect(forecast.hours == [ForecastHour(start: Date(timeIntervalSince1970: 0), weatherCode: 1)])
    }

    @Test(
        arguments: [
            (#"{"wind_gusts_10m":"furlong"}"#, "[9]", [.gusts]), ("{}", "[1e9]", [.gusts]), ("{}", "[null]", nil),
            ("{}", "[9]", nil),
        ] as [(String, String, [StormValue]?)])
    func `gusts that cannot be read are not missing gusts`(_ units: String, _ gusts: String, _ unreadable: [StormValue]?) throws {
        let text = #"{"hourly_units":\#(units),"hourly":{"time":[0],"wind_gusts_10m":\#(gusts),"weather_code":[1]}}"#
        #expect(try parse(text).unreadable == unreadable)
    }

    @Test(arguments: [
        #"{"hourly":{"time":[],"weather_code":[]}}"#,
        #"{"hourly":{"time":[3600],"weather_code":[null]}}"#,
        #"{"hourly":{"time":["2026-02-30","26-02-06T00:00","2026-02-06T24:00"],"weather_code":[1,1,1]},"utc_offset_seconds":0}"#,
        #"{"hourly":{"time":["2026-02-06T00:00"],"weather_code":[1]},"timezone":"Europe/Berlin"}"#,
        "{}", "[]", "[{},{}]", #"{"hourly":[]}"#, #"{"hourly":{"time":"now"}}"#,
    ])
    func `a response without a usable hour is an error`(_ text: String) {
        #expect(throws: WeatherError.noData) { try parse(text) }
    }

    @Test func `a truncated response is an error`() throws {
        let whole = try fixture("forecast_new_york_current_hourly_daily")
        for length in stride(from: 0, to: whole.count - 2, by: 97) {
            #expect(throws: WeatherError.truncated) { try OpenMeteo.parseForecast(whole.prefix(length), status: 200) }
        }
        #expect(throws: WeatherError.truncated) {
            try parse(#"{"hourly":{"time":[0,3600Unexpected error while streaming data: timeoutReached"#)
        }
    }

    @Test func `errors of the service are distinguished from responses of other servers`() {
        let limit = "Minutely API request limit exceeded. Please try again in one minute."
        #expect(throws: WeatherError.rateLimited(reason: limit)) {
            try parse(#"{"error":true,"reason":"\#(limit)"}"#, status: 429)
        }
        #expect(throws: WeatherError.rateLimited(reason: limit)) { try parse(#"{"error":true,"reason":"\#(limit)"}"#) }
        #expect(throws: WeatherError.rateLimited(reason: "")) { try parse("", status: 429) }
        #expect(throws: WeatherError.service(status: 400, reason: "Invalid timezone")) {
            try parse(#"{"reason":"Invalid\ttimezone","error":true}"#, status: 400)
        }
        #expect(throws: WeatherError.service(status: 503, reason: "")) { try parse("<html>busy</html>", status: 503) }
        #expect(throws: WeatherError.service(status: 302, reason: "")) { try parse("", status: 302) }
        #expect(throws: WeatherError.notJSON(excerpt: "<!DOCTYPE html> <title>Log in</title>")) {
            try parse("<!DOCTYPE html>\n\u{1B}<title>Log in</title>")
        }
        #expect(throws: WeatherError.notJSON(excerpt: "\"calm\"")) { try parse("\"calm\"") }
        #expect(throws: WeatherError.tooLarge(bytes: ServiceResponse.maximumBytes + 1)) {
            try OpenMeteo.parseForecast(Data(count: ServiceResponse.maximumBytes + 1), status: 200)
        }
    }

    @Test func `deep nesting is an error, and a byte order mark is skipped`() throws {
        #expect(throws: WeatherError.self) { try parse(String(repeating: "[", count: 100_000)) }
        #expect(throws: WeatherError.self) {
            try parse(String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000))
        }
        #expect(try parse("\u{FEFF} {\"hourly\":{\"time\":[0],\"weather_code\":[0]}}\n").hours.count == 1)
    }

    /// If a decoder tried one type after another, it would need twenty times as long. The test measures the processor time of its
    /// thread, because other tests also use the processors.
    @Test(arguments: ["true,", "{},", "\"a\",", "null,"])
    func `values of other types are read as fast as numbers`(_ element: String) throws {
        func reading(_ element: String) -> Duration {
            let count = 400_000 / element.utf8.count
            let text = "{\"hourly\":{\"time\":[0],\"weather_code\":[\(String(repeating: element, count: count))1]}}"
            let data = Data(text.utf8)
            return (0..<3).map { _ in
                let began = Self.threadTime
                _ = try? OpenMeteo.parseForecast(data)
                return Self.threadTime - began
            }.min() ?? .zero
        }
        let (values, numbers) = (reading(element), reading("1,"))
        #expect(values < numbers * 3, "\(values), numbers \(numbers)")
    }

    private static var threadTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test func `local times agree with the Gregorian calendar`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        for day in stride(from: 0, to: 60_000, by: 17) {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 45_000)
            let parts = calendar.dateComponents([.year, .month, .day], from: date)
            let text = String(format: "%04d-%02d-%02dT12:30", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0)
            let forecast = try parse(#"{"timezone":"GMT","hourly":{"time":["\#(text)"],"weather_code":[0]}}"#)
            #expect(forecast.hours[0].start == date)
        }
    }

    @Test func `geocoding responses are read`() throws {
        let matches = try OpenMeteo.parseGeocoding(fixture("geocoding_goiania"))
        #expect(
            matches == [
                GeocodingMatch(
                    name: "Goiânia", coordinates: try Coordinates(latitude: -16.67861, longitude: -49.25389),
                    country: "Brasil", admin1: "Goiás", timezone: "America/Sao_Paulo")
            ])
        #expect(matches[0].label == "Goiânia, Goiás, Brasil")
        #expect(try OpenMeteo.parseGeocoding(Data(#"{"generationtime_ms":0.4}"#.utf8)).isEmpty)
        #expect(throws: WeatherError.service(status: 400, reason: "no")) {
            try OpenMeteo.parseGeocoding(Data(#"{"error":true,"reason":"no"}"#.utf8), status: 400)
        }
    }
}
