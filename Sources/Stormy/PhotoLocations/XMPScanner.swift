/// Finds the parts of an XMP text that are about a location.
struct XMPScanner {
    let text: [UInt8]
    /// The beginnings of the namespaces whose properties are only about places.
    private static let namespaces = [
        "http://www.w3.org/2003/01/geo/wgs84_pos#", "http://www.georss.org/", "http://www.opengis.net/gml",
        "http://www.opengis.net/kml",
        "http://earth.google.com/kml",
    ].map { Array($0.utf8) }
    /// The ranges of elements with a location, including their content, and of attributes with a location.
    var found: [Range<Int>] = []
    /// The latitudes and longitudes in the order of the text.
    private(set) var pairs: [(Double?, Double?)] = []
    /// The ranges of long base64 values, which may be pictures.
    private(set) var encoded: [Range<Int>] = []
    /// The ranges of other values, comments and instructions.
    private(set) var texts: [Range<Int>] = []
    /// The minimum length of a value that may be a picture.
    private static let longValue = 200
    private var waitingLatitude: Double?
    private var prefixes: Set<[UInt8]> = ["geo", "georss", "gml", "kml"].reduce(into: []) { $0.insert(Array($1.utf8)) }
    /// The number of values that were read because their names may be names of coordinates.
    private var valuesRead = 0
    /// `true` if the number of values that were read because of their names exceeds the limit for a photo.
    var isTooExpensive: Bool { valuesRead > 20_000 }
    var position = 0
    /// The end marks, for example "-->", that do not occur in the remaining text.
    private var missing: Set<String> = []

    /// The number of elements with a location that contain this text.
    private let depth: Int

    init(_ text: [UInt8], depth: Int = 0) { (self.text, self.depth) = (text, depth) }

    mutating func scan() {
        var contentStart = 0
        while let start = next(UInt8(ascii: "<"), from: position) {
            recordText(contentStart..<start)
            // Readers of XMP continue after a mark such as "<!--" that has no end mark, for example if a closing tag is damaged.
            if has("<!--", at: start) {
                position = end(of: "-->", from: start) ?? start + 4
                recordText(start..<position)
            } else if has("<![CDATA[", at: start) {
                position = end(of: "]]>", from: start) ?? start + 9
                recordText(start..<position)
            } else if has("<?", at: start) {
                position = endOfInstruction(from: start)
                recordText(start..<position)
            } else if has("</", at: start) {
                position = (next(UInt8(ascii: ">"), from: start) ?? text.count - 1) + 1
            } else {
                scanElement(start)
            }
            contentStart = position
        }
        recordText(min(contentStart, text.count)..<text.count)
        if let waitingLatitude { pairs.append((waitingLatitude, nil)) }
    }

    private mutating func scanElement(_ start: Int) {
        let name = self.name(at: start + 1)
        position = start + 1 + name.count
        guard !name.isEmpty else { return }
        let attributes = readAttributes()
        for attribute in attributes
        where text[attribute.name].starts(with: "xmlns:".utf8)
            && Self.namespaces.contains(where: { text[attribute.value].starts(with: $0) })
        {
            prefixes.insert(Array(text[attribute.name].dropFirst(6)))
        }
        let isClosed = position >= 2 && text[position - 1] == UInt8(ascii: ">") && text[position - 2] == UInt8(ascii: "/")
        let isLocation = isLocation(name) || !isClosed && holdsCoordinates(name, contentRange(of: name))
        guard isLocation else {
            recordNamedValues(start, name, attributes, isClosed: isClosed)
            for attribute in attributes {
                let name = Array(text[attribute.name])
                if self.isLocation(name) || holdsCoordinates(name, attribute.value) {
                    let end = attribute.value.upperBound
                    found.append(attribute.name.lowerBound..<(end < text.count && text[end] != UInt8(ascii: "<") ? end + 1 : end))
                    recordPlace(name, attribute.value)
                } else if !text[attribute.name].starts(with: "xmlns".utf8) {
                    recordText(attribute.value)
                }
            }
            return
        }
        let inside = position
        if !isClosed { position = endOfElement(name) }
        found.append(start..<position)
        recordPlace(name, inside..<max(inside, position))
        for attribute in attributes { recordPlace(Array(text[attribute.name]), attribute.value) }
        guard depth < 8, position - inside > 10 else { return }
        var inner = XMPScanner(Array(text[inside..<position]), depth: depth + 1)
        inner.scan()
        pairs += inner.pairs
    }

    /// Reads the attributes up to the ">" of the tag.
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
            // A tag cannot begin inside a value. If a tag begins, the quotation mark at the end of the value is damaged.
            let end = text[valueStart...].firstIndex { $0 == text[position] || $0 == UInt8(ascii: "<") } ?? text.count
            result.append((start..<start + name.count, valueStart..<end))
            position = end < text.count && text[end] != UInt8(ascii: "<") ? end + 1 : end
        }
        if position < text.count, text[position] == UInt8(ascii: ">") { position += 1 }
        return result
    }

    /// Returns the position after the closing tag of an element. If the element has no closing tag, returns the end of the text.
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
        if prefixes.contains(prefix) { return true }
        return LocationNames.isLocation(name[(colon + 1)...])
    }

    /// Returns the range of the first letters in the content of an element. The element began before the current position.
    private func contentRange(of name: [UInt8]) -> Range<Int> {
        guard position < text.count, Self.placeName(name) != nil else { return position..<position }
        let limit = min(text.count, position + 1_000)
        let end = text[position..<limit].firstRange(of: [60, 47] + name).map(\.lowerBound)
        return position..<(end ?? limit)
    }

    private static func local(_ name: [UInt8]) -> ArraySlice<UInt8> {
        name[((name.firstIndex(of: UInt8(ascii: ":")) ?? -1) + 1)...]
    }

    /// Returns a name in the letters that `CoordinateText` reads, and the meaning of the name. Returns `nil` if the name does not
    /// belong to coordinates or to the code of a place. If the name belongs to the code of a place, the meaning is `nil`.
    private static func placeName(_ name: [UInt8]) -> (letters: [UInt8], meaning: CoordinateName?)? {
        var name = Array(local(name))
        if name.contains(where: { $0 >= 0x80 }) { name = PlainLetters(name).letters }
        if let meaning = CoordinateName(name) { return (name, meaning) }
        let small = name.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        return CoordinateText.labels.contains { small.starts(with: $0) } ? (name, nil) : nil
    }

    /// Returns whether a value has the form that its name requires. Names such as "lat", "coordinates" and "center" also have
    /// other meanings.
    private mutating func holdsCoordinates(_ name: [UInt8], _ value: Range<Int>) -> Bool {
        guard !value.isEmpty, !name.starts(with: "rdf:".utf8), !name.starts(with: "xmlns".utf8),
            let (name, meaning) = Self.placeName(name)
        else { return false }
        valuesRead += 1
        guard !isTooExpensive else { return false }
        let letters = XMPValue(text, value, withoutTags: true).letters
        guard let meaning else {
            return CoordinateText(name + Array("=".utf8) + letters).code(at: 0) != nil
        }
        // The word "long" can also describe a size or a time.
        if case .size = meaning, !letters.contains(46) { return false }
        let finds = CoordinateText(Array("geo_".utf8) + name + Array("=".utf8) + letters).all()
        guard !finds.isEmpty else { return false }
        for place in finds.flatMap(\.places) { pairs.append((place.latitude, place.longitude)) }
        return true
    }

    mutating func recordPlace(_ name: [UInt8], _ value: Range<Int>) {
        let lower = name.map { (65...90).contains($0) ? $0 + 32 : $0 }
        let isLatitude = lower.firstRange(of: Array("lat".utf8)) != nil
        let isLongitude = ["lon", "lng"].contains { lower.firstRange(of: Array($0.utf8)) != nil }
        if isLatitude == isLongitude, prefixes.contains(Array(lower.prefix { $0 != UInt8(ascii: ":") })) {
            let letters = XMPValue(text, value.prefix(2_000), withoutTags: true).letters
            for place in CoordinateText(Array("geo:".utf8) + letters).all().flatMap(\.places) {
                pairs.append((place.latitude, place.longitude))
            }
        }
        guard isLatitude || isLongitude, let degrees = PlaceText.degrees(text[value.prefix(2_000)]) else { return }
        if isLongitude {
            pairs.append((waitingLatitude, degrees))
            waitingLatitude = nil
        } else {
            if let waitingLatitude { pairs.append((waitingLatitude, nil)) }
            waitingLatitude = degrees
        }
    }

    private mutating func recordText(_ range: Range<Int>) {
        guard range.count > 3 else { return }
        if range.count > Self.longValue, isEncoded(range), encoded.count < 1_000 {
            encoded.append(range)
        } else {
            texts.append(range)
        }
    }

    private func isEncoded(_ range: Range<Int>) -> Bool {
        let sample = text[range].prefix(400)
        return sample.allSatisfy {
            Base64.isLetter($0) || $0 == 10 || $0 == 13 || $0 == 32 || $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "#")
                || $0 == UInt8(ascii: ";")
        } && sample.contains { $0 != 32 && $0 != 10 && $0 != 13 }
    }

    // MARK: Letters

    private func has(_ word: String, at start: Int) -> Bool { text[start...].starts(with: word.utf8) }

    private mutating func end(of word: String, from start: Int) -> Int? {
        guard !missing.contains(word) else { return nil }
        let found = text.firstRange(of: Array(word.utf8), from: start)
        if found == nil { missing.insert(word) }
        return found.map { $0 + word.utf8.count }
    }

    /// Returns the end of a processing instruction. An instruction cannot contain "<".
    private func endOfInstruction(from start: Int) -> Int {
        let last = next(UInt8(ascii: "<"), from: start + 1) ?? text.count
        let end = (start + 2..<max(start + 2, last)).first { text[$0] == UInt8(ascii: ">") && text[$0 - 1] == UInt8(ascii: "?") }
        return end.map { $0 + 1 } ?? start + 2
    }

    func next(_ letter: UInt8, from start: Int) -> Int? { text.firstRange(of: [letter], from: start) }

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

/// A value of XML with its entities decoded.
struct XMPValue {
    private(set) var letters: [UInt8] = []
    /// The start of each letter in the text, and the end of the last letter.
    private(set) var starts: [Int] = []

    private static let entities: [String: UInt8] = [
        "quot": 34, "apos": 39, "amp": 38, "lt": 60, "gt": 62, "nbsp": 32, "deg": 0xB0,
    ]

    /// - Parameter withoutTags: `true` to replace each tag with a space.
    init(_ text: [UInt8], _ range: Range<Int>, withoutTags: Bool = false) {
        var index = range.lowerBound
        while index < range.upperBound {
            starts.append(index)
            if withoutTags, text[index] == UInt8(ascii: "<") {
                letters.append(0x20)
                index = (text[index..<range.upperBound].firstIndex(of: UInt8(ascii: ">")) ?? range.upperBound - 1) + 1
            } else if text[index] == UInt8(ascii: "&"),
                let end = text[index..<range.upperBound].prefix(10).firstIndex(of: UInt8(ascii: ";")),
                let letter = Self.letter(text[index + 1..<end])
            {
                letters += letter
                for _ in letter.dropFirst() { starts.append(index) }
                index = end + 1
            } else {
                letters.append(text[index])
                index += 1
            }
        }
        starts.append(range.upperBound)
    }

    /// Returns the letter that an entity represents, in UTF-8.
    private static func letter(_ entity: ArraySlice<UInt8>) -> [UInt8]? {
        let name = String(decoding: entity, as: UTF8.self)
        guard name.hasPrefix("#") else { return entities[name].map { Array(String(Unicode.Scalar($0)).utf8) } }
        let digits = name.dropFirst()
        let number = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return number.flatMap(Unicode.Scalar.init).map { Array(String($0).utf8) }
    }

    /// Returns the range in the text that belongs to a range of letters.
    func range(of letters: Range<Int>) -> Range<Int> { starts[letters.lowerBound]..<starts[letters.upperBound] }
}
