import StormyWeather
import Testing

@Suite struct OpenMeteoRequestTests {
    private let sydney: Coordinates
    private let query =
        "?latitude=-33.8688&longitude=151.2093&hourly=weather_code,precipitation,showers,precipitation_probability,wind_gusts_10m,temperature_2m"
        + ",cape,convective_inhibition,lifted_index"
        + "&timeformat=unixtime&timezone=auto&forecast_days=3&wind_speed_unit=kmh&precipitation_unit=mm"

    private func url(_ place: Coordinates, _ base: String? = nil) throws -> String {
        try OpenMeteo(baseURL: base).request(for: place, now: .now).url
    }

    init() throws { sydney = try Coordinates(latitude: -33.86882, longitude: 151.20930) }

    @Test func `nearly equal coordinates give the same URL`() throws {
        #expect(try url(sydney) == "https://api.open-meteo.com/v1/forecast" + query)
        let again = try Coordinates(latitude: -33.868819, longitude: 151.209301)
        #expect(try url(again) == url(sydney))
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/forecast"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/forecast"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/forecast"),
        ("https://mirror.example/weather/", "https://mirror.example/weather/v1/forecast"),
        ("https://mirror.example/v1/forecast", "https://mirror.example/v1/forecast"),
        ("", "https://api.open-meteo.com/v1/forecast"),
    ])
    func `a base address replaces the origin`(_ base: String, _ expected: String) throws {
        #expect(try url(sydney, base) == expected + query)
    }

    @Test(arguments: ["example.org", "ftp://example.org", "http://", "http://a/?key=1", "http://a/#x", "http://a b"])
    func `an invalid base address is an error`(_ base: String) {
        #expect(throws: WeatherRequestError.invalidBaseURL(base)) { try url(sydney, base) }
    }

    @Test func `geocoding escapes the name and limits the count`() throws {
        #expect(
            try OpenMeteo.geocodingURL(name: " São Paulo & Söhne+ ", count: 500, language: "de")
                == "https://geocoding-api.open-meteo.com/v1/search?name=S%C3%A3o%20Paulo%20%26%20S%C3%B6hne%2B&count=100&language=de&format=json"
        )
        #expect(
            try OpenMeteo.geocodingURL(name: "Oslo", count: 0, baseURL: "http://127.0.0.1:9")
                == "http://127.0.0.1:9/v1/search?name=Oslo&count=1&language=en&format=json")
        #expect(throws: WeatherRequestError.nameTooShort(" A ")) { try OpenMeteo.geocodingURL(name: " A ") }
    }
}
