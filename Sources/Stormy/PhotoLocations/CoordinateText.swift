/// Finds the names and numbers of locations in a text, for example in JSON, tags, map links, subtitles, and NMEA sentences of a
/// GPS receiver.
///
/// The type has no side effects. A number counts as a coordinate only if it has a name or a hemisphere, or if it is in a map
/// link. Prices, dates and exposure times are therefore not changed.
struct CoordinateText {
    struct Find: Equatable {
        /// The letters that are replaced by spaces.
        var blanks: [Range<Int>] = []
        /// The letters that are replaced by "0" instead of a space, because some readers expect a number.
        var zeros: [Int] = []
        var places: [FoundPlace] = []
        /// The index at which the search continues.
        var end = 0
    }

    /// The letters of the text in ASCII. Letters outside ASCII are bytes of 0x80 or more.
    let letters: [UInt8]
    private let plain: PlainLetters

    init(_ text: [UInt8]) {
        plain = PlainLetters(text)
        letters = plain.letters
    }

    private static let table = PatternTable(words.map { ($0, ()) })

    /// Returns all found locations in the order of the text, without overlaps.
    func all() -> [Find] {
        var (finds, index) = ([Find](), 0)
        while let (found, _) = Self.table.first(in: plain.text, from: index) {
            let find = find(at: found)
            if let find { finds.append(find) }
            index = max(found + 1, find?.end ?? 0)
        }
        for index in letters.indices where letters[index] == UInt8(ascii: "+") || letters[index] == UInt8(ascii: "-") {
            if let find = place(at: index) ?? plusCode(at: index) { finds.append(plain.source(find)) }
        }
        return finds
    }

    /// Returns the location that belongs to the word at an index of the text. `nil` if the text at this index is not about a
    /// location.
    ///
    /// - Parameter isPlace: `true` if the word is the sign at the beginning of an ISO 6709 location.
    func find(at index: Int, isPlace: Bool = false) -> Find? {
        let letter = plain.letter(at: index)
        return (isPlace ? place(at: letter) ?? plusCode(at: letter) : word(at: letter)).map(plain.source)
    }

    private func word(at index: Int) -> Find? {
        guard index < letters.count else { return nil }
        switch letters[index] {
        case UInt8(ascii: "$"):
            guard has("$G", at: index), letter(index + 6) == UInt8(ascii: ",") || has("$GPSINFO", at: index) else { return nil }
            let end = letters[index...].firstIndex { $0 < 0x20 || $0 > 0x7E } ?? letters.count
            return Find(blanks: [index..<end], end: end)
        case UInt8(ascii: "@"): return pair(from: index + 1, digits: 3, isStructured: false)
        case UInt8(ascii: "#"): return pair(from: index + 1, digits: 3, isStructured: false, needsZoom: true)
        case UInt8(ascii: "!"):
            guard let number = number(at: index + 3), number.fraction > 2 else { return nil }
            let isLatitude = letter(index + 1) == UInt8(ascii: "3")
            return Find(blanks: [number.range], places: [Self.place(number.value, isLatitude)], end: number.range.upperBound)
        case 0xC2, 0xB0, 0xBA: return degrees(at: index)
        case 48...57: return letter(index + 1) == UInt8(ascii: "d") ? degrees(at: index + 1) : hemispheres(at: index)
        case UInt8(ascii: "."): return link(at: index)
        case UInt8(ascii: ","): return receiver(at: index)
        case UInt8(ascii: "+"): return plusCode(at: index)
        case UInt8(ascii: "/"): return code(at: index)
        case UInt8(ascii: "["), UInt8(ascii: "N"), UInt8(ascii: "S"):
            // In the texts of some writing systems, the hemisphere is a single letter such as "N" after the number.
            if let find = sides(at: index) ?? hemispheres(at: letter(index - 1) == 0x20 ? index - 2 : index - 1) { return find }
        default: break
        }
        if has("GPS(", at: index) || has("GPS (", at: index), let list = list(at: index) { return list }
        if let code = code(at: index) { return code }
        if has("deg ", at: index), let angle = degrees(at: index) { return angle }
        return named(at: index)
    }

    // MARK: Names

    private func named(at index: Int) -> Find? {
        // A name such as "&q=" begins with a punctuation mark, so the name begins at the next letter.
        let inside = Self.isLetter(letters[index]) ? index : index + 1
        guard let range = name(around: inside), let name = CoordinateName(letters[range]) else { return nil }
        let isQuoted =
            range.lowerBound > 0 && [34, 39].contains(letters[range.lowerBound - 1])
            && [34, 39].contains(letter(range.upperBound))
        guard let value = value(behind: range, isMarkup: isQuoted || letter(range.lowerBound - 1) == UInt8(ascii: "<")) else {
            return nil
        }
        let between = letters[range.upperBound..<value]
        let isStructured = isQuoted || between.contains { [34, 39, 60, 62, 91].contains($0) }
        switch name {
        case .pair(var digits):
            let isURI = between.elementsEqual(":".utf8) && letters[range].suffix(3).elementsEqual("geo".utf8)
            if isURI {
                digits = 0
            } else if "?&/#".utf8.contains(letter(range.lowerBound - 1)) {
                digits = 2
            } else if between.allSatisfy({ $0 == 0x20 || $0 == 46 || Self.isLetter($0) }) {
                digits = max(digits, 3)
            }
            return pair(from: value, digits: digits, isStructured: isStructured)
        case .size(let isLatitude):
            guard isQuoted || isBesideAngle(range, isLatitude), let number = number(at: value),
                isQuoted || number.fraction > 2 && !hasUnit(number.range.upperBound)
            else { return nil }
            return single(between, value, isLatitude: isLatitude, isClear: isQuoted)
        case .single(let isLatitude, let isClear):
            return single(between, value, isLatitude: isLatitude, isClear: isClear || isQuoted)
        }
    }

    /// Returns the complete name around an index. A name consists of letters, and of digits or punctuation marks that are
    /// followed by a letter.
    private func name(around index: Int) -> Range<Int>? {
        var (start, end) = (index, index)
        func joins(_ place: Int) -> Bool {
            if Self.isLetter(letter(place)) { return true }
            guard place > 0, Self.isDigit(letter(place)) || [45, 46, 58].contains(letter(place)) else { return false }
            return Self.isLetter(letter(place + 1)) && (Self.isLetter(letter(place - 1)) || Self.isDigit(letter(place - 1)))
        }
        while start > 0, index - start < 40, joins(start - 1) { start -= 1 }
        while end < letters.count, end - index < 40, joins(end) { end += 1 }
        // Names such as "latE7" and "lat1" end with a digit.
        if Self.isDigit(letter(end)), !Self.isDigit(letter(end + 1)), letter(end + 1) != 46 { end += 1 }
        return start < end ? start..<end : nil
    }

    /// Returns the position at which the value after a name begins. Marks between the name and the value are skipped.
    private func value(behind name: Range<Int>, isMarkup: Bool) -> Int? {
        var index = name.upperBound
        let limit = min(letters.count, index + 40)
        while index < limit, !Self.isNumberStart(letters, index) {
            if Self.isLetter(letters[index]), !isHemisphere(index) {
                // Examples: "latitude is 47.370094", "Latitude (WGS84): 47.370094".
                let word = letters[index..<limit].prefix { Self.isLetter($0) || Self.isDigit($0) }
                guard CoordinateName.isFiller(word) else { break }
                index += word.count
                if letter(index) == UInt8(ascii: ")") { index += 1 }
                continue
            }
            let isEnd = letters[index] == UInt8(ascii: ")") && letter(index + 1) == UInt8(ascii: ":")
            guard " \t\r\n=:\"'>([{,/&;\\?.".utf8.contains(letters[index]) || isHemisphere(index) || isEnd else { break }
            index += 1
        }
        if index < limit, Self.isNumberStart(letters, index) { return index }
        // Example: <Item name="latitude" sample="0">48.1373</Item>
        guard isMarkup, let close = letters[name.upperBound...].prefix(160).firstIndex(where: { [60, 62].contains($0) }),
            letters[close] == UInt8(ascii: ">")
        else { return nil }
        // Example: <Item name="latitude" value="48:8:14"/>
        for word in [" value=\"", " value='", " content=\"", " content='"] {
            if let found = Array(letters[name.upperBound..<close]).firstRange(of: Array(word.utf8)) {
                index = name.upperBound + found + word.utf8.count
                return Self.isNumberStart(letters, index) ? index : nil
            }
        }
        index = close + 1
        while index < letters.count, index - close < 20, [9, 10, 13, 32].contains(letters[index]) { index += 1 }
        return Self.isNumberStart(letters, index) ? index : nil
    }

    /// Returns whether "Long" or "Breite" means an angle. The word means an angle if another angle or the word "geographic" is
    /// near.
    private func isBesideAngle(_ range: Range<Int>, _ isLatitude: Bool) -> Bool {
        let (before, behind) = (letters[..<range.lowerBound].suffix(80), letters[range.upperBound...].prefix(80))
        return [before, behind].contains { part in
            part.split { !Self.isLetter($0) }.contains { CoordinateName.isBesideSize(isLatitude: isLatitude, $0) }
        }
    }

    /// Returns whether a unit of length follows the number, for example in "12.505 m".
    private func hasUnit(_ index: Int) -> Bool {
        let word = letters[index...].prefix(4).drop { $0 == 0x20 }.prefix(while: Self.isLetter)
        return ["m", "mm", "cm", "km", "ft", "in"].contains(String(decoding: word, as: UTF8.self))
    }

    // MARK: Values

    /// Reads one angle after a name. Only the number is replaced, and the name is kept.
    ///
    /// - Parameter between: The letters between the name and the number.
    private func single(_ between: ArraySlice<UInt8>, _ value: Int, isLatitude: Bool, isClear: Bool) -> Find? {
        guard let range = angle(at: value), letters[range].contains(where: { (49...57).contains($0) }) else { return nil }
        let number = number(at: value)
        if !isClear {
            guard let number else { return nil }
            let isMarked = letters[range].contains { $0 >= 0x80 || "NSEW".utf8.contains($0) }
            let isAssigned = between.contains { [58, 61, 62].contains($0) }
            // A name such as "latE7" has an integer as its value.
            let isScaled = Self.isDigit(letters[between.startIndex - 1]) || number.fraction == 0 && number.range.count > 7
            guard isMarked || number.fraction > 2 || isAssigned, isScaled || abs(number.value) <= (isLatitude ? 90 : 360) else {
                return nil
            }
        }
        // Example: "lat/lon: 48.1373, 11.5755"
        if let number, number.fraction > 0, let pair = pair(from: value, digits: 3, isStructured: true) { return pair }
        // Examples: {"lat":{"deg":47,"min":22,"sec":12.3}} and {"lat":[47,22,12.3]}
        if number?.fraction == 0, let open = between.last(where: { $0 == 91 || $0 == 123 }),
            let close = letters[value...].prefix(80).firstIndex(of: open + 2)
        {
            let numbers = (value..<close).filter {
                Self.isNumberStart(letters, $0) && !Self.isDigit(letter($0 - 1)) && letter($0 - 1) != 46
            }
            .compactMap { self.number(at: $0)?.range }
            let degrees = PlaceText.degrees(letters[value..<close])
            return Find(
                blanks: numbers, zeros: numbers.map(\.lowerBound), places: degrees.map { [Self.place($0, isLatitude)] } ?? [],
                end: close)
        }
        // Example: "GPSLatitude 47, 22, 12.34"
        if isClear, let number, number.fraction == 0, let minutes = self.number(behind: number), minutes.value < 60,
            let seconds = self.number(behind: minutes), seconds.value < 60, minutes.fraction == 0
        {
            let degrees = PlaceText.degrees(letters[value..<seconds.range.upperBound])
            return Find(
                blanks: [number, minutes, seconds].map(\.range), zeros: [value],
                places: degrees.map { [Self.place($0, isLatitude)] } ?? [], end: seconds.range.upperBound)
        }
        let degrees = PlaceText.degrees(letters[range].prefix(40))
        return Find(
            blanks: [range], zeros: [range.lowerBound], places: degrees.map { [Self.place($0, isLatitude)] } ?? [],
            end: range.upperBound)
    }

    /// Returns the range of an angle: its digits, and the marks for degrees, minutes, seconds and hemispheres.
    private func angle(at start: Int) -> Range<Int>? {
        var (index, hasMark) = (start, false)
        // Example: "47 22 12.3 N"
        let digits = Self.isDigit(letter(start)) ? start : start + 1
        if let bare = bareAngle(at: digits), bare.parts + min(1, bare.fraction) > 2 {
            return withSide(start..<bare.range.upperBound)
        }
        while index < letters.count, index - start < 40 {
            let byte = letters[index]
            let isNext = Self.isDigit(letter(index + 1)) || isHemisphere(index + 1)
            if byte >= 0x80 { hasMark = true }
            switch byte {
            case 48...57, 43, 45, 46, 44, 47, 39: break
            case 58 where Self.isDigit(letter(index + 1)) && Self.isDigit(letter(index - 1)): break
            // The signs of degrees, minutes and seconds.
            case 0xB0, 0xBA, 0xC2: break
            case _ where Self.minuteMarks.contains(byte): break
            case _ where "dms".utf8.contains(byte) && isNext && Self.isDigit(letter(index - 1)): break
            // Example: "48° 8' 14.3" N"
            case 0x20: if !hasMark || !isNext { return withSide(trimmed(start..<index)) }
            case 34: if !hasMark || Self.isDigit(letter(index + 1)) { return trimmed(start..<index) }
            default: if !isHemisphere(index) { return trimmed(start..<index) }
            }
            index += 1
        }
        return trimmed(start..<index)
    }

    /// Returns the range, extended by a hemisphere that follows the range, for example in "47.37 N".
    private func withSide(_ range: Range<Int>?) -> Range<Int>? {
        guard let range, letter(range.upperBound) == 0x20, isHemisphere(range.upperBound + 1),
            !Self.isDigit(letter(range.upperBound + 2))
        else { return range }
        return range.lowerBound..<range.upperBound + 2
    }

    /// Returns the part of the range up to the last digit or hemisphere.
    func trimmed(_ range: Range<Int>) -> Range<Int>? {
        let last = range.last { Self.isDigit(letters[$0]) || isHemisphere($0) }
        return last.map { range.lowerBound..<$0 + 1 }
    }

    /// Finds a pair of numbers, and the numbers that follow the pair in a list.
    ///
    /// - Parameter digits: The minimum number of digits after each point. A pair is ignored if both numbers are below 1, because
    ///   such a pair is a point in a picture.
    private func pair(from start: Int, digits: Int, isStructured: Bool, needsZoom: Bool = false) -> Find? {
        guard var first = number(at: start) else { return nil }
        var hasZoom = false
        // Example: "17/48.1373/11.5755"
        if first.fraction == 0, (0...22).contains(first.value), letter(first.range.upperBound) == UInt8(ascii: "/"),
            let next = number(at: first.range.upperBound + 1)
        {
            (first, hasZoom) = (next, true)
        }
        guard hasZoom || !needsZoom, let second = number(behind: first) else { return nil }
        let values = [first.value, second.value].map { abs($0) }
        guard first.fraction >= digits, second.fraction >= digits, values.max()! >= (digits == 0 ? 0.000_001 : 1),
            values.max()! <= 180, values.min()! <= 90
        else { return nil }
        var numbers = [first, second]
        while let next = number(behind: numbers[numbers.count - 1]), isListed(next, behind: numbers) {
            numbers.append(next)
        }
        return Self.find(numbers, isStructured: isStructured)
    }

    /// Returns the result for a list of numbers that contains latitudes and longitudes in any order.
    static func find(_ numbers: [Number], isStructured: Bool = false) -> Find {
        var find = Find(blanks: numbers.map(\.range), end: numbers[numbers.count - 1].range.upperBound)
        if isStructured { find.zeros = numbers.map(\.range.lowerBound) }
        for (one, other) in zip(numbers, numbers.dropFirst()).prefix(100) where abs(one.value) <= 180 && abs(other.value) <= 180 {
            find.places.append(FoundPlace(latitude: one.value, longitude: other.value))
            find.places.append(FoundPlace(latitude: other.value, longitude: one.value))
        }
        return find
    }

    /// Returns whether a number belongs to a list of places, as a coordinate or a height. The result is `false` if the number
    /// belongs to a date or to a sentence after the list.
    private func isListed(_ next: Number, behind numbers: [Number]) -> Bool {
        if next.fraction > 2 { return true }
        let between = letters[numbers[numbers.count - 1].range.upperBound..<next.range.lowerBound]
        guard between.elementsEqual(",".utf8) || between.elementsEqual(", ".utf8) else { return false }
        return numbers.count % 3 == 2 && !["-", ":", "/", "."].contains { has($0, at: next.range.upperBound) }
    }

    // MARK: Numbers

    struct Number {
        var range: Range<Int>
        var value: Double
        /// The number of digits after the point.
        var fraction: Int
    }

    /// Reads a decimal number with its sign.
    func number(at start: Int) -> Number? {
        guard start >= 0, start < letters.count else { return nil }
        var index = start
        let isNegative = letters[index] == UInt8(ascii: "-")
        if isNegative || letters[index] == UInt8(ascii: "+") { index += 1 }
        let whole = letters[min(index, letters.count)...].prefix(12).prefix(while: Self.isDigit)
        guard !whole.isEmpty else { return nil }
        var (end, fraction) = (whole.endIndex, 0)
        if letter(end) == 46 {
            fraction = letters[(end + 1)...].prefix(24).prefix(while: Self.isDigit).count
            if fraction > 0 { end += 1 + fraction }
        }
        guard let value = PlaceText.number(Array(letters[index..<end])) else { return nil }
        return Number(range: start..<end, value: isNegative ? -value : value, fraction: fraction)
    }

    /// Reads the number that follows another number in a list.
    private func number(behind number: Number) -> Number? {
        var index = number.range.upperBound
        let limit = min(letters.count, index + 8)
        while index < limit, !Self.isNumberStart(letters, index) || index == number.range.upperBound {
            guard " \t\r\n,;/|~()[]\"'+".utf8.contains(letters[index]) || letters[index] >= 0x80 || isHemisphere(index) else {
                return nil
            }
            index += 1
        }
        return index < limit ? self.number(at: index) : nil
    }

    // MARK: Letters

    static func place(_ degrees: Double, _ isLatitude: Bool) -> FoundPlace {
        isLatitude ? FoundPlace(latitude: degrees) : FoundPlace(longitude: degrees)
    }

    func letter(_ index: Int) -> UInt8 { letters.indices.contains(index) ? letters[index] : 0 }

    func has(_ word: String, at index: Int) -> Bool { letters[min(index, letters.count)...].starts(with: word.utf8) }

    /// Returns whether a letter is one of the letters in `sides`, and is not part of a word. In "12.3sN", the "s" is a mark for
    /// seconds, so the "N" is not part of a word.
    func isHemisphere(_ index: Int, of sides: String = "NSEW") -> Bool {
        let before = letter(index - 1)
        return sides.utf8.contains(letter(index)) && !Self.isLetter(letter(index + 1))
            && (!Self.isLetter(before) || "dms".utf8.contains(before) && Self.isDigit(letter(index - 2)))
    }

    static func isNumberStart(_ letters: [UInt8], _ index: Int) -> Bool {
        guard index < letters.count else { return false }
        if isDigit(letters[index]) { return true }
        return [43, 45].contains(letters[index]) && index + 1 < letters.count && isDigit(letters[index + 1])
    }

    static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) || byte == 95 }
}
