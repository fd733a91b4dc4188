/// The beginnings of what `CoordinateText` finds.
extension CoordinateText {
    private static let sentences = ["$GPRMC", "$GPGGA", "$GNRMC", "$GNGGA", "$GPGLL", "$GNGLL", "$GLGGA", "$GPSINFO"]
    /// The beginnings of names.
    private static let names = [
        "lat", "lon", "lng", "geo", "coord", "koord", "pos", "point", "poly", "cent", "loc", "gps", "place", "map", "gml", "kml",
        "breit", "dte", "aeng", "gte", "szerok", "wgs", "icbm", "orig", "mark", "viewp", "near",
    ]
    private static let links = [
        "ongitude", "ll=", "ll:", "?q=", "&q=", "query", "addr", "dir/", "search", "cp=", "pin", "destination", "!3d", "!4d",
        "!2d", ":q=", "EPSG:4326", "///", "%2B", "%2b", "where1", "egree", "%40", "%2540", "q%3D", "q%253D", "ll%3D", "ll%253D",
        "%C2%B0", "%c2%b0", "%25C2%25B0", "LINESTR",
    ]
    /// The ends of the names of computers with maps.
    private static let domains = [".com/", ".org/", ".cz/", ".ru/", ".earth/", ".gl/", ".gl?", ".apple/", ".ch/"]
    /// The words of texts about a location. The patterns have two letters or more.
    static let words: [[UInt8]] = {
        var result = (links + domains + sentences + ["deg ", "@-"]).map { Array($0.utf8) } + labels
        result += names.flatMap(PlainLetters.cases).map { Array($0.utf8) }
        for digit in UInt8(48)...57 {
            result += [[UInt8(ascii: "@"), digit], [UInt8(ascii: "#"), digit]]
            for side in ["N", "S", " N", " S", " n", " s"] { result.append([digit] + Array(side.utf8)) }
            for next in UInt8(48)...57 {
                result += [[digit, UInt8(ascii: "d"), next], [digit, UInt8(ascii: "d"), 0x20, next]]
            }
            for side in ["N", "S", "N ", "S "] { result.append(Array(side.utf8) + [digit]) }
        }
        for letter in "CFGHJMPQRVWX".utf8 { result.append([UInt8(ascii: "+"), letter]) }
        for side in ["N", "S"] { result += [Array(",\(side),".utf8), Array("[\(side)]".utf8)] }
        // A degree sign, and the sign of ordinal numbers, in UTF-8 and Latin-1.
        result.append([0xC2, 0xB0])
        for next in " 0123456789'NSEW".utf8 { result += [[0xB0, next], [0xBA, next]] }
        return result + PlainLetters.words
    }()
}

extension CoordinateText {
    /// "GPS(11.5,48.1,20)" of a drone's subtitles.
    func list(at index: Int) -> Find? {
        let part = letters[index...].prefix(100)
        guard let start = part.firstIndex(of: UInt8(ascii: "(")), let end = part.firstIndex(of: UInt8(ascii: ")")), start < end
        else { return nil }
        let inside = letters[start + 1..<end]
        guard inside.contains(where: Self.isDigit), inside.allSatisfy({ Self.isDigit($0) || " .,+-/'°NSEW".utf8.contains($0) })
        else { return nil }
        var find = Find(blanks: [start + 1..<end], end: end)
        let numbers = inside.split(separator: UInt8(ascii: ",")).map { PlaceText.degrees($0) }
        if numbers.count > 1 {
            find.places = [
                FoundPlace(latitude: numbers[1], longitude: numbers[0]), FoundPlace(latitude: numbers[0], longitude: numbers[1]),
            ]
        }
        return find
    }
}
