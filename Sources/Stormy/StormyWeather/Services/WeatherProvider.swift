/// A public weather service, named as in the configuration and in the stores.
package enum WeatherProvider: String, Sendable, Hashable, Codable, CaseIterable {
    /// Open-Meteo: whole world, no key.
    case openMeteo = "open-meteo"
    /// MET Norway locationforecast: whole world, needs a contact in the User-Agent.
    case metNorway = "met-norway"
    /// US National Weather Service: the United States, no key.
    case nws
    /// Bright Sky: Germany, from open data of the DWD.
    case brightSky = "bright-sky"

    /// How it is asked.
    ///
    /// - Parameter baseURL: replaces scheme, host and port (tests, mirrors).
    package func service(baseURL: String? = nil) -> any WeatherService {
        switch self {
        case .openMeteo: OpenMeteo(baseURL: baseURL)
        case .metNorway: MetNorway(baseURL: baseURL)
        case .nws: NationalWeatherService(baseURL: baseURL)
        case .brightSky: BrightSky(baseURL: baseURL)
        }
    }

    /// It refuses who does not say how to be reached.
    package var needsContact: Bool {
        switch self {
        case .openMeteo, .nws, .brightSky: false
        case .metNorway: true
        }
    }

    /// Those that can be asked about a place, the chosen one first.
    ///
    /// - Parameter hasContact: the User-Agent says how its user is reached.
    package static func candidates(for place: Coordinates, first: WeatherProvider, hasContact: Bool) -> [WeatherProvider] {
        let others = allCases.filter { $0 != first && (hasContact || !$0.needsContact) && $0.service().covers(place) }
        return [first] + others
    }
}
