/// Places that are written as a code: plus codes, what3words, geohashes, locators, and numbers of a grid.
///
/// Source of the rule: the specification of Open Location Code, the help of what3words, NGA.SIG.0012 (UTM and MGRS).
extension CoordinateText {
    /// The beginnings of labels in front of a code.
    static let labels = [
        "what3words", "w3w", "geohash", "maidenhead", "locator", "qth", "mgrs", "usng", "utm", "lv95", "lv03", "ch1903", "osgb",
        "plus code", "pluscode", "plus.codes",
    ].flatMap(PlainLetters.cases).map { Array($0.utf8) }

    private static let grids = ["mgrs", "usng", "utm", "lv95", "lv03", "ch1903", "osgb"]

    /// The code behind a label at an index, or behind the "///" of what3words.
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

    /// Skips the marks and short words between a label and its code, for example ": ", ".org/" and " locator: ".
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

    /// "JN47GI": a field, a square and a smaller square.
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

    /// "8FVC9GXX+XP", at its plus. A number of a part has few letters.
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

    /// "9GXX+XP" behind a label.
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

    /// "32T MT 65937 46605", "32N 465937 5246605", "2683456.12, 1247123.45": numbers with eight digits together.
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
