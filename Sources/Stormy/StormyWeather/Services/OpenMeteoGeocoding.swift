import Foundation

/// A place that the geocoding service found for a name.
package struct GeocodingMatch: Sendable, Equatable, Codable {
    /// The place's name in the requested language.
    package var name: String
    /// The place's coordinates.
    package var coordinates: Coordinates
    /// The country's name. `nil` if the service does not send the name.
    package var country: String?
    /// The state, province or region. `nil` if the service does not send the region.
    package var admin1: String?
    /// The IANA time zone. `nil` if the service does not send the time zone.
    package var timezone: String?

    /// Creates a match from its parts.
    package init(name: String, coordinates: Coordinates, country: String? = nil, admin1: String? = nil, timezone: String? = nil) {
        self.name = name
        self.coordinates = coordinates
        self.country = country
        self.admin1 = admin1
        self.timezone = timezone
    }

    /// The name, region and country for the user, for example "Goiânia, Goiás, Brasil".
    package var label: String { [name, admin1, country].compactMap { $0 }.joined(separator: ", ") }
}

extension OpenMeteo {
    /// Parses the response to ``geocodingURL(name:count:language:baseURL:)``, the best match first. For a response without
    /// `results`, the list is empty, because no place was found. A match without usable coordinates is not included.
    /// - Throws: ``WeatherError``
    package static func parseGeocoding(_ data: Data, status: Int = 200) throws(WeatherError) -> [GeocodingMatch] {
        let answer = try ServiceResponse.json(data, status: status)
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
