import Foundation

/// One place the geocoding service found for a name.
package struct GeocodingMatch: Sendable, Equatable, Codable {
    /// The place's name in the language asked for.
    package var name: String
    /// Where it is.
    package var coordinates: Coordinates
    /// The country's name, when given.
    package var country: String?
    /// State, province or region, when given.
    package var admin1: String?
    /// IANA time zone, when given.
    package var timezone: String?

    /// A match from its parts.
    package init(name: String, coordinates: Coordinates, country: String? = nil, admin1: String? = nil, timezone: String? = nil) {
        self.name = name
        self.coordinates = coordinates
        self.country = country
        self.admin1 = admin1
        self.timezone = timezone
    }

    /// Name, region and country, as shown to a person: "Goiânia, Goiás, Brasil".
    package var label: String { [name, admin1, country].compactMap { $0 }.joined(separator: ", ") }
}

extension OpenMeteo {
    /// Reads the answer to ``geocodingURL(name:count:language:baseURL:)``, best match first. No `results` at all
    /// means that nothing was found: an empty list. A match without usable coordinates is left out.
    /// - Throws: ``WeatherError``
    package static func parseGeocoding(_ data: Data, status: Int = 200) throws(WeatherError) -> [GeocodingMatch] {
        let answer = try ServiceAnswer.json(data, status: status)
        guard answer.isObject else { throw .noData }
        return (answer["results"]?.elements ?? []).compactMap { match in
            guard let name = match["name"]?.text,
                let latitude = match["latitude"]?.finite, let longitude = match["longitude"]?.finite,
                let coordinates = try? Coordinates(latitude: latitude, longitude: longitude)
            else { return nil }
            return GeocodingMatch(
                name: name.singleLine(limit: 120), coordinates: coordinates,
                country: match["country"]?.text?.singleLine(limit: 120),
                admin1: match["admin1"]?.text?.singleLine(limit: 120),
                timezone: match["timezone"]?.text)
        }
    }
}
