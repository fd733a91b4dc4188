/// A public weather service, named as in the configuration and in the stores.
package enum WeatherProvider: String, Sendable, Hashable, Codable, CaseIterable {
    /// Open-Meteo: whole world, no key.
    case openMeteo = "open-meteo"
    /// MET Norway locationforecast: needs a contact in the User-Agent.
    case metNorway = "met-norway"
    /// US National Weather Service: needs a contact in the User-Agent.
    case nws
    /// Bright Sky: Germany, from open data of the DWD.
    case brightSky = "bright-sky"

    /// Whether this version can ask the service. The others are declared so that a configuration naming them is
    /// answered with "not yet" instead of "unknown".
    package var isSupported: Bool {
        switch self {
        case .openMeteo: true
        case .metNorway, .nws, .brightSky: false
        }
    }
}
