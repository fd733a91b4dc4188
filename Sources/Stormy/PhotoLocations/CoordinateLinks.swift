/// Addresses of maps with numbers that have no name, or a name with other meanings.
extension CoordinateText {
    private static let maps: Set<String> = [
        "windy", "mapy", "zoom", "ventusky", "lightningmaps", "blitzortung", "rainviewer", "flightradar24", "suncalc",
        "peakfinder", "peakbagger", "strava", "komoot", "mapillary", "toolforge", "yandex", "waze", "here", "openstreetmap",
        "goo",
    ]
    /// Companies with a map among other services. The address has "map" or "ditu" in it.
    private static let companies: Set<String> = ["google", "apple", "bing", "baidu", "amap", "qq", "admin", "maps"]

    /// The numbers in an address of a map: "windy.com/?47.370094,8.549106,11", "mapy.cz/zakladni?x=8.549106&y=47.370094".
    func link(at dot: Int) -> Find? {
        let host = letters[..<dot].suffix(20).reversed().prefix { Self.isLetter($0) || Self.isDigit($0) }.reversed()
        let name = String(decoding: host, as: UTF8.self)
        let end =
            letters[dot...].prefix(600).firstIndex { $0 <= 0x20 || "\"<>".utf8.contains($0) } ?? min(letters.count, dot + 600)
        let address = Array(letters[max(0, dot - 20)..<end])
        let isMap = ["map", "ditu", ".geo."].contains { address.firstRange(of: Array($0.utf8)) != nil }
        guard Self.maps.contains(name) || isMap && Self.companies.contains(name) else { return nil }
        // Parts of angles in a link of Wikipedia, and metres in links of Baidu and of Switzerland.
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
