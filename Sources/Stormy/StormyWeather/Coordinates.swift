import Foundation

/// Why a pair of numbers, or a text, is not a place on Earth.
package enum CoordinateError: Error, Equatable, Sendable {
    /// The text is not `LAT,LON` in decimal degrees.
    case malformed(String)
    /// A latitude outside -90...90 degrees, or not a number.
    case latitudeOutOfRange(Double)
    /// A longitude outside -180...180 degrees, or not a number.
    case longitudeOutOfRange(Double)
    /// The latitude is impossible but the pair would be valid the other way round.
    case swapped(latitude: Double, longitude: Double)

    /// One sentence for a person: what is wrong and what to write instead.
    package var message: String {
        switch self {
        case .malformed(let text):
            "“\(text.singleLine(limit: 60))” is not a place: write latitude and longitude in decimal degrees, as in -33.87,151.21"
        case .latitudeOutOfRange(let value):
            "latitude \(value) is out of range: it lies between -90 and 90 degrees"
        case .longitudeOutOfRange(let value):
            "longitude \(value) is out of range: it lies between -180 and 180 degrees"
        case .swapped(let latitude, let longitude):
            "latitude \(latitude) is out of range; latitude comes first: did you mean \(longitude),\(latitude)?"
        }
    }
}

/// A point on Earth in decimal degrees (WGS 84). An existing value is always in range.
package struct Coordinates: Sendable, Hashable, Codable {
    /// Degrees north of the equator, -90...90.
    package let latitude: Double
    /// Degrees east of Greenwich, -180...180.
    package let longitude: Double

    /// Checks the ranges. Throws ``CoordinateError`` when a value is out of range or not finite.
    package init(latitude: Double, longitude: Double) throws(CoordinateError) {
        guard (-90.0...90.0).contains(latitude) else {
            // The commonest mistake: maps and GeoJSON write longitude first.
            if (-180.0...180.0).contains(latitude), (-90.0...90.0).contains(longitude) {
                throw .swapped(latitude: latitude, longitude: longitude)
            }
            throw .latitudeOutOfRange(latitude)
        }
        guard (-180.0...180.0).contains(longitude) else { throw .longitudeOutOfRange(longitude) }
        // Adding zero turns -0 into 0, so that equal places are written alike.
        self.latitude = latitude + 0
        self.longitude = longitude + 0
    }

    /// A corner of a drawn area. Longitudes up to 360 degrees are folded, because areas over the date line are also drawn with them.
    ///
    /// `nil` if a value is out of range.
    init?(latitude: Double, foldingLongitude longitude: Double) {
        guard (-360.0...360.0).contains(longitude) else { return nil }
        let folded = longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude
        guard let corner = try? Coordinates(latitude: latitude, longitude: folded) else { return nil }
        self = corner
    }

    /// Reads `LAT,LON`, as typed in a shell: decimal degrees with a point, blanks around the numbers allowed.
    /// Throws ``CoordinateError``.
    package init(parsing text: String) throws(CoordinateError) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2,
            let latitude = Coordinates.degrees(parts[0]),
            let longitude = Coordinates.degrees(parts[1])
        else { throw .malformed(text) }
        try self.init(latitude: latitude, longitude: longitude)
    }

    /// `LAT,LON` with at most four decimals; ``init(parsing:)`` reads it back.
    package var text: String { "\(Coordinates.decimal(latitude)),\(Coordinates.decimal(longitude))" }

    private enum CodingKeys: String, CodingKey { case latitude, longitude }

    /// Decodes and checks; a stored value out of range is a decoding error.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let latitude = try values.decode(Double.self, forKey: .latitude)
        let longitude = try values.decode(Double.self, forKey: .longitude)
        try self.init(latitude: latitude, longitude: longitude)
    }

    /// At most four decimals (about 11 m), never in a person's locale: met services refuse more digits, and the
    /// same place must give the same URL, or a transfer would not be found again under its key.
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
        // Double() also reads "nan", "inf", "0x1p3" and "1e2"; none of them is how a person writes a place.
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
    /// The text on one line without control characters (a service's answer must not drive a person's terminal),
    /// cut after `limit` characters.
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
