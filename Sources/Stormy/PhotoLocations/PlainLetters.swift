/// The simplified form of a text, in which `CoordinateText` finds coordinates. Percent-encoding is decoded, decimal commas are
/// replaced by points, and the marks, hemispheres and names of other languages are replaced by ASCII text.
struct PlainLetters {
    let text: [UInt8]
    private(set) var letters: [UInt8]
    /// A run is a group of consecutive letters that one pass copied or replaced. The run has an index in the letters before the
    /// pass, and an index in the letters after the pass.
    private struct Run {
        var source: Int
        var letter: Int
        var isCopy: Bool
    }

    /// The runs of each pass. The array is empty if every letter has its original index.
    private var passes: [[Run]] = []

    init(_ text: [UInt8]) {
        (self.text, letters) = (text, text)
        // A second pass is needed after percent-encoding was decoded, because decoded letters may also have to be replaced.
        if replace() { _ = replace() }
    }

    /// Returns the index of the letter that belongs to an index of the text.
    func letter(at index: Int) -> Int {
        passes.reduce(index) { index, runs in
            let run = Self.last(runs) { $0.source <= index }
            return run.isCopy ? run.letter + index - run.source : run.letter
        }
    }

    /// Returns the index of the text at which a letter begins.
    private func start(of letter: Int) -> Int {
        passes.reversed().reduce(letter) { letter, runs in
            let run = Self.last(runs) { $0.letter <= letter }
            return run.isCopy ? run.source + letter - run.letter : run.source
        }
    }

    private static func last(_ runs: [Run], where isBefore: (Run) -> Bool) -> Run {
        var (low, high) = (0, runs.count - 1)
        while low < high {
            let middle = (low + high + 1) / 2
            if isBefore(runs[middle]) { low = middle } else { high = middle - 1 }
        }
        return runs[low]
    }

    /// Returns the found location with indices of the text instead of indices of the letters.
    func source(_ find: CoordinateText.Find) -> CoordinateText.Find {
        if passes.isEmpty { return find }
        return CoordinateText.Find(
            blanks: find.blanks.map { start(of: $0.lowerBound)..<start(of: $0.upperBound) }, zeros: find.zeros.map(start),
            places: find.places, end: start(of: find.end))
    }

    // MARK: Replacing

    private enum Change {
        case escape, decimal
        /// A word for a hemisphere or a unit, if the word is next to a number.
        case word(count: Int, [UInt8], isUnit: Bool)
        case letters(count: Int, [UInt8])
    }

    /// - Returns: `true` if percent-encoding was decoded.
    private mutating func replace() -> Bool {
        var (result, runs, copied, index, isDecoded) = ([UInt8](), [Run](), 0, 0, false)
        func copy(upTo end: Int) {
            runs.append(Run(source: copied, letter: result.count, isCopy: true))
            result += letters[copied..<end]
        }
        while let (found, change) = Self.table.first(in: letters, from: index) {
            index = found + 1
            var (count, new) = (1, [UInt8]())
            switch change {
            case .escape:
                guard let (length, letter) = decoded(found) else { continue }
                (count, new, isDecoded) = (length, [letter], true)
            case .decimal:
                if isDecimal(found) { letters[found] = UInt8(ascii: ".") }
                continue
            case .word(let length, let letters, let isUnit):
                guard isWord(found, length, isUnit: isUnit) else { continue }
                (count, new) = (length, letters)
            case .letters(let length, let letters): (count, new) = (length, letters)
            }
            copy(upTo: found)
            runs.append(Run(source: found, letter: result.count, isCopy: false))
            result += new
            copied = found + count
            index = copied
        }
        guard copied > 0 else { return false }
        copy(upTo: letters.count)
        letters = result
        passes.append(runs)
        return isDecoded
    }

    /// Decodes percent-encoding such as "%C2". In an address inside another address, "%C2" is written as "%25C2".
    private func decoded(_ start: Int) -> (count: Int, letter: UInt8)? {
        var index = start + 1
        while letters[index...].starts(with: "25".utf8), index + 3 < letters.count, index - start < 8,
            EncodedBytes.hexadecimal(letters[index + 2]) != nil, EncodedBytes.hexadecimal(letters[index + 3]) != nil
        {
            index += 2
        }
        guard index + 1 < letters.count, let high = EncodedBytes.hexadecimal(letters[index]),
            let low = EncodedBytes.hexadecimal(letters[index + 1])
        else { return nil }
        return (index + 2 - start, high << 4 | low)
    }

    /// Returns whether a comma is a decimal comma. "47,370094" and "22,2' N" are decimal numbers. "48,8,14N", "48,8.2N" and
    /// "34,144,270,350" are lists.
    private func isDecimal(_ comma: Int) -> Bool {
        let whole = letters[..<comma].suffix(4).reversed().prefix(while: CoordinateText.isDigit).count
        let fraction = letters[(comma + 1)...].prefix(24).prefix(while: CoordinateText.isDigit).count
        guard (1...3).contains(whole) else { return false }
        let before = comma > whole ? letters[comma - whole - 1] : 0x20
        var next = letters[(comma + 1 + fraction)...].prefix(3)
        guard before != 46, next.first != 46 else { return false }
        if fraction > 4 { return true }
        guard before != 44, next.first != 44 else { return false }
        if fraction > 3 { return true }
        if next.first == 0x20 { next = next.dropFirst() }
        guard let mark = next.first else { return false }
        let isWord = next.dropFirst().first.map(CoordinateText.isLetter) ?? false
        return mark >= 0x80 || "'\"".utf8.contains(mark) || "NSEWO".utf8.contains(mark) && !isWord
    }

    /// Returns whether a word is complete and follows a number. A word for a hemisphere may also be before the number.
    private func isWord(_ start: Int, _ count: Int, isUnit: Bool) -> Bool {
        let end = start + count
        func isLetter(_ index: Int) -> Bool { letters.indices.contains(index) && CoordinateText.isLetter(letters[index]) }
        guard !isLetter(start - 1), letters[end - 1] == 46 || !isLetter(end) else { return false }
        let before = letters[..<start].last { $0 != 0x20 } ?? 0
        if CoordinateText.isDigit(before) { return true }
        let behind = letters[end...].first { $0 != 0x20 && $0 != 58 } ?? 0
        return !isUnit
            && (before >= 0x80 || "'\"".utf8.contains(before) || CoordinateText.isDigit(behind) || Self.isUnit(letters[..<start]))
    }

    /// Returns whether a text ends with a unit of angles. For example, "47 degrees" may be followed by "north".
    private static func isUnit(_ text: ArraySlice<UInt8>) -> Bool {
        let word = text.suffix(12).split { !CoordinateText.isLetter($0) }.last ?? []
        return units.contains { $0.0.utf8.elementsEqual(word.map { $0 | 0x20 }) } || word.elementsEqual("deg".utf8)
    }

    // MARK: Tables

    private static let table: PatternTable<Change> = {
        let texts = (marks + names + sides + accents + decomposed).map { (Array($0.0.utf8), Array($0.1.utf8)) }
        let wideDigits = (UInt8(0)...9).map { digit -> ([UInt8], [UInt8]) in ([0xEF, 0xBC, 0x90 + digit], [48 + digit]) }
        // The byte patterns in this list are text in ISO 8859-1.
        let bytes: [([UInt8], [UInt8])] = [
            ([0xE4, 0x6E, 0x67, 0x65], Array("ange".utf8)), ([0xE9, 0x65, 0x73], Array("ees".utf8)),
        ]
        return PatternTable(
            "0123456789ABCDEFabcdef".utf8.map { ([UInt8(ascii: "%"), $0], .escape) }
                + (UInt8(48)...57).map { ([UInt8(ascii: ","), $0], .decimal) }
                + spelled.map { (Array($0.0.utf8), .word(count: $0.0.utf8.count, Array($0.1.utf8), isUnit: false)) }
                + capitalized(units).map { (Array($0.0.utf8), .word(count: $0.0.utf8.count, Array($0.1.utf8), isUnit: true)) }
                + (texts + wideDigits + bytes).map { ($0, .letters(count: $0.count, $1)) })
    }()

    private static let marks = [
        ("º", "°"), ("˚", "°"), ("度", "°"), ("\\u00b0", "°"), ("\\u00B0", "°"), ("&deg;", "°"), ("’", "'"), ("‘", "'"),
        ("′", "'"),
        ("´", "'"), ("ʹ", "'"), ("ʼ", "'"), ("分", "'"), ("\\u2032", "'"), ("”", "\""), ("“", "\""), ("″", "\""), ("ʺ", "\""),
        ("秒", "\""), ("\\u2033", "\""), ("：", ":"), ("，", ","), ("、", ","), ("（", "("), ("）", ")"), ("\u{A0}", " "),
        ("\u{202F}", " "), ("−", "-"), ("–", "-"), ("‒", "-"), ("‑", "-"), ("‐", "-"), ("－", "-"), ("．", "."),
        ("WGS-84", "wgs"), ("WGS 84", "wgs"), ("WGS84", "wgs"),
        ("EPSG:4326", "wgs"),
    ]
    private static let units = [
        ("degrees", "°"), ("degree", "°"), ("grad", "°"), ("minutes", "'"), ("minute", "'"), ("minuten", "'"), ("min", "'"),
        ("seconds", "\""), ("second", "\""), ("sekunden", "\""), ("secs", "\""), ("sec", "\""),
    ]
    /// Words for hemispheres. In this list, a longer word comes before a shorter word with the same beginning.
    private static let spelled =
        capitalized([
            ("northern", "N"), ("north", "N"), ("norte", "N"), ("nord", "N"), ("southern", "S"), ("south", "S"), ("sud", "S"),
            ("eastern", "E"), ("east", "E"), ("este", "E"), ("est", "E"), ("ost", "E"), ("western", "W"), ("west", "W"),
            ("ouest", "W"),
        ])
        + [
            ("nördlicher Breite", "N"), ("nördl. Breite", "N"), ("nördl. Br.", "N"), ("n. Br.", "N"), ("südlicher Breite", "S"),
            ("südl. Breite", "S"), ("südl. Br.", "S"), ("s. Br.", "S"), ("östlicher Länge", "E"), ("östl. Länge", "E"),
            ("östl. L.", "E"), ("ö. L.", "E"), ("westlicher Länge", "W"), ("westl. Länge", "W"), ("westl. L.", "W"),
            ("w. L.", "W"), ("Süd", "S"),
        ]

    private static func capitalized(_ words: [(String, String)]) -> [(String, String)] {
        words.flatMap { word, letters in cases(of: word).map { ($0, letters) } }
    }

    /// Returns three forms of a word: unchanged, with a capital first letter, and in capital letters.
    static func cases(of word: String) -> [String] {
        [word, word.prefix(1).uppercased() + word.dropFirst(), word.uppercased()]
    }

    private static let names =
        capitalized([("широта", "latitude"), ("долгота", "longitude"), ("координаты", "coordinates")])
        + ["纬度", "緯度"].map { ($0, "latitude") } + ["经度", "經度", "経度"].map { ($0, "longitude") }
        + ["座標", "坐标", "坐標"].map { ($0, "coordinates") }
    /// Words for hemispheres. A pair of angles begins with a word for north or south.
    private static let sides =
        ["с. ш.", "с.ш.", "с.ш", "北纬", "北緯"].map { ($0, "N") } + ["ю. ш.", "ю.ш.", "ю.ш", "南纬", "南緯"].map { ($0, "S") }
        + ["в. д.", "в.д.", "в.д", "东经", "東經", "東経"].map { ($0, "E") }
        + ["з. д.", "з.д.", "з.д", "西经", "西經", "西経"].map { ($0, "W") } + [("О", "O")]
    /// Letters with accents that are part of the names in `CoordinateName`.
    private static let accents = [
        ("änge", "ange"), ("ÄNGE", "ANGE"), ("ées", "ees"), ("ör", "or"), ("ół", "ol"), ("ół", "ol"), ("ł", "l"), ("ś", "s"),
        ("ć", "c"),
        ("ó", "o"), ("ę", "e"),
    ]
    /// Names with combining marks. The names of files on macOS contain such marks.
    private static let decomposed = [
        ("a\u{308}nge", "ange"), ("A\u{308}NGE", "ANGE"), ("e\u{301}es", "ees"), ("o\u{308}r", "or"), ("o\u{301}", "o"),
        ("e\u{328}", "e"), ("s\u{301}", "s"), ("c\u{301}", "c"),
    ]
    /// The words of other writing systems with which a text about a location may begin.
    static let words: [[UInt8]] =
        (names + sides.filter { $0.1 == "N" || $0.1 == "S" } + marks.filter { $0.1 == "°" }).map { Array($0.0.utf8) }
        + spelled.filter { $0.1 == "N" || $0.1 == "S" }.map { Array($0.0.utf8) }
        + [
            "änge", "ÄNGE", "ługo", "rzędn", "ördin", "a\u{308}nge", "A\u{308}NGE", "rze\u{328}dn", "o\u{308}rdin",
            "donne\u{301}e",
        ].map {
            Array($0.utf8)
        } + [[0xE4, 0x6E, 0x67, 0x65]]
}
