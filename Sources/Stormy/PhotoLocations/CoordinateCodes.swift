/// This extension finds locations that are written as a code. The codes are plus codes, what3words addresses, geohashes,
/// Maidenhead locators, and grid references.
///
/// Source of the rule: the specification of Open Location Code, the help of what3words, NGA.SIG.0012 (UTM and MGRS).
extension CoordinateText {
    /// The beginnings of labels that are written before a code.
    static let labels = [
        "what3words", "w3w", "geohash", "maidenhead", "locator", "qth", "mgrs", "usng", "utm", "lv95", "lv03", "ch1903", "osgb",
        "plus code", "pluscode", "plus.codes",
    ].flatMap(PlainLetters.cases).map { Array($0.utf8) }

    private static let grids = ["mgrs", "usng", "utm", "lv95", "lv03", "ch1903", "osgb"]

    /// Returns the code after the label at an index, or after the "///" of a what3words address.
    func code(at index: Int) -> Find? {
        if has("///", at: index) {
            return [58, 47].contains(letter(index - 1)) || letter(index + 3) == 47 ? nil : threeWords(at: index + 3)
        }
        let before = letter(index - 1)
        guard before != 46, !Self.isLetter(before), !Self.isDigit(before) else { return nil }
        let label = String(decoding: letters[index...].prefix(10).map { (65...90).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        if label.hasPrefix("what3words") { return threeWords(behind: index + 10) }
        if label.hasPrefix("w3w") { return threeWords(behind: index + 3) }
        if label.hasPrefix("plus") { return shortCode(behind: index + (label.hasPrefix("pluscode") ? 8 : 9)) }
        if label.hasPrefix("geohash") {
            return value(behind: index + 7, 5...12) { Self.isDigit($0) || (98...122).contains($0) && !"ilo".utf8.contains($0) }
        }
        if let name = ["maidenhead", "locator", "qth"].first(where: label.hasPrefix) {
            let find = value(behind: index + name.utf8.count, 6...10) { Self.isDigit($0) || Self.isLetter($0) }
            return find.flatMap { isLocator($0.blanks[0].lowerBound) ? $0 : nil }
        }
        return Self.grids.first(where: label.hasPrefix).flatMap { grid(behind: index + $0.utf8.count) }
    }

    /// Returns the start of the code after a label. Marks and short words between the label and the code are skipped, for example
    /// ": ", ".org/" and " locator: ".
    private func start(behind label: Int) -> Int {
        var index = label
        for word in [".com", ".co", ".org", " square", " locator", " address"] where has(word, at: index) {
            index += word.utf8.count
            break
        }
        if letter(index) == UInt8(ascii: "s") { index += 1 }
        while index - label < 14, " \t=:/#(\"'".utf8.contains(letter(index)) { index += 1 }
        return index
    }

    private func value(behind label: Int, _ counts: ClosedRange<Int>, where isPart: (UInt8) -> Bool) -> Find? {
        let start = start(behind: label)
        let end = letters[min(start, letters.count)...].prefix(40).prefix(while: isPart).endIndex
        guard start > label, counts.contains(end - start), letters[start..<end].contains(where: Self.isDigit),
            !Self.isLetter(letter(end))
        else { return nil }
        return Find(blanks: [start..<end], end: end)
    }

    /// Returns whether a Maidenhead locator such as "JN47GI" begins at an index. A locator consists of a field, a square and a
    /// subsquare.
    private func isLocator(_ start: Int) -> Bool {
        func isBetween(_ index: Int, _ last: UInt8) -> Bool { (65...last).contains(letter(start + index) & 0xDF) }
        return isBetween(0, 82) && isBetween(1, 82) && Self.isDigit(letter(start + 2)) && Self.isDigit(letter(start + 3))
            && isBetween(4, 88) && isBetween(5, 88)
    }

    // MARK: what3words

    private func threeWords(behind label: Int) -> Find? { threeWords(at: start(behind: label)) }

    private func threeWords(at start: Int) -> Find? {
        let text = letters[min(start, letters.count)...].prefix(80).prefix { Self.isLetter($0) || $0 >= 0x80 || $0 == 46 }
        let words = text.split(separator: 46)
        guard words.count == 3, words.allSatisfy({ $0.count > 2 }), text.first != 46 else { return nil }
        return Find(blanks: [words[0].startIndex..<words[2].endIndex], end: words[2].endIndex)
    }

    // MARK: Plus codes

    private static func isPlusDigit(_ byte: UInt8) -> Bool { "23456789CFGHJMPQRVWX".utf8.contains(byte) }

    /// Finds a plus code such as "8FVC9GXX+XP" by its plus sign. Codes with few letters are ignored, because they may be part
    /// numbers.
    func plusCode(at plus: Int) -> Find? {
        guard letter(plus) == UInt8(ascii: "+"), plus >= 8 else { return nil }
        let (start, end) = (plus - 8, letters[(plus + 1)...].prefix(8).prefix(while: Self.isPlusDigit).endIndex)
        let code = letters[start..<plus]
        guard (2...7).contains(end - plus - 1), code.allSatisfy(Self.isPlusDigit), code.count(where: Self.isLetter) > 1,
            code.contains(where: Self.isDigit), "23456789C".utf8.contains(code[start]), !"WX".utf8.contains(code[start + 1]),
            !Self.isLetter(letter(start - 1)), !Self.isDigit(letter(start - 1)), !Self.isLetter(letter(end)),
            !Self.isDigit(letter(end))
        else { return nil }
        return Find(blanks: [start..<plus, plus + 1..<end], end: end)
    }

    /// Finds a short plus code such as "9GXX+XP" after a label.
    private func shortCode(behind label: Int) -> Find? {
        let start = start(behind: label)
        let code = letters[min(start, letters.count)...].prefix(16).prefix { Self.isPlusDigit($0) || $0 == 43 }
        guard start > label, let plus = code.firstIndex(of: 43), [2, 4, 6, 8].contains(plus - start), code.endIndex - plus > 2
        else {
            return nil
        }
        return Find(blanks: [start..<plus, plus + 1..<code.endIndex], end: code.endIndex)
    }

    // MARK: Grids

    private static let gridWords: Set<String> = [
        "zone", "grid", "ref", "reference", "coordinates", "coordinate", "coords", "koordinaten", "easting", "northing", "e", "n",
        "x", "y", "m", "me", "mn", "is",
    ]

    /// Finds a grid reference such as "32T MT 65937 46605", "32N 465937 5246605" or "2683456.12, 1247123.45". Together, the
    /// numbers of a grid reference have at least eight digits.
    private func grid(behind label: Int) -> Find? {
        guard !Self.isLetter(letter(label)), !Self.isDigit(letter(label)) else { return nil }
        var (index, numbers, digits) = (label, [Range<Int>](), 0)
        while index < letters.count, index - label < 80, numbers.count < 5 {
            if " \t\r\n=:,;/()+\"".utf8.contains(letters[index]) {
                index += 1
                continue
            }
            let token = letters[index...].prefix(20).prefix { Self.isDigit($0) || Self.isLetter($0) || $0 == 46 }
            let (count, word) = (token.count(where: Self.isDigit), String(decoding: token, as: UTF8.self).lowercased())
            guard !token.isEmpty, count > 0 || Self.gridWords.contains(word) || token.count == 2 && word != token.description,
                token.count(where: Self.isLetter) < 4 || count == 0
            else { break }
            if count > 0 {
                let range = trimmed(token.startIndex..<token.endIndex) ?? token.startIndex..<token.endIndex
                numbers.append(range)
                if count > 2 { digits += token.prefix { $0 != 46 }.count(where: Self.isDigit) }
            }
            index = token.endIndex
        }
        guard digits >= 8, let last = numbers.last else { return nil }
        return Find(blanks: numbers, end: last.upperBound)
    }
}

/// This extension finds locations in addresses of map services. In the address of a map, a number has no name, or has a name with
/// several meanings.
extension CoordinateText {
    private static let maps: Set<String> = [
        "windy", "mapy", "zoom", "ventusky", "lightningmaps", "blitzortung", "rainviewer", "flightradar24", "suncalc",
        "peakfinder", "peakbagger", "strava", "komoot", "mapillary", "toolforge", "yandex", "waze", "here", "openstreetmap",
        "goo",
    ]
    /// Companies that have a map service and other services. The addresses of the maps of these companies contain "map" or
    /// "ditu".
    private static let companies: Set<String> = ["google", "apple", "bing", "baidu", "amap", "qq", "admin", "maps"]

    /// Finds the numbers in an address of a map, for example "windy.com/?47.370094,8.549106,11",
    /// "mapy.cz/zakladni?x=8.549106&y=47.370094".
    func link(at dot: Int) -> Find? {
        let host = letters[..<dot].suffix(20).reversed().prefix { Self.isLetter($0) || Self.isDigit($0) }.reversed()
        let name = String(decoding: host, as: UTF8.self)
        let end =
            letters[dot...].prefix(600).firstIndex { $0 <= 0x20 || "\"<>".utf8.contains($0) } ?? min(letters.count, dot + 600)
        let address = Array(letters[max(0, dot - 20)..<end])
        let isMap = ["map", "ditu", ".geo."].contains { address.firstRange(of: Array($0.utf8)) != nil }
        guard Self.maps.contains(name) || isMap && Self.companies.contains(name) else { return nil }
        // Links of Wikipedia contain degrees, minutes and seconds. Links of Baidu and of the Swiss map contain metres.
        let (isAngle, isMetres) = (name == "toolforge", ["baidu", "admin"].contains(name))
        var (numbers, place) = ([Number](), dot)
        while place < end {
            guard Self.isNumberStart(letters, place), let number = number(at: place) else {
                place += 1
                continue
            }
            let before = letter(place - 1)
            if number.fraction > 1 || isAngle || isMetres && number.value > 10_000,
                abs(number.value) <= (isMetres ? 30_000_000 : 180),
                before == 95 || !Self.isLetter(before)
            {
                numbers.append(number)
            }
            place = number.range.upperBound
        }
        return numbers.count > 1 ? Self.find(numbers) : nil
    }
}

/// This extension contains the first characters of all forms that `CoordinateText` finds.
extension CoordinateText {
    private static let sentences = ["$GPRMC", "$GPGGA", "$GNRMC", "$GNGGA", "$GPGLL", "$GNGLL", "$GLGGA", "$GPSINFO"]
    /// The beginnings of names that have a coordinate as their value.
    private static let names = [
        "lat", "lon", "lng", "geo", "coord", "koord", "pos", "point", "poly", "cent", "loc", "gps", "place", "map", "gml", "kml",
        "breit", "dte", "aeng", "gte", "szerok", "wgs", "icbm", "orig", "mark", "viewp", "near",
        "obsgeo",
    ]
    private static let links = [
        "ongitude", "ll=", "ll:", "?q=", "&q=", "query", "addr", "dir/", "search", "cp=", "pin", "destination", "!3d", "!4d",
        "!2d", ":q=", "EPSG:4326", "///", "%2B", "%2b", "where1", "egree", "%40", "%2540", "q%3D", "q%253D", "ll%3D", "ll%253D",
        "%C2%B0", "%c2%b0", "%25C2%25B0", "LINESTR",
    ]
    /// The last parts of the host names of map services, with the first character of the path.
    private static let domains = [".com/", ".org/", ".cz/", ".ru/", ".earth/", ".gl/", ".gl?", ".apple/", ".ch/"]
    /// The words that indicate a location in a text, as patterns of at least two letters.
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
        // The degree sign and the ordinal indicator, in UTF-8 and in Latin-1.
        result.append([0xC2, 0xB0])
        for next in " 0123456789'NSEW".utf8 { result += [[0xB0, next], [0xBA, next]] }
        return result + PlainLetters.words
    }()
}

extension CoordinateText {
    /// Finds a list such as "GPS(11.5,48.1,20)" in a drone's subtitles.
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
