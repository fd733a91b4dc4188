/// The meaning of a name before numbers, for example "lat", "geo:lon", "GPSLatitude", "coordinates" or "center".
///
/// Source of the rule: RFC 5870 (geo URIs), RFC 7946 (GeoJSON), GeoRSS, GML, KML, machine tags of Flickr, links of map services.
enum CoordinateName: Equatable {
    /// A name for a single number. `isClear` is `false` if the name also has other meanings. In this case, the number must look
    /// like a coordinate.
    case single(isLatitude: Bool, isClear: Bool)
    /// A name for a single number that can also mean a size, for example "long" or "Breite".
    case size(isLatitude: Bool)
    /// A name for a value that consists of two or more numbers. `digits` is the minimum number of digits after each point.
    case pair(digits: Int)

    private static let latitudes: Set<String> = ["lat", "mlat", "gpslat", "geolat", "latdeg", "sitelat", "obslat"]
    private static let longitudes: Set<String> = [
        "lon", "lng", "mlon", "mlng", "gpslon", "gpslng", "gpslong", "geolon", "geolng", "geolong", "sitelon", "sitelong",
        "obslon",
        "obslong",
    ]
    /// Words for latitude and longitude that also mean width and length.
    private static let (widths, lengths): (Set<String>, Set<String>) = (
        ["breite", "breedte", "szerokosc"], ["long", "lange", "laenge", "lengte", "dlugosc"]
    )
    /// Names of geographic places.
    private static let places: Set<String> = [
        "geo", "geom", "geotag", "coord", "coords", "coordinate", "coordinates", "coordinaten", "coordonnees", "coordenadas",
        "koordinate", "koordinaten", "wspolrzedne", "latlng", "latlon", "latlong",
        "lnglat",
        "lonlat", "ll", "sll", "gps", "location", "loc", "georss", "gml", "kml", "wgs84", "wgs", "icbm",
    ]
    /// Names that can also describe a point in a picture. Links of map services also use these names.
    private static let points: Set<String> = [
        "pos", "poslist", "position", "point", "center", "centre", "geometry", "polygon", "place", "map", "q", "query", "daddr",
        "saddr", "origin", "marker", "markers", "viewpoint", "near", "where1",
        "addr", "destination", "dir", "search", "cp", "pin", "linestring", "multipoint", "multilinestring", "multipolygon",
    ]
    /// Words after a name that do not change the meaning of the name.
    private static let units: Set<String> = [
        "deg", "degree", "degrees", "dec", "decimal", "d", "e5", "e6", "e7", "wgs", "wgs84", "n", "e", "tag", "off", "obs",
    ]

    /// Words that may be written between a name and its number.
    private static let fillers: Set<String> = [
        "is", "are", "was", "of", "at", "ist", "est", "es", "deg", "degree", "degrees", "decimal", "value", "wgs84", "wgs", "gps",
        "z",
        "m", "zm",
        "geograficzna",
    ]

    static func isFiller(_ word: some Sequence<UInt8>) -> Bool { fillers.contains(lowercased(word)) }

    /// Returns whether a word near "long" or "Breite" is a name of the other axis, or a word such as "geographic".
    static func isBesideSize(isLatitude: Bool, _ word: ArraySlice<UInt8>) -> Bool {
        let word = lowercased(word)
        return word.hasPrefix("geogr") || word.hasPrefix(isLatitude ? "lon" : "lat")
            || (isLatitude ? lengths : widths).contains(word)
    }

    private static func lowercased(_ word: some Sequence<UInt8>) -> String {
        String(decoding: word.map { (65...90).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// - Parameter name: The characters of the name: letters, digits, and the marks "_", ":", "." or "-" between them.
    init?(_ name: some Sequence<UInt8>) {
        let name = Array(name)
        var words = Self.words(name)
        let text = words.joined()
        if ["latitud", "breitengrad", "breedtegraad"].contains(where: { LocationNames.contains(text, $0) }) {
            self = .single(isLatitude: true, isClear: true)
            return
        }
        if ["ongitud", "ongtitude", "langengrad", "laengengrad", "lengtegraad"].contains(where: {
            LocationNames.contains(text, $0)
        }) {
            self = .single(isLatitude: false, isClear: true)
            return
        }
        // The names with "obsgeo" are in the FITS header of a telescope's picture. The values are a latitude, a longitude, or
        // metres from the centre of the Earth.
        if let axis = words.last, words.dropLast().last == "obsgeo", ["b", "l", "x", "y", "z"].contains(axis) {
            self = .single(isLatitude: axis == "b", isClear: true)
            return
        }
        while words.count > 1, Self.units.contains(words[words.count - 1]) { words.removeLast() }
        guard let last = words.last else { return nil }
        let isLatitude = Self.latitudes.contains(last)
        let isLongitude = Self.longitudes.contains(last) || last == "long"
        let before = words.dropLast().last ?? ""
        if isLatitude && (Self.longitudes.contains(before) || before == "long") || isLongitude && Self.latitudes.contains(before)
        {
            self = .pair(digits: 2)
        } else if isLatitude || Self.longitudes.contains(last) || last == "long" && ["geo", "obs", "site"].contains(before) {
            self = .single(isLatitude: isLatitude, isClear: false)
        } else if Self.widths.contains(last) || Self.lengths.contains(last) {
            self = .size(isLatitude: Self.widths.contains(last))
        } else if Self.places.contains(last) || words.contains(where: { ["georss", "gml", "kml"].contains($0) }) {
            self = .pair(digits: 2)
        } else if Self.points.contains(last) {
            self = .pair(digits: 4)
        } else {
            return nil
        }
    }

    /// Returns the words of a name in lower case. For example, "GPSLatitude" has the words "gps" and "latitude".
    private static func words(_ name: [UInt8]) -> [String] {
        var (words, current) = ([String](), [UInt8]())
        func isBig(_ index: Int) -> Bool { name.indices.contains(index) && (65...90).contains(name[index]) }
        func isSmall(_ index: Int) -> Bool { name.indices.contains(index) && (97...122).contains(name[index]) }
        func flush() {
            if !current.isEmpty { words.append(String(decoding: current, as: UTF8.self)) }
            current = []
        }
        for (index, letter) in name.enumerated() {
            guard isBig(index) || isSmall(index) || (48...57).contains(letter) else {
                flush()
                continue
            }
            if isBig(index), !isBig(index - 1) || isSmall(index + 1) { flush() }
            current.append(isBig(index) ? letter + 32 : letter)
        }
        flush()
        return words
    }
}
