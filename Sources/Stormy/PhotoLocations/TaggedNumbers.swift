/// A latitude and a longitude in bytes of an unknown format. Each number is stored after its name. Examples are attributes of
/// OpenEXR and NetCDF, values of FLV, BSON, CBOR and MessagePack, and text after its size.
///
/// Many files contain these names by chance. Stormy therefore requires that the two numbers have the same form, and the same
/// distance from their names.
struct TaggedNumbers {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private enum Form: CaseIterable {
        case double, littleDouble, float, littleFloat

        var size: Int { self == .double || self == .littleDouble ? 8 : 4 }

        func value(of bytes: ArraySlice<UInt8>) -> Double {
            let word = GPSDirectory.word(Array(bytes), self == .littleDouble || self == .littleFloat)
            return size == 8 ? Double(bitPattern: word) : Double(Float(bitPattern: UInt32(word)))
        }
    }

    private static let (latitudes, longitudes) = (["latitude", "lat"], ["longitude", "long", "lon", "lng"])
    /// The maximum distance between the two names, and the maximum number of bytes between a name and its number, for long and
    /// for short names.
    private static let (neighbourhood, longestGap, shortGap) = (400, 16, 4)
    /// The maximum number of longitude names that are tried for a latitude.
    private static let maximumCandidates = 8
    /// The bytes before a float: the size of the value, or the type in MessagePack and CBOR.
    private static let floats: [[UInt8]] = [[4, 0, 0, 0], [0, 0, 0, 4], [0, 0, 0, 1], [0xCA], [0xFA]]

    /// Overwrites the numbers that belong to the name at a position.
    func clean(at position: Int) {
        // The most frequent case is a text in which only text follows the name. If only text follows the name, one read is
        // sufficient.
        guard let name = view.bytes(position, min(10 + Self.longestGap, view.count - position)), let first = name.first,
            "lL".utf8.contains(first), name.dropFirst(3).contains(where: { $0 < 9 || 14..<0x20 ~= $0 || $0 > 0x7E })
        else { return }
        cleanAttribute(at: position)
        let start = max(0, position - Self.neighbourhood)
        guard let length = Self.end(ofName: Self.latitudes, at: 0, in: name),
            let bytes = view.bytes(start, min(2 * Self.neighbourhood, view.count - start))
        else { return }
        let end = position - start + length
        var candidates = 0
        for index in bytes.indices where "lL".utf8.contains(bytes[index]) && candidates < Self.maximumCandidates {
            guard let other = Self.end(ofName: Self.longitudes, at: index, in: bytes) else { continue }
            candidates += 1
            for gap in 0...(length < 4 ? Self.shortGap : Self.longestGap) {
                clean(bytes, start, end + gap, other + gap, gap)
            }
        }
    }

    /// Returns the end of a name. `nil` if the name is part of a longer word.
    private static func end(ofName names: [String], at index: Int, in bytes: [UInt8]) -> Int? {
        let text = bytes[index...].prefix(10).map { 65...90 ~= $0 ? $0 | 0x20 : $0 }
        guard let name = names.first(where: { text.starts(with: $0.utf8) }) else { return nil }
        let end = index + name.utf8.count
        // A single letter after the name may be the type of the value.
        let isComplete = name.utf8.count > 7 || end < bytes.count && !(CoordinateText.isLetter(bytes[end]) && bytes[end] != 0x44)
        return isComplete ? end : nil
    }

    private func clean(_ bytes: [UInt8], _ start: Int, _ latitude: Int, _ longitude: Int, _ gap: Int) {
        cleanText(bytes, start, latitude, longitude, gap)
        for form in Form.allCases {
            guard max(latitude, longitude) + form.size <= bytes.count else { continue }
            if form.size == 4, !Self.isFloat(bytes[(latitude - gap)..<latitude]) { continue }
            let place = FoundPlace(
                latitude: form.value(of: bytes[latitude..<latitude + form.size]),
                longitude: form.value(of: bytes[longitude..<longitude + form.size]))
            // Equal numbers are ignored, because they belong to the headers of the two values.
            guard Self.isPossible(place.latitude, upTo: 90), Self.isPossible(place.longitude, upTo: 180),
                place.latitude != place.longitude
            else { continue }
            view.search.add(place)
            for number in [latitude, longitude] { view.fill(start + number, form.size, block) }
        }
    }

    private static func isFloat(_ gap: ArraySlice<UInt8>) -> Bool {
        floats.contains { gap.suffix($0.count).elementsEqual($0) } || Array(gap).firstRange(of: Array("float".utf8)) != nil
    }

    /// Returns whether a number is a possible angle. Numbers with few bits and very small numbers are not possible angles,
    /// because they occur by chance.
    private static func isPossible(_ degrees: Double?, upTo limit: Double) -> Bool {
        guard let degrees, degrees.isFinite, abs(degrees) <= limit, abs(degrees) > 0.001 else { return false }
        return abs((degrees * 64).rounded() - degrees * 64) > 1e-6
    }

    /// Cleans coordinates that are stored as decimal text. Between the name of a value and its text, the file may contain
    /// numbers, for example the size of the text.
    private func cleanText(_ bytes: [UInt8], _ start: Int, _ latitude: Int, _ longitude: Int, _ gap: Int) {
        guard gap > 0, CoordinateText.isNumberStart(bytes, latitude), CoordinateText.isNumberStart(bytes, longitude),
            bytes[(latitude - gap)..<latitude].contains(where: { $0 < 0x20 || $0 > 0x7E })
        else { return }
        let text = CoordinateText(bytes)
        guard text.letters == bytes, let first = text.number(at: latitude), let second = text.number(at: longitude),
            min(first.fraction, second.fraction) > 2, abs(first.value) <= 90, abs(second.value) <= 180
        else { return }
        view.search.add(FoundPlace(latitude: first.value, longitude: second.value))
        for number in [first, second] {
            view.fill(start + number.range.lowerBound, number.range.count, with: 0x20, block)
            view.overwrite(start + number.range.lowerBound, with: [0x30], block)
        }
    }

    // MARK: OpenEXR

    /// Cleans a standard attribute of OpenEXR, which consists of the name, the type, the size, and a number. In such an
    /// attribute, a single number counts as a location.
    private func cleanAttribute(at position: Int) {
        for (isLatitude, name) in [(true, "latitude\0"), (false, "longitude\0")] where view.has(name, at: position) {
            let type = position + name.utf8.count
            for (form, header) in [(Form.littleFloat, "float\0\u{4}\0\0\0"), (.littleDouble, "double\0\u{8}\0\0\0")]
            where view.has(header, at: type) {
                let start = type + header.utf8.count
                guard let bytes = view.bytes(start, form.size), bytes.contains(where: { $0 != 0 }) else { return }
                let degrees = form.value(of: bytes[...])
                if degrees.isFinite { view.search.add(CoordinateText.place(degrees, isLatitude)) }
                view.fill(start, form.size, block)
            }
        }
    }
}
