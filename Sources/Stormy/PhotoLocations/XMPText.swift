/// An XMP packet in UTF-8, UTF-16 or UTF-32. Properties about a location are replaced by spaces, including their names. Other
/// values are searched like any text.
///
/// Namespaces may have any prefix, so only the local name is compared. Vocabularies of places are recognized by their namespaces.
struct XMPText {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// - Returns: `true` if bytes were overwritten.
    @discardableResult
    func clean() -> Bool {
        if view.count > LocationSearch.maximumBlock { view.search.fail(.tooExpensive(block)) }
        guard view.count > 4, let raw = view.bytes(0, view.count) else { return false }
        view.recordBlock(block)
        let encoding = Self.encoding(raw)
        let units = Self.units(raw, encoding.width, encoding.first)
        var scanner = XMPScanner(units)
        scanner.scan()
        if scanner.isTooExpensive { view.search.fail(.tooExpensive(block)) }
        for range in scanner.found { blank(range, encoding) }
        for (latitude, longitude) in scanner.pairs { view.search.add(FoundPlace(latitude: latitude, longitude: longitude)) }
        for range in scanner.encoded where encoding.width == 1 {
            EncodedBytes(view, range, block).clean()
        }
        var isChanged = !scanner.found.isEmpty
        for range in scanner.texts where clean(XMPValue(units, range), encoding) { isChanged = true }
        return isChanged
    }

    /// Overwrites the coordinates in a value. The names of properties are not overwritten.
    private func clean(_ value: XMPValue, _ encoding: (width: Int, first: Int)) -> Bool {
        let finds = CoordinateText(value.letters).all()
        for find in finds {
            for place in find.places { view.search.add(place) }
            for range in find.blanks { blank(value.range(of: range), encoding) }
            for index in find.zeros {
                view.overwrite(value.starts[index] * encoding.width + encoding.first, with: [0x30], block)
            }
        }
        return !finds.isEmpty
    }

    /// Returns the width of a code unit, and the index of the byte that contains the ASCII letter.
    private static func encoding(_ raw: [UInt8]) -> (width: Int, first: Int) {
        // The first letter is "<", or a byte order mark and "<".
        for (width, place) in [(4, 3), (4, 0), (2, 1), (2, 0)] {
            for start in [0, width] where raw.count >= start + width {
                let unit = raw[start..<start + width]
                if unit[start + place] == UInt8(ascii: "<"), unit.filter({ $0 != 0 }).count == 1 { return (width, place) }
            }
        }
        return (1, 0)
    }

    /// Returns one byte for each code unit. Code units that are not ASCII are replaced by 0xFF.
    private static func units(_ raw: [UInt8], _ width: Int, _ place: Int) -> [UInt8] {
        if width == 1 { return raw }
        return (0..<raw.count / width).map { index in
            let unit = raw[index * width..<(index + 1) * width]
            let letter = unit[index * width + place]
            // The degree sign is kept, because it is needed for angles.
            return unit.allSatisfy { $0 == 0 }
                || letter != 0 && (letter < 0x80 || letter == 0xB0) && unit.filter { $0 != 0 }.count == 1
                ? letter : 0xFF
        }
    }

    private func blank(_ range: Range<Int>, _ encoding: (width: Int, first: Int)) {
        if encoding.width == 1 { return view.fill(range.lowerBound, range.count, with: 0x20, block) }
        var space = [UInt8](repeating: 0, count: encoding.width)
        space[encoding.first] = 0x20
        view.overwrite(range.lowerBound * encoding.width, with: (0..<range.count).flatMap { _ in space }, block)
    }
}
