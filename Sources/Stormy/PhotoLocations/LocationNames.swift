/// The names of properties about the location of a picture, in XMP, in text chunks, and in the keys of films.
///
/// Source of the rule: Exif 3.0 §4.6.6 (GPS), IPTC Photo Metadata 2023 (location created, location shown, and the older city,
/// state and country), the schemas of XMP, Dublin Core (coverage), the W3C's vocabulary of places, Darwin Core, makers' names.
enum LocationNames {
    /// Returns whether a property with this name is about a location.
    ///
    /// - Parameter name: An ASCII name without the prefix of a namespace.
    static func isLocation(_ name: some Sequence<UInt8>) -> Bool {
        let name = String(decoding: name.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
        guard name.utf8.count > 2, name.utf8.count < 200, !pixelPlaces.contains(name), !isAddressOfAPerson(name) else {
            return false
        }
        return names.contains(name) || words.contains { contains(name, $0) }
            || name.hasSuffix("city") && !["capacity", "opacity", "velocity", "elasticity"].contains { name.hasSuffix($0) }
    }

    static func contains(_ text: String, _ word: String) -> Bool { Array(text.utf8).firstRange(of: Array(word.utf8)) != nil }

    private static let words = ["gps", "latitude", "longitude", "longtitude", "location", "geotag", "iso6709", "georeference"]

    private static let names: Set<String> = [
        "state", "province", "provincestate", "stateprovince", "country", "countrycode", "countryname", "landmark", "worldregion",
        "city2", "sublocation", "locality", "municipality", "county", "verbatimcoordinates", "placename", "geo:lat", "geo:long",
        "coverage", "spatial", "cellid", "cgi", "celltowerid", "cellglobalid", "locationareacode",
    ]

    /// Returns whether a name is the address of the photographer or the licensor, for example "CreatorCity" (IPTC) and
    /// "LicensorCity" (PLUS). The address of the photographer or licensor is not the location of the photo.
    private static func isAddressOfAPerson(_ name: String) -> Bool {
        name.hasPrefix("creator") || name.hasPrefix("licensor") || name.hasPrefix("ciadr")
    }

    /// Properties about positions inside a picture, which are not geographic.
    private static let pixelPlaces: Set<String> = ["subjectlocation", "facelocation", "subjectarea"]
}
