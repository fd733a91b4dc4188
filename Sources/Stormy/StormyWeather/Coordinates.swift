import Foundation

/// The reason why numbers or a text are not valid coordinates.
package enum CoordinateError: Error, Equatable, Sendable {
    /// The text is not `LAT,LON` in decimal degrees.
    case malformed(String)
    /// A latitude outside -90...90 degrees, or not a number.
    case latitudeOutOfRange(Double)
    /// A longitude outside -180...180 degrees, or not a number.
    case longitudeOutOfRange(Double)
    /// The latitude is out of range, but both numbers would be valid in the other order.
    case swapped(latitude: Double, longitude: Double)

    /// A sentence for the user about the error and the expected form.
    package var message: String {
        switch self {
        case .malformed(let text):
            "“\(text.singleLine(limit: 60))” is not a place: write latitude and longitude in decimal degrees, as in -33.87,151.21"
        case .latitudeOutOfRange(let value):
            "latitude \(value) is not valid: expected a number from -90 to 90"
        case .longitudeOutOfRange(let value):
            "longitude \(value) is not valid: expected a number from -180 to 180"
        case .swapped(let latitude, let longitude):
            "latitude \(latitude) is out of range; latitude comes first: did you mean \(longitude),\(latitude)?"
        }
    }
}

/// A point on Earth in decimal degrees (WGS 84). The latitude and the longitude are always in their valid ranges.
package struct Coordinates: Sendable, Hashable, Codable {
    /// Degrees north of the equator, -90...90.
    package let latitude: Double
    /// Degrees east of Greenwich, -180...180.
    package let longitude: Double

    /// Creates coordinates from degrees. Throws ``CoordinateError`` if a value is out of range or not finite.
    package init(latitude: Double, longitude: Double) throws(CoordinateError) {
        guard (-90.0...90.0).contains(latitude) else {
            // A wrong order is the most frequent mistake, because many maps and GeoJSON have the longitude first.
            if (-180.0...180.0).contains(latitude), (-90.0...90.0).contains(longitude) {
                throw .swapped(latitude: latitude, longitude: longitude)
            }
            throw .latitudeOutOfRange(latitude)
        }
        guard (-180.0...180.0).contains(longitude) else { throw .longitudeOutOfRange(longitude) }
        // Adding zero turns -0 into 0, so that equal places have the same text.
        self.latitude = latitude + 0
        self.longitude = longitude + 0
    }

    /// Creates the corner of a drawn area. Longitudes up to 360 degrees are converted to -180...180, because areas over the date
    /// line are also drawn with such longitudes.
    ///
    /// `nil` if a value is out of range.
    init?(latitude: Double, foldingLongitude longitude: Double) {
        guard (-360.0...360.0).contains(longitude) else { return nil }
        let folded = longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude
        guard let corner = try? Coordinates(latitude: latitude, longitude: folded) else { return nil }
        self = corner
    }

    /// Parses a text `LAT,LON` of decimal degrees with a decimal point. Blanks around the numbers are allowed. The initializer
    /// throws ``CoordinateError`` if the text has another form.
    package init(parsing text: String) throws(CoordinateError) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2,
            let latitude = Coordinates.degrees(parts[0]),
            let longitude = Coordinates.degrees(parts[1])
        else { throw .malformed(text) }
        try self.init(latitude: latitude, longitude: longitude)
    }

    /// A text `LAT,LON` with at most four decimals, which ``init(parsing:)`` can parse.
    package var text: String { "\(Coordinates.decimal(latitude)),\(Coordinates.decimal(longitude))" }

    private enum CodingKeys: String, CodingKey { case latitude, longitude }

    /// Decodes and checks coordinates. A stored value out of range is a decoding error.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let latitude = try values.decode(Double.self, forKey: .latitude)
        let longitude = try values.decode(Double.self, forKey: .longitude)
        try self.init(latitude: latitude, longitude: longitude)
    }

    /// Formats degrees with at most four decimals (about 11 m), independently of the locale. Some weather services refuse more
    /// digits. The same place must have the same URL, because a transfer is found by its URL.
    static func decimal(_ degrees: Double) -> String {
        let units = Int((degrees * 10_000).rounded())
        let whole = abs(units) / 10_000
        var fraction = String(abs(units) % 10_000)
        fraction = String(repeating: "0", count: 4 - fraction.count) + fraction
        while fraction.hasSuffix("0") { fraction.removeLast() }
        return (units < 0 ? "-" : "") + String(whole) + (fraction.isEmpty ? "" : "." + fraction)
    }

    private static func degrees(_ part: Substring) -> Double? {
        let text = part.trimmingCharacters(in: .whitespaces).replacingOccurrences(of: "\u{2212}", with: "-")
        // `Double()` also reads "nan", "inf", "0x1p3" and "1e2", which users do not write for coordinates.
        guard text.contains(where: \.isNumber),
            text.utf8.allSatisfy({ byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains(byte)
            })
        else { return nil }
        return Double(text)
    }
}

extension StringProtocol {
    /// Returns the text on one line, cut after `limit` characters. Control characters are removed, because the text may be a
    /// service's response and is shown on a terminal.
    func singleLine(limit: Int) -> String {
        let printable = String(
            unicodeScalars.prefix(limit * 8).map { scalar in
                scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
                    || scalar.properties.isWhitespace ? " " : Character(scalar)
            })
        let words = printable.split(separator: " ").joined(separator: " ")
        return words.count > limit ? words.prefix(limit) + "…" : words
    }
}
