import Foundation
import StormyWeather
import Testing

private func instant(_ text: String) -> Date { (try? Date(text, strategy: .iso8601)) ?? .distantPast }

private func forecast(_ answer: WeatherResponse) throws -> Forecast {
    guard case .forecast(let forecast) = answer else { throw WeatherError.noData }
    return forecast
}

/// Tests the requests to weather services, and the parsing of their responses.
@Suite struct WeatherServiceTests {
    private let oslo: Coordinates
    private let florida: Coordinates
    private let nothing = WeatherRequest(url: "")

    init() throws {
        oslo = try Coordinates(latitude: 59.913868, longitude: 10.752245)
        florida = try Coordinates(latitude: 30, longitude: -85)
    }

    private func read(
        _ service: some WeatherService, _ text: String, status: Int = 200, to request: WeatherRequest? = nil, now: Date = .now
    ) throws(WeatherError) -> WeatherResponse {
        try service.read(Data(text.utf8), status: status, to: request ?? nothing, now: now)
    }

    // MARK: MET Norway

    @Test func `requests to MET Norway have coordinates with four decimals`() throws {
        #expect(
            try MetNorway().request(for: oslo, now: .now).url
                == "https://api.met.no/weatherapi/locationforecast/2.0/complete?lat=59.9139&lon=10.7522")
        #expect(
            try MetNorway(baseURL: "http://127.0.0.1:9/").request(for: oslo, now: .now).url
                == "http://127.0.0.1:9/weatherapi/locationforecast/2.0/complete?lat=59.9139&lon=10.7522")
    }

    @Test func `a recorded response of MET Norway is read`() throws {
        let answer = try MetNorway().read(fixture("metno_oslo"), status: 203, to: nothing, now: .now)
        let found = try forecast(answer)
        #expect(found.source == "MET Norway" && found.issuedAt == instant("2026-02-06T20:27:06Z"))
        #expect(
            found.hours.first
                == ForecastHour(
                    start: instant("2026-02-06T21:00:00Z"), weatherCode: 73, precipitationMM: 0.5, temperatureC: -5.8))
        // The response has single hours for two and a half days. Steps of six hours follow, which are split into hours.
        #expect(zip(found.hours, found.hours.dropFirst()).allSatisfy { $0.end == $1.start })
        #expect(found.hours.count > 200)
        #expect(StormRule().assess(found, now: instant("2026-02-06T21:10:00Z")).verdict == .calm)
    }

    @Test func `thunder and gusts of MET Norway are read and converted`() throws {
        let found = try forecast(
            read(
                MetNorway(),
                """
                {"properties":{"meta":{"units":{"wind_speed_of_gust":"m/s","precipitation_amount":"mm"}},"timeseries":[
                {"time":"2026-07-01T12:00:00Z","data":{"instant":{"details":{"wind_speed_of_gust":20}},
                "next_1_hours":{"summary":{"symbol_code":"heavyrainshowersandthunder_day"},"details":{"precipitation_amount":6}}}},
                {"time":"2026-07-01T13:00:00Z","data":{"instant":{},"next_6_hours":{"summary":{"symbol_code":"rain"},
                "details":{"precipitation_amount":12}}}},
                {"time":"noon","data":{}},{"time":"2026-07-01T14:00:00Z"},7,null]}}
                """))
        #expect(found.hours.count == 7 && found.hours[1].precipitationMM == 2 && found.hours[6].weatherCode == 63)
        #expect(found.hours[0].weatherCode == 95 && found.hours[0].gustsKMH == 72)
        let reasons = StormRule().assess(found, now: found.hours[0].start).reasons
        #expect(reasons.map { $0.explanation(in: .metric) } == ["thunderstorm (WMO 95) with rain of 6 mm per hour: MET Norway"])
    }

    /// Tests all symbols of the legend. The legend misspells two symbols.
    @Test func `each symbol of MET Norway is known`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let legend = try String(contentsOf: folder.appending(path: "Fixtures/metno_legend.csv"), encoding: .utf8)
        let symbols = legend.split(separator: "\n").dropFirst().map {
            String($0.prefix { $0 != "," }).trimmingCharacters(in: .whitespaces)
        }
        #expect(symbols.count == 41 && symbols.count { $0.contains("thunder") } == 18)
        for symbol in symbols {
            for variant in ["", "_day", "_night", "_polartwilight"] {
                let text = """
                    {"properties":{"timeseries":[{"time":"2026-07-01T12:00:00Z","data":{"next_1_hours":
                    {"summary":{"symbol_code":"\(symbol)\(variant)"}}}}]}}
                    """
                let code = try forecast(read(MetNorway(), text)).hours[0].weatherCode
                #expect(code.map(WeatherCode.isThunderstorm) == symbol.contains("thunder"), "\(symbol)")
            }
        }
    }

    // MARK: The US service

    @Test func `the path of a forecast of the US service is requested at the base address`() throws {
        let service = NationalWeatherService(baseURL: "http://127.0.0.1:9")
        let request = try service.request(for: florida, now: .now)
        #expect(request.url == "http://127.0.0.1:9/points/30,-85")
        let answer = try service.read(fixture("nws_points"), status: 200, to: request, now: .now)
        #expect(
            answer
                == .more(
                    WeatherRequest(
                        url: "http://127.0.0.1:9/gridpoints/TAE/58,65/forecast/hourly",
                        headers: ["Accept": "application/geo+json"])))
    }

    @Test(arguments: ["https://evil.example/steal", "file:///gridpoints/x", "/gridpoints/../../x", "not an address"])
    func `a forecast address on another server is not requested`(_ place: String) {
        let text = #"{"properties":{"forecastHourly":"\#(place)"}}"#
        let answer = try? read(NationalWeatherService(), text)
        switch answer {
        case nil: break
        case .more(let request): #expect(request.url.hasPrefix("https://api.weather.gov/gridpoints/"), "\(request)")
        case .forecast: Issue.record("no forecast")
        }
    }

    /// The service may send a forecast that has been in a cache for hours. Requests with different headers use different
    /// caches, so the second request has a different `Accept` header. If the second forecast is also old, it counts as an old
    /// forecast.
    @Test func `an old forecast is requested once more with another media type`() throws {
        let service = NationalWeatherService()
        let (url, made) = ("https://api.weather.gov/gridpoints/TAE/58,65/forecast/hourly", instant("2019-10-14T23:16:24Z"))
        let first = WeatherRequest(url: url, headers: ["Accept": "application/geo+json"])
        let fresh = try forecast(service.read(fixture("nws_hourly"), status: 200, to: first, now: made + 3600))
        #expect(fresh.issuedAt == made)
        #expect(
            fresh.hours.first
                == ForecastHour(
                    start: instant("2019-10-15T00:00:00Z"), weatherCode: 2, precipitationProbability: 20,
                    temperatureC: (78.0 - 32) / 1.8))
        let late = made + 11 * 3600
        let again = WeatherRequest(url: url, headers: ["Accept": "application/ld+json"])
        #expect(try service.read(fixture("nws_hourly"), status: 200, to: first, now: late) == .more(again))
        let old = try forecast(service.read(fixture("nws_hourly"), status: 200, to: again, now: late))
        #expect(old.isOld(for: service, now: late) && !old.isOld(for: service, now: made + 3600))
    }

    @Test func `conditions and gusts of the US service are read`() throws {
        let text = """
            {"periods":[
            {"startTime":"2026-07-01T14:00:00-04:00","shortForecast":"Slight Chance Showers And Thunderstorms","windGust":"35 mph"},
            {"startTime":"2026-07-01T15:00:00-04:00","shortForecast":"Severe T-Storms",
            "windGust":{"unitCode":"wmoUnit:km_h-1","value":80}},
            {"startTime":"2026-07-01T16:00:00-04:00","shortForecast":"Light Rain","windGust":null,"temperature":20,"temperatureUnit":"C"},
            {"startTime":"never","shortForecast":"Sunny"}]}
            """
        let hours = try forecast(read(NationalWeatherService(), text)).hours
        #expect(hours.map(\.weatherCode) == [95, 95, 61])
        #expect(hours[0].gustsKMH.map { Int($0.rounded()) } == 56 && hours[1].gustsKMH == 80 && hours[2].gustsKMH == nil)
        #expect(hours[2].temperatureC == 20)
        // The service reports no amounts of rain. Thunder without rain values is not a storm, but the hours are known.
        let calm = Forecast(hours: (0..<24).map { ForecastHour(start: hours[0].start + Double($0) * 3600, weatherCode: 95) })
        let assessment = StormRule().assess(calm, now: hours[0].start)
        #expect(assessment.verdict == .calm && assessment.unconfirmed?.count == 1)
    }

    @Test func `the US service has no forecast outside its country`() throws {
        #expect(throws: WeatherError.notCovered) {
            try read(NationalWeatherService(), #"{"title":"Data Unavailable For Requested Point"}"#, status: 404)
        }
        #expect(throws: WeatherError.service(status: 503, reason: "Forecast Grid Expired")) {
            try read(NationalWeatherService(), #"{"title":"Forecast Grid Expired","status":503}"#, status: 503)
        }
        #expect(NationalWeatherService().covers(florida) && !NationalWeatherService().covers(oslo))
        #expect(NationalWeatherService().covers(try Coordinates(latitude: 21.3, longitude: -157.9)), "Hawaii")
    }

    // MARK: Bright Sky

    @Test func `requests to Bright Sky contain dates without times`() throws {
        let berlin = try Coordinates(latitude: 52.52, longitude: 13.405)
        let url = try BrightSky().request(for: berlin, now: instant("2026-03-06T23:59:00Z")).url
        #expect(
            url
                == "https://api.brightsky.dev/weather?lat=52.52&lon=13.405&date=2026-03-06&last_date=2026-03-09&tz=Etc/UTC&units=dwd"
        )
        #expect(BrightSky().covers(berlin) && !BrightSky().covers(oslo))
    }

    @Test func `conditions of Bright Sky are read`() throws {
        let text = """
            {"weather":[
            {"timestamp":"2026-07-01T12:00:00+00:00","condition":"thunderstorm","precipitation":3.2,"wind_gust_speed":61.2,"temperature":22},
            {"timestamp":"2026-07-01T15:00:00+02:00","condition":"dry","icon":"partly-cloudy-day","precipitation":0,
            "precipitation_probability":10},
            {"timestamp":"2026-07-01T14:00:00+00:00","condition":null,"icon":null,"precipitation":null},
            {"timestamp":"2026-07-01T14:00:00","condition":"rain"}],"sources":[]}
            """
        #expect(
            try forecast(read(BrightSky(), text)).hours == [
                ForecastHour(
                    start: instant("2026-07-01T12:00:00Z"), weatherCode: 95, precipitationMM: 3.2, gustsKMH: 61.2,
                    temperatureC: 22),
                ForecastHour(
                    start: instant("2026-07-01T13:00:00Z"), weatherCode: 2, precipitationMM: 0, precipitationProbability: 10),
            ])
        #expect(throws: WeatherError.notCovered) { try read(BrightSky(), #"{"detail":"No sources match"}"#, status: 404) }
    }

    // MARK: All services

    private func services() -> [any WeatherService] { WeatherProvider.allCases.map { $0.service() } }

    /// If values are missing, have a wrong type or are truncated, the parser must not crash, and must not return a calm forecast.
    @Test(arguments: [
        "{}", "[]", "7", "null", "", "{", "<html>log in</html>", #"{"properties":[]}"#, #"{"properties":{"timeseries":{}}}"#,
        #"{"properties":{"periods":[null,7,{}]}}"#, #"{"weather":{"timestamp":1}}"#, #"{"weather":[[],{}]}"#,
        #"{"hourly":{"time":[1e999]}}"#,
        #"{"properties":{"timeseries":[{"time":"2026-07-01T12:00:00Z","data":[]}]}}"#, #"{"periods":[{"startTime":{}}]}"#,
        #"{"error":true}"#, "[[[[[[[[[[[[[[]]]]]]]]]]]]]]",
    ]) func `an invalid response is an error`(_ text: String) {
        for service in services() {
            for status in [200, 203] {
                #expect(throws: WeatherError.self, "\(service.source)") { try read(service, text, status: status) }
            }
        }
    }

    /// The parser and the code that uses it have no recursion. The parser and this code skip values that they do not need.
    @Test func `deep nesting is an error, and the last of duplicate keys is used`() throws {
        let deep = String(repeating: #"{"a":["#, count: 200_000)
        let closed = deep + String(repeating: "]}", count: 200_000)
        for service in services() {
            #expect(throws: WeatherError.truncated) { try read(service, deep) }
            #expect(throws: WeatherError.noData) { try read(service, closed) }
        }
        let bytes = Data(#"{"hourly":{"time":[1785585600],"weather_code":[3]}}"#.utf8)
        #expect(throws: WeatherError.self) { try OpenMeteo.parseForecast(bytes + Data([0, 0, 0])) }
        #expect(throws: WeatherError.self) {
            try OpenMeteo.parseForecast(Data(("[" + String(repeating: "0,", count: 1_500_000) + "0]").utf8))
        }
        let twice =
            #"{"hourly":{"time":[],"time":[1785585600],"weather_code":[[{"x":7},null],0,true],"weather_code":[3],"weather_code":["\u0000"],"#
            + #""temperature_2m":[21.5]},"hourly":7,"hourly":{"time":[1785585600],"weather_code":[2],"weather_code":[3]}}"#
        #expect(try OpenMeteo.parseForecast(Data(twice.utf8)).hours.map(\.weatherCode) == [3])
    }

    @Test func `status codes and reasons of the services become errors`() {
        for service in services() {
            #expect(throws: WeatherError.notModified) { try read(service, "", status: 304) }
            #expect(throws: WeatherError.rateLimited(reason: "")) { try read(service, "slow down", status: 429) }
            #expect(throws: WeatherError.service(status: 403, reason: "")) { try read(service, "Forbidden", status: 403) }
            #expect(throws: WeatherError.service(status: 503, reason: "busy")) {
                try read(service, #"{"detail":"busy"}"#, status: 503)
            }
        }
    }

    @Test func `a truncated recorded response is an error`() throws {
        for (service, name) in [(MetNorway() as any WeatherService, "metno_oslo"), (NationalWeatherService(), "nws_hourly")] {
            let whole = try fixture(name)
            for length in stride(from: 0, to: whole.count - 2, by: max(1, whole.count / 400)) {
                #expect(throws: WeatherError.truncated) {
                    try service.read(whole.prefix(length), status: 200, to: nothing, now: .now)
                }
            }
        }
    }

    @Test func `the chosen service is first, followed by services that cover the place`() throws {
        let berlin = try Coordinates(latitude: 52.52, longitude: 13.405)
        func order(_ place: Coordinates, _ first: WeatherProvider, _ hasContact: Bool) -> [WeatherProvider] {
            WeatherProvider.candidates(for: place, first: first, hasContact: hasContact)
        }
        #expect(order(oslo, .openMeteo, false) == [.openMeteo])
        #expect(order(oslo, .openMeteo, true) == [.openMeteo, .metNorway])
        #expect(order(berlin, .openMeteo, false) == [.openMeteo, .brightSky])
        #expect(order(florida, .nws, true) == [.nws, .openMeteo, .metNorway])
        #expect(order(berlin, .brightSky, true) == [.brightSky, .openMeteo, .metNorway])
    }

    // MARK: Two services

    private let noon = instant("2026-07-01T12:00:00Z")

    private func day(_ source: String, thunder: Set<Int> = [], gusts: Double = 10) -> Forecast {
        Forecast(
            hours: (0..<24).map {
                ForecastHour(
                    start: noon + Double($0) * 3600, weatherCode: thunder.contains($0) ? 95 : 3, precipitationMM: 0.1,
                    gustsKMH: gusts)
            }, source: source)
    }

    @Test func `thunder that two services forecast counts`() {
        let rule = StormRule()
        let one = day("One", thunder: [3, 9])
        let both = rule.assess(one, beside: day("Two", thunder: [4]), now: noon)
        #expect(
            both.reasons.map { $0.explanation(in: .metric) } == [
                "thunderstorm (WMO 95) as Two also forecasts: One", "thunderstorm (WMO 95) as One also forecasts: Two",
            ])
        #expect(both.unconfirmed?.map(\.from) == [noon + 9 * 3600] && both.second == "Two")
        let alone = rule.assess(one, beside: day("Two"), now: noon)
        #expect(alone.verdict == .calm && alone.unconfirmed?.count == 2 && alone.second == "Two")
        // If only the second service forecasts a storm, the assessment is also a storm.
        let windy = rule.assess(one, beside: day("Two", gusts: 90), now: noon)
        #expect(windy.verdict == .stormy && windy.reasons.allSatisfy { $0.source == "Two" })
        // If the first service has no rain value for the hour of thunder, the second service decides.
        var blind = one
        for index in blind.hours.indices where index == 3 { blind.hours[index].precipitationMM = nil }
        #expect(rule.assess(blind, now: noon).isStormy == nil)
        #expect(rule.assess(blind, beside: day("Two"), now: noon).isStormy == false)
    }
}
