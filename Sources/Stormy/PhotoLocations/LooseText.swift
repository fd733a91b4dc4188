/// Names and numbers of a location in text of no format: JSON, subtitles, notes of a program, sentences of a GPS receiver.
struct LooseText {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private static let names = ["latitude", "Latitude", "LATITUDE", "ongitude", "ONGITUDE", "ongtitude", "geo:lat", "geo:lon"]
    private static let short = ["\"lat\"", "\"lon\"", "\"lng\"", "\"long\"", "GPS(", "GPS ("]
    private static let sentences = ["$GPRMC", "$GPGGA", "$GNRMC", "$GNGGA", "$GPGLL", "$GNGLL", "$GLGGA", "$GPSINFO"]
    static let words = names + short + sentences

    /// Overwrites what belongs to the word at a position.
    func clean(at position: Int) {
        let isWide = view.number(position + 1, 1) == 0
        let width = isWide ? 2 : 1
        // Up to 40 letters in front of the word belong to its name.
        let before = view.bytes(max(0, position - 40 * width), min(position, 40 * width)) ?? []
        guard let after = view.bytes(position, min(400 * width, view.count - position)) else { return }
        let letters = stride(from: 0, to: after.count, by: width).map { after[$0] }
        if letters.first == UInt8(ascii: "$") {
            return blank(position, letters.prefix { $0 >= 0x20 && $0 < 0x7F }.count, width)
        }
        if letters.starts(with: "GPS".utf8) { return cleanList(position, letters, width) }
        let end = letters.firstIndex { !Self.isName($0) && $0 != UInt8(ascii: "\"") } ?? letters.count
        guard let value = letters[end...].prefix(24).firstIndex(where: { (48...57).contains($0) }),
            letters[end..<value].allSatisfy({ " \t=:\"'>([-+,{[".utf8.contains($0) })
        else { return }
        var first = value
        if first > 0, letters[first - 1] == UInt8(ascii: "-") || letters[first - 1] == UInt8(ascii: "+") { first -= 1 }
        let last = letters[value...].firstIndex { !Self.isNumber($0) } ?? letters.count
        let front = stride(from: before.count - width, through: 0, by: -width).prefix { Self.isName(before[$0]) }.count
        note(letters, value..<last)
        if letters[0] == UInt8(ascii: "\"") {
            blank(position + width, end - 2, width)
        } else {
            blank(position - front * width, front + (letters[..<end].firstIndex(of: UInt8(ascii: "\"")) ?? end), width)
        }
        // "0" and spaces are a number wherever one is expected.
        blank(position + first * width, last - first, width)
        view.overwrite(position + first * width, with: [0x30], block)
    }

    /// Overwrites a place of ISO 6709 with digits behind the points, for example "+48.1373+011.5755/".
    func cleanPlace(at position: Int) {
        guard let text = view.bytes(position, min(60, view.count - position)) else { return }
        var parts: [(digits: Int, fraction: Int)] = []
        var index = 0
        while parts.count < 3, index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") {
            let digits = text[(index + 1)...].prefix { (48...57).contains($0) }.count
            var end = index + 1 + digits
            guard end < text.count, digits > 1 else { break }
            let fraction = text[end] == 46 ? text[(end + 1)...].prefix { (48...57).contains($0) }.count : 0
            if fraction > 0 { end += 1 + fraction }
            parts.append((digits, fraction))
            index = end
        }
        guard parts.count > 1, [2, 4, 6].contains(parts[0].digits), parts[1].digits == parts[0].digits + 1,
            parts[0].fraction > 1 && parts[1].fraction > 1 || parts[0].digits > 2, let place = PlaceText.iso6709(text)
        else { return }
        view.search.note(FoundPlace(latitude: place.latitude, longitude: place.longitude))
        if index < text.count, text[index] == UInt8(ascii: "/") { index += 1 }
        view.fill(position, index, with: 0x20, block)
    }

    /// "GPS(11.5,48.1,20)" of a drone's subtitles.
    private func cleanList(_ position: Int, _ letters: [UInt8], _ width: Int) {
        guard let start = letters.firstIndex(of: UInt8(ascii: "(")),
            let end = letters.prefix(100).firstIndex(of: UInt8(ascii: ")")), start < end
        else { return }
        let inside = letters[start + 1..<end]
        guard inside.contains(where: { (48...57).contains($0) }), inside.allSatisfy({ Self.isNumber($0) || $0 == 0x20 }) else {
            return
        }
        let numbers = inside.split(separator: UInt8(ascii: ",")).map { PlaceText.degrees($0) }
        if numbers.count > 1 {
            view.search.note(FoundPlace(latitude: numbers[1], longitude: numbers[0]))
            view.search.note(FoundPlace(latitude: numbers[0], longitude: numbers[1]))
        }
        blank(position + (start + 1) * width, end - start - 1, width)
    }

    private func note(_ letters: [UInt8], _ value: Range<Int>) {
        guard let degrees = PlaceText.degrees(letters[max(0, value.lowerBound - 1)..<value.upperBound]) else { return }
        let isLatitude =
            letters.prefix(8).contains(UInt8(ascii: "t")) && letters.starts(with: "l".utf8) || letters.starts(with: "L".utf8)
        view.search.note(isLatitude ? FoundPlace(latitude: degrees) : FoundPlace(longitude: degrees))
    }

    private func blank(_ start: Int, _ count: Int, _ width: Int) {
        for index in 0..<max(0, count) { view.overwrite(start + index * width, with: [0x20], block) }
    }

    private static func isName(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 95 || byte == 46
    }

    private static func isNumber(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || ".,+-/'°NSEW".utf8.contains(byte) && byte < 0x80
    }
}
