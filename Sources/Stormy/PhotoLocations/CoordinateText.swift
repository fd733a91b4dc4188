/// Finds names and numbers of a location in the letters of a text: JSON, tags, links of maps, subtitles, sentences of a GPS receiver.
///
/// Pure. A number counts only with a name, a hemisphere, or the form of a link, so that prices, dates and exposures stay.
struct CoordinateText {
    struct Find: Equatable {
        /// Letters that become spaces.
        var blanks: [Range<Int>] = []
        /// Letters that become "0" after that, for readers that expect a number.
        var zeros: [Int] = []
        var places: [FoundPlace] = []
        /// Where looking continues.
        var end = 0
    }

    /// ASCII. Other letters are any bytes from 0x80 on.
    let letters: [UInt8]

    init(_ letters: [UInt8]) { self.letters = letters }

    private static let table = PatternTable(words.map { ($0, ()) })

    /// All finds in order, without overlaps.
    func all() -> [Find] {
        var (finds, index) = ([Find](), 0)
        while let (found, _) = Self.table.first(in: letters, from: index) {
            let find = find(at: found)
            if let find { finds.append(find) }
            index = max(found + 1, find?.end ?? 0)
        }
        for index in letters.indices where letters[index] == UInt8(ascii: "+") || letters[index] == UInt8(ascii: "-") {
            if let find = place(at: index) { finds.append(find) }
        }
        return finds
    }

    /// Returns the find for one of the words at an index. `nil` if the text there is not about a location.
    func find(at index: Int) -> Find? {
        guard index < letters.count else { return nil }
        switch letters[index] {
        case UInt8(ascii: "$"):
            let end = letters[index...].firstIndex { $0 < 0x20 || $0 > 0x7E } ?? letters.count
            return Find(blanks: [index..<end], end: end)
        case UInt8(ascii: "@"): return pair(from: index + 1, digits: 3, isStructured: false)
        case UInt8(ascii: "#"): return pair(from: index + 1, digits: 3, isStructured: false, needsZoom: true)
        case UInt8(ascii: "!"):
            guard let number = number(at: index + 3), number.fraction > 2 else { return nil }
            let isLatitude = letter(index + 1) == UInt8(ascii: "3")
            return Find(blanks: [number.range], places: [Self.place(number.value, isLatitude)], end: number.range.upperBound)
        case 0xC2, 0xB0: return degrees(at: index)
        case 48...57: return hemispheres(at: index)
        case UInt8(ascii: ","): return receiver(at: index)
        case UInt8(ascii: "["), UInt8(ascii: "N"), UInt8(ascii: "S"):
            if let find = sides(at: index) { return find }
        default: break
        }
        if has("GPS(", at: index) || has("GPS (", at: index), let list = list(at: index) { return list }
        if has("deg ", at: index), let angle = degrees(at: index) { return angle }
        return named(at: index)
    }

    // MARK: Names

    private func named(at index: Int) -> Find? {
        // "&q=" begins with a mark.
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
            } else if between.allSatisfy({ $0 == 0x20 }) {
                digits = max(digits, 3)
            }
            return pair(from: value, digits: digits, isStructured: isStructured)
        case .long:
            guard isQuoted || isBesideLatitude(range), let number = number(at: value), isQuoted || number.fraction > 2 else {
                return nil
            }
            return single(between, value, isLatitude: false, isClear: isQuoted)
        case .single(let isLatitude, let isClear):
            return single(between, value, isLatitude: isLatitude, isClear: isClear || isQuoted)
        }
    }

    /// The complete name around an index: letters, and digits or marks that a letter follows.
    private func name(around index: Int) -> Range<Int>? {
        var (start, end) = (index, index)
        func joins(_ place: Int) -> Bool {
            if Self.isLetter(letter(place)) { return true }
            guard place > 0, Self.isDigit(letter(place)) || [45, 46, 58].contains(letter(place)) else { return false }
            return Self.isLetter(letter(place + 1)) && (Self.isLetter(letter(place - 1)) || Self.isDigit(letter(place - 1)))
        }
        while start > 0, index - start < 40, joins(start - 1) { start -= 1 }
        while end < letters.count, end - index < 40, joins(end) { end += 1 }
        // "latE7" and "lat1" end with a digit.
        if Self.isDigit(letter(end)), !Self.isDigit(letter(end + 1)), letter(end + 1) != 46 { end += 1 }
        return start < end ? start..<end : nil
    }

    /// Returns the start of the value, behind the marks that are between a name and its value.
    private func value(behind name: Range<Int>, isMarkup: Bool) -> Int? {
        var index = name.upperBound
        let limit = min(letters.count, index + 24)
        while index < limit, !Self.isNumberStart(letters, index) {
            guard " \t\r\n=:\"'>([{,/&;\\?".utf8.contains(letters[index]) || isHemisphere(index) else { break }
            index += 1
        }
        if index < limit, Self.isNumberStart(letters, index) { return index }
        // <Item name="latitude" sample="0">48.1373</Item>
        guard isMarkup, let close = letters[name.upperBound...].prefix(160).firstIndex(where: { [60, 62].contains($0) }),
            letters[close] == UInt8(ascii: ">")
        else { return nil }
        // <Item name="latitude" value="48:8:14"/>
        for word in [" value=\"", " value='"] {
            if let found = Array(letters[name.upperBound..<close]).firstRange(of: Array(word.utf8)) {
                index = name.upperBound + found + word.utf8.count
                return Self.isNumberStart(letters, index) ? index : nil
            }
        }
        index = close + 1
        while index < letters.count, index - close < 20, [9, 10, 13, 32].contains(letters[index]) { index += 1 }
        return Self.isNumberStart(letters, index) ? index : nil
    }

    /// "Long" is a longitude if there is a latitude near it.
    private func isBesideLatitude(_ range: Range<Int>) -> Bool {
        let near = letters[max(0, range.lowerBound - 80)..<min(letters.count, range.upperBound + 80)].map { $0 | 0x20 }
        return near.split { !Self.isLetter($0) }.contains { $0.starts(with: "lat".utf8) }
    }

    // MARK: Values

    /// Reads one angle behind a name. The name stays, as its number becomes 0.
    ///
    /// - Parameter between: The letters between the name and the number.
    private func single(_ between: ArraySlice<UInt8>, _ value: Int, isLatitude: Bool, isClear: Bool) -> Find? {
        guard let range = angle(at: value), letters[range].contains(where: { (49...57).contains($0) }) else { return nil }
        let number = number(at: value)
        if !isClear {
            guard let number else { return nil }
            let isMarked = letters[range].contains { $0 >= 0x80 || "NSEW".utf8.contains($0) }
            let isAssigned = between.contains { [58, 61, 62].contains($0) }
            // "latE7" is a whole number.
            let isScaled = Self.isDigit(letters[between.startIndex - 1])
            guard isMarked || number.fraction > 2 || isAssigned, isScaled || abs(number.value) <= (isLatitude ? 90 : 360) else {
                return nil
            }
        }
        // "lat/lon: 48.1373, 11.5755"
        if let number, number.fraction > 0, let pair = pair(from: value, digits: 3, isStructured: true) { return pair }
        let degrees = PlaceText.degrees(letters[range].prefix(40))
        return Find(
            blanks: [range], zeros: [range.lowerBound], places: degrees.map { [Self.place($0, isLatitude)] } ?? [],
            end: range.upperBound)
    }

    /// Digits with the marks of degrees, minutes, seconds and hemispheres.
    private func angle(at start: Int) -> Range<Int>? {
        var (index, hasMark) = (start, false)
        while index < letters.count, index - start < 40 {
            let byte = letters[index]
            let isNext = Self.isDigit(letter(index + 1)) || isHemisphere(index + 1)
            if byte >= 0x80 { hasMark = true }
            switch byte {
            case 48...57, 43, 45, 46, 44, 47, 39: break
            case 58 where Self.isDigit(letter(index + 1)) && Self.isDigit(letter(index - 1)): break
            // Signs of degrees, minutes and seconds, also in UTF-8.
            case 0xB0, 0xBA, 0xC2, 0xE2, 0x80, 0xB2, 0xB3, 0x99, 0x9D: break
            // "48° 8' 14.3" N"
            case 0x20: if !hasMark || !isNext { return trimmed(start..<index) }
            case 34: if !hasMark || Self.isDigit(letter(index + 1)) { return trimmed(start..<index) }
            default: if !isHemisphere(index) { return trimmed(start..<index) }
            }
            index += 1
        }
        return trimmed(start..<index)
    }

    /// The range up to its last digit or hemisphere.
    private func trimmed(_ range: Range<Int>) -> Range<Int>? {
        let last = range.last { Self.isDigit(letters[$0]) || isHemisphere($0) }
        return last.map { range.lowerBound..<$0 + 1 }
    }

    /// Two numbers, and those that follow in a list.
    ///
    /// - Parameter digits: How many digits are behind each point. A place in a picture has both numbers below 1.
    private func pair(from start: Int, digits: Int, isStructured: Bool, needsZoom: Bool = false) -> Find? {
        guard var first = number(at: start) else { return nil }
        var hasZoom = false
        // "17/48.1373/11.5755"
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
        var find = Find(blanks: numbers.map(\.range), end: numbers[numbers.count - 1].range.upperBound)
        if isStructured { find.zeros = numbers.map(\.range.lowerBound) }
        for (one, other) in zip(numbers, numbers.dropFirst()).prefix(100) where abs(one.value) <= 180 && abs(other.value) <= 180 {
            find.places.append(FoundPlace(latitude: one.value, longitude: other.value))
            find.places.append(FoundPlace(latitude: other.value, longitude: one.value))
        }
        return find
    }

    /// A further place of a list, or a height: not a date or a sentence behind a place.
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
        /// Digits behind the point.
        var fraction: Int
    }

    /// A decimal number with its sign.
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

    /// The next number of a list.
    private func number(behind number: Number) -> Number? {
        var index = number.range.upperBound
        let limit = min(letters.count, index + 8)
        while index < limit, !Self.isNumberStart(letters, index) || index == number.range.upperBound {
            if has("%2C", at: index) || has("%2c", at: index) || has("%20", at: index) || has("%3B", at: index) {
                index += 3
                continue
            }
            guard " \t\r\n,;/|~()[]\"'+".utf8.contains(letters[index]) || letters[index] >= 0x80 || isHemisphere(index) else {
                return nil
            }
            index += 1
        }
        return index < limit ? self.number(at: index) : nil
    }

    // MARK: Other forms

    /// The bytes of typographic marks of minutes and seconds, in UTF-8 and Windows-1252.
    private static let minuteMarks: Set<UInt8> = [0x80, 0x92, 0x94, 0x99, 0x9D, 0xB2, 0xB3, 0xB4, 0xBA, 0xC2, 0xCA, 0xE2]

    /// "48°08'14.3"N" and "48 deg 8' 14.28" N": an angle with a hemisphere, and with minutes or a fraction.
    private func degrees(at mark: Int) -> Find? {
        var start = mark
        while start > 0, letters[start - 1] == 0x20, mark - start < 2 { start -= 1 }
        let digits = start
        while start > 0, mark - start < 20, Self.isDigit(letters[start - 1]) || letters[start - 1] == 46 { start -= 1 }
        while start < digits, letters[start] == 46 { start += 1 }
        guard let number = number(at: start), number.range.upperBound == digits else { return nil }
        // The byte of a degree sign in Latin-1 is frequent in bytes that are not text. There minutes need their own mark.
        let isOneByte = letters[mark] == 0xB0
        var end = mark + (isOneByte ? 1 : has("deg", at: mark) ? 3 : 2)
        var isPrecise = number.fraction > 0
        while end < letters.count, end - mark < 32, !isHemisphere(end) {
            let letter = letters[end]
            let isDigit = Self.isDigit(letter)
            guard isDigit || " .,'\"`".utf8.contains(letter) || Self.minuteMarks.contains(letter) else { break }
            let isMinuteMark = !isDigit && letter != 0x20 && letter != 44 && Self.isDigit(letters[end - 1])
            if isOneByte ? isMinuteMark : isDigit { isPrecise = true }
            end += 1
        }
        // "N48", "N 48", or "48 N". In "48 N 11 E" the N belongs to the first angle.
        let front = letter(start - 1) == 0x20 ? start - 2 : start - 1
        let isInFront = isHemisphere(front)
        let isOfOther =
            front < start - 1
            && letters[max(0, front - 2)..<max(0, front)].contains { Self.isDigit($0) || $0 >= 0x80 || "'\"".utf8.contains($0) }
        let side: UInt8
        if isInFront, !isOfOther || !isHemisphere(end) {
            (side, start) = (letters[front], front)
            end = trimmed(digits..<end)?.upperBound ?? digits
        } else if isHemisphere(end) {
            (side, end) = (letters[end], end + 1)
        } else {
            return nil
        }
        guard isPrecise, !isOneByte || isInText(start..<end) else { return nil }
        let isLatitude = side == UInt8(ascii: "N") || side == UInt8(ascii: "S")
        var find = Find(blanks: [start..<end], end: end)
        if let degrees = PlaceText.degrees(letters[start..<end].prefix(60)) { find.places = [Self.place(degrees, isLatitude)] }
        return find
    }

    /// Whether eight letters of text are beside a find, or little else is there.
    private func isInText(_ find: Range<Int>) -> Bool {
        if letters.count - find.count < 8 { return true }
        let isText = { (letter: UInt8) in (0x20...0x7E).contains(letter) || [9, 10, 13, 0x92, 0x94, 0xB0, 0xB4].contains(letter) }
        let before = letters[..<find.lowerBound].suffix(8).reversed().prefix(while: isText).count
        return before + letters[find.upperBound...].prefix(8).prefix(while: isText).count >= 8
    }

    /// "48.1373 N, 11.5755 E"
    private func hemispheres(at index: Int) -> Find? {
        var (start, side) = (index, index + 1)
        while start > 0, index - start < 20, Self.isDigit(letters[start - 1]) || letters[start - 1] == 46 { start -= 1 }
        if letter(side) == 0x20 { side += 1 }
        guard let first = number(at: start), first.range.upperBound == index + 1, first.fraction > 2, isHemisphere(side),
            let second = number(behind: Number(range: start..<side + 1, value: 0, fraction: 0)), second.fraction > 2
        else { return nil }
        var last = second.range.upperBound
        if letter(last) == 0x20 { last += 1 }
        guard letter(last) == UInt8(ascii: "E") || letter(last) == UInt8(ascii: "W"), isHemisphere(last) else { return nil }
        let (north, east) = (letters[side] == UInt8(ascii: "N"), letters[last] == UInt8(ascii: "E"))
        let place = FoundPlace(latitude: north ? first.value : -first.value, longitude: east ? second.value : -second.value)
        return Find(blanks: [start..<last + 1], places: [place], end: last + 1)
    }

    // MARK: Letters

    private static func place(_ degrees: Double, _ isLatitude: Bool) -> FoundPlace {
        isLatitude ? FoundPlace(latitude: degrees) : FoundPlace(longitude: degrees)
    }

    func letter(_ index: Int) -> UInt8 { letters.indices.contains(index) ? letters[index] : 0 }

    func has(_ word: String, at index: Int) -> Bool { letters[min(index, letters.count)...].starts(with: word.utf8) }

    /// N, S, E or W that is not part of a word.
    private func isHemisphere(_ index: Int) -> Bool {
        "NSEW".utf8.contains(letter(index)) && !Self.isLetter(letter(index + 1))
            && (index == 0 || !Self.isLetter(letters[index - 1]))
    }

    private static func isNumberStart(_ letters: [UInt8], _ index: Int) -> Bool {
        guard index < letters.count else { return false }
        if isDigit(letters[index]) { return true }
        return [43, 45].contains(letters[index]) && index + 1 < letters.count && isDigit(letters[index + 1])
    }

    static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) || byte == 95 }
}
