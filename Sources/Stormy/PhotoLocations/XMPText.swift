/// An XMP packet in UTF-8, UTF-16 or UTF-32. Its properties about a location become spaces, with their names.
///
/// Namespaces have any prefix, so that the local name decides; the W3C's vocabulary of places is known by its namespace.
struct XMPText {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private static let places = Array("http://www.w3.org/2003/01/geo/wgs84_pos#".utf8)

    /// - Returns: True if something was overwritten.
    @discardableResult
    func clean() -> Bool {
        if view.count > LocationSearch.maximumBlock { view.search.fail(.tooExpensive(block)) }
        guard view.count > 4, let raw = view.bytes(0, view.count) else { return false }
        view.noteBlock(block)
        let encoding = Self.encoding(raw)
        var scanner = XMPScanner(Self.units(raw, encoding.width, encoding.first), places: Self.places)
        scanner.scan()
        for range in scanner.found { blank(range, encoding) }
        for (latitude, longitude) in scanner.pairs { view.search.note(FoundPlace(latitude: latitude, longitude: longitude)) }
        for range in scanner.encoded where encoding.width == 1 {
            EncodedBytes(view, range, block).clean()
        }
        return !scanner.found.isEmpty
    }

    /// The width of a code unit, and which of its bytes has the letter of ASCII.
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

    /// One byte for each code unit; 0xFF for all beyond ASCII.
    private static func units(_ raw: [UInt8], _ width: Int, _ place: Int) -> [UInt8] {
        if width == 1 { return raw }
        return (0..<raw.count / width).map { index in
            let unit = raw[index * width..<(index + 1) * width]
            let letter = unit[index * width + place]
            return unit.allSatisfy { $0 == 0 } || letter != 0 && letter < 0x80 && unit.filter { $0 != 0 }.count == 1
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

/// Finds in the text of XMP what is about a location.
struct XMPScanner {
    private let text: [UInt8]
    private let places: [UInt8]
    /// Elements with their content, and attributes.
    private(set) var found: [Range<Int>] = []
    /// Latitude and longitude in the order of the text.
    private(set) var pairs: [(Double?, Double?)] = []
    /// Long values in base64, which can be pictures.
    private(set) var encoded: [Range<Int>] = []
    /// The length from which on a value can be a picture.
    private static let longValue = 200
    private var waitingLatitude: Double?
    private var prefixes: Set<[UInt8]> = []
    private var position = 0

    /// How many elements about a location are around this text.
    private let depth: Int

    init(_ text: [UInt8], places: [UInt8], depth: Int = 0) { (self.text, self.places, self.depth) = (text, places, depth) }

    mutating func scan() {
        var contentStart = 0
        while let start = next(UInt8(ascii: "<"), from: position) {
            if start - contentStart > Self.longValue { noteEncoded(contentStart..<start) }
            if has("<!--", at: start) {
                position = end(of: "-->", from: start)
            } else if has("<![CDATA[", at: start) {
                position = end(of: "]]>", from: start)
            } else if has("<?", at: start) {
                position = end(of: "?>", from: start)
            } else if has("</", at: start) {
                position = (next(UInt8(ascii: ">"), from: start) ?? text.count - 1) + 1
            } else {
                scanElement(start)
            }
            contentStart = position
        }
        if let waitingLatitude { pairs.append((waitingLatitude, nil)) }
    }

    private mutating func scanElement(_ start: Int) {
        let name = self.name(at: start + 1)
        position = start + 1 + name.count
        guard !name.isEmpty else { return }
        let attributes = readAttributes()
        for attribute in attributes
        where text[attribute.name].starts(with: "xmlns:".utf8) && text[attribute.value].elementsEqual(places) {
            prefixes.insert(Array(text[attribute.name].dropFirst(6)))
        }
        let isLocation = isLocation(name)
        let isClosed = position >= 2 && text[position - 1] == UInt8(ascii: ">") && text[position - 2] == UInt8(ascii: "/")
        guard isLocation else {
            for attribute in attributes {
                let name = Array(text[attribute.name])
                if self.isLocation(name) {
                    let end = attribute.value.upperBound
                    found.append(attribute.name.lowerBound..<(end < text.count && text[end] != UInt8(ascii: "<") ? end + 1 : end))
                    notePlace(name, attribute.value)
                } else if attribute.value.count > Self.longValue {
                    noteEncoded(attribute.value)
                }
            }
            return
        }
        let inside = position
        if !isClosed { position = endOfElement(name) }
        found.append(start..<position)
        notePlace(name, inside..<max(inside, position))
        for attribute in attributes { notePlace(Array(text[attribute.name]), attribute.value) }
        guard depth < 8, position - inside > 10 else { return }
        var inner = XMPScanner(Array(text[inside..<position]), places: places, depth: depth + 1)
        inner.scan()
        pairs += inner.pairs
    }

    /// Reads up to behind the ">" of the tag.
    private mutating func readAttributes() -> [(name: Range<Int>, value: Range<Int>)] {
        var result: [(Range<Int>, Range<Int>)] = []
        while position < text.count, text[position] != UInt8(ascii: ">"), text[position] != UInt8(ascii: "<") {
            let start = position
            let name = self.name(at: start)
            guard !name.isEmpty else {
                position += 1
                continue
            }
            position = start + name.count
            skipSpaces()
            guard position < text.count, text[position] == UInt8(ascii: "=") else { continue }
            position += 1
            skipSpaces()
            guard position < text.count, text[position] == UInt8(ascii: "\"") || text[position] == UInt8(ascii: "'") else {
                continue
            }
            let valueStart = position + 1
            // A tag cannot begin inside a value: the mark of its end is damaged.
            let end = text[valueStart...].firstIndex { $0 == text[position] || $0 == UInt8(ascii: "<") } ?? text.count
            result.append((start..<start + name.count, valueStart..<end))
            position = end < text.count && text[end] != UInt8(ascii: "<") ? end + 1 : end
        }
        if position < text.count, text[position] == UInt8(ascii: ">") { position += 1 }
        return result
    }

    /// Behind the closing tag of an element; the end of the text if there is not one.
    private func endOfElement(_ name: [UInt8]) -> Int {
        var (place, depth) = (position, 1)
        while let start = next(UInt8(ascii: "<"), from: place) {
            let isClosing = start + 1 < text.count && text[start + 1] == UInt8(ascii: "/")
            let found = self.name(at: start + (isClosing ? 2 : 1))
            let end = next(UInt8(ascii: ">"), from: start) ?? text.count - 1
            if found == name {
                let isEmpty = text[max(0, end - 1)] == UInt8(ascii: "/")
                depth += isClosing ? -1 : isEmpty ? 0 : 1
                if depth == 0 { return end + 1 }
            }
            place = start + 1
        }
        return text.count
    }

    private func isLocation(_ name: [UInt8]) -> Bool {
        guard let colon = name.firstIndex(of: UInt8(ascii: ":")) else { return LocationNames.isLocation(name) }
        let prefix = Array(name[..<colon])
        if prefix.elementsEqual("xmlns".utf8) || prefix.elementsEqual("rdf".utf8) { return false }
        if prefix.elementsEqual("geo".utf8) || prefixes.contains(prefix) { return true }
        return LocationNames.isLocation(name[(colon + 1)...])
    }

    private mutating func notePlace(_ name: [UInt8], _ value: Range<Int>) {
        let lower = name.map { (65...90).contains($0) ? $0 + 32 : $0 }
        let isLatitude = lower.firstRange(of: Array("lat".utf8)) != nil
        let isLongitude = lower.firstRange(of: Array("long".utf8)) != nil || lower.firstRange(of: Array("lon".utf8)) != nil
        guard isLatitude || isLongitude, let degrees = PlaceText.degrees(text[value.prefix(2_000)]) else { return }
        if isLongitude {
            pairs.append((waitingLatitude, degrees))
            waitingLatitude = nil
        } else {
            if let waitingLatitude { pairs.append((waitingLatitude, nil)) }
            waitingLatitude = degrees
        }
    }

    private mutating func noteEncoded(_ range: Range<Int>) {
        guard encoded.count < 1_000 else { return }
        let sample = text[range].prefix(400)
        if sample.allSatisfy({
            Base64.isLetter($0) || $0 == 10 || $0 == 13 || $0 == 32 || $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "#")
                || $0 == UInt8(ascii: ";")
        }) {
            encoded.append(range)
        }
    }

    // MARK: Letters

    private func has(_ word: String, at start: Int) -> Bool { text[start...].starts(with: word.utf8) }

    private func end(of word: String, from start: Int) -> Int {
        text.firstRange(of: Array(word.utf8), from: start).map { $0 + word.utf8.count } ?? text.count
    }

    private func next(_ letter: UInt8, from start: Int) -> Int? { text.firstRange(of: [letter], from: start) }

    private mutating func skipSpaces() {
        while position < text.count, [9, 10, 13, 32].contains(text[position]) { position += 1 }
    }

    private func name(at start: Int) -> [UInt8] {
        var end = start
        while end < text.count, end - start < 500, Self.isNameLetter(text[end]) { end += 1 }
        return Array(text[min(start, text.count)..<max(min(start, text.count), end)])
    }

    private static func isNameLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case 45, 46, 48...58, 65...90, 95, 97...122, 128...255: true
        default: false
        }
    }
}
