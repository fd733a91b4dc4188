/// A public weather service. The raw value is its name in the configuration and in the store.
package enum WeatherProvider: String, Sendable, Hashable, Codable, CaseIterable {
    /// Open-Meteo: all places on Earth, without an API key.
    case openMeteo = "open-meteo"
    /// MET Norway Locationforecast: all places on Earth. The service requires a contact in the User-Agent.
    case metNorway = "met-norway"
    /// US National Weather Service: the United States, without an API key.
    case nws
    /// Bright Sky, which covers Germany with open data of the Deutscher Wetterdienst.
    case brightSky = "bright-sky"

    /// Returns the client of the service.
    ///
    /// - Parameters:
    ///   - baseURL: an address that replaces scheme, host and port, for tests and mirrors.
    ///   - days: the number of days of the forecast. Some services send a fixed number of days.
    package func service(baseURL: String? = nil, days: Int = 3) -> any WeatherService {
        switch self {
        case .openMeteo: OpenMeteo(baseURL: baseURL, days: days)
        case .metNorway: MetNorway(baseURL: baseURL)
        case .nws: NationalWeatherService(baseURL: baseURL)
        case .brightSky: BrightSky(baseURL: baseURL, days: days)
        }
    }

    /// `true` if the service refuses requests without a contact.
    package var needsContact: Bool {
        switch self {
        case .openMeteo, .nws, .brightSky: false
        case .metNorway: true
        }
    }

    /// Returns the services that can be requested for a place, the chosen service first.
    ///
    /// - Parameter hasContact: `true` if the User-Agent contains the user's contact.
    package static func candidates(for place: Coordinates, first: WeatherProvider, hasContact: Bool) -> [WeatherProvider] {
        let others = allCases.filter { $0 != first && (hasContact || !$0.needsContact) && $0.service().covers(place) }
        return [first] + others
    }
}
