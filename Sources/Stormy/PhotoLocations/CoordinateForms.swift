/// This extension finds coordinates that have no name and are recognized by their form. The forms are ISO 6709 text, NMEA
/// sentences of GPS receivers, and numbers with hemispheres.
extension CoordinateText {
    /// Finds a location in the format ISO 6709, for example "+48.1373+011.5755/".
    ///
    /// Catalogue numbers have a similar form. A text counts as a location only if its minutes are valid. The text must also have
    /// digits after its points, or a "/" at its end.
    func place(at position: Int) -> Find? {
        let text = Array(letters[position...].prefix(60))
        var parts: [(digits: Int, fraction: Int, isPossible: Bool)] = []
        var index = 0
        while parts.count < 3, index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") {
            let digits = text[(index + 1)...].prefix(while: Self.isDigit)
            var end = index + 1 + digits.count
            guard end < text.count, digits.count > 1 else { break }
            let fraction = text[end] == 46 ? text[(end + 1)...].prefix(while: Self.isDigit).count : 0
            if fraction > 0 { end += 1 + fraction }
            parts.append((digits.count, fraction, Self.isPossible(digits, degrees: 2 + parts.count)))
            index = end
        }
        let isClosed = index < text.count && text[index] == UInt8(ascii: "/")
        guard parts.count > 1, [2, 4, 6].contains(parts[0].digits), parts[1].digits == parts[0].digits + 1,
            parts[0].isPossible, parts[1].isPossible,
            parts[0].digits > 2 && isClosed || parts[0].fraction > 1 && parts[1].fraction > 1, let place = PlaceText.iso6709(text)
        else { return nil }
        let before = letter(position - 1)
        guard isClosed || !Self.isLetter(before) && !Self.isDigit(before) else { return nil }
        if isClosed { index += 1 }
        return Find(
            blanks: [position..<position + index], places: [FoundPlace(latitude: place.latitude, longitude: place.longitude)],
            end: position + index)
    }

    /// Returns whether digits are a possible angle. The degrees have two or three digits. The minutes and the seconds have two
    /// digits each.
    private static func isPossible(_ digits: ArraySlice<UInt8>, degrees count: Int) -> Bool {
        func number(_ digits: ArraySlice<UInt8>) -> Int { digits.reduce(0) { $0 * 10 + Int($1) - 48 } }
        let rest = digits.dropFirst(count)
        return digits.count <= 7 && number(digits.prefix(count)) <= (count == 2 ? 90 : 180)
            && number(rest.prefix(2)) < 60 && number(rest.dropFirst(2)) < 60
    }

    /// Finds a text such as "4722.2056,N,00832.9464,E" in any NMEA sentence of a GPS receiver. The parameter is the position of
    /// the comma before the first letter.
    func receiver(at comma: Int) -> Find? {
        var start = comma
        while start > 0, comma - start < 16, Self.isDigit(letters[start - 1]) || letters[start - 1] == 46 { start -= 1 }
        guard let first = number(at: start), first.range.upperBound == comma, let second = number(at: comma + 3),
            first.fraction > 1, first.range.count - first.fraction == 5, second.fraction > 1,
            second.range.count - second.fraction > 4, let latitude = Self.degrees(first.value, upTo: 90),
            let longitude = Self.degrees(second.value, upTo: 180)
        else { return nil }
        let side = second.range.upperBound + 1
        guard "EW".utf8.contains(letter(side)), letter(side - 1) == 44, !Self.isLetter(letter(side + 1)) else { return nil }
        return sided(start..<side + 1, latitude, longitude, isSouth: letter(comma + 1) == UInt8(ascii: "S"), side)
    }

    /// The letters for the hemisphere of a longitude. After a latitude, "O" means Ost, ouest or oeste. In other positions, "O" is
    /// usually part of a word.
    private static let sidesOfSecond = "EWO"

    /// An angle with degrees, and with optional minutes and seconds. The same character separates all numbers, for example
    /// "47.370094", "47-22-12.3", "47 22.205".
    struct BareAngle {
        var range: Range<Int>
        var degrees: Double
        var parts = 1
        /// The number of digits after the point.
        var fraction: Int
        /// The number of digits before the point, in the last number of the angle.
        var whole: Int

        /// Returns whether two angles have enough digits to be a location. Less precise numbers may be measurements.
        func makesPlace(with other: BareAngle, digits: Int) -> Bool {
            guard parts == other.parts, degrees <= 90, other.degrees <= 180 else { return false }
            switch parts {
            case 1: return min(fraction, other.fraction) >= digits
            case 2:
                return min(fraction, other.fraction) > 0 && (min(whole, other.whole) == 2 || min(fraction, other.fraction) > 2)
            default: return true
            }
        }
    }

    func bareAngle(at start: Int) -> BareAngle? {
        guard Self.isDigit(letter(start)), let first = number(at: start) else { return nil }
        var result = BareAngle(range: first.range, degrees: first.value, fraction: first.fraction, whole: 0)
        let mark = letter(first.range.upperBound)
        guard " -:".utf8.contains(mark) else { return result }
        while result.parts < 3, result.fraction == 0, letter(result.range.upperBound) == mark,
            Self.isDigit(letter(result.range.upperBound + 1)), let next = number(at: result.range.upperBound + 1), next.value < 60
        {
            result.whole = next.range.count - (next.fraction > 0 ? next.fraction + 1 : 0)
            guard result.whole <= 2 else { return nil }
            result.parts += 1
            result.degrees += next.value / (result.parts == 2 ? 60 : 3_600)
            (result.range, result.fraction) = (start..<next.range.upperBound, next.fraction)
        }
        return result
    }

    /// Finds texts such as "48.1373 N, 11.5755 E", "47-22-12.3N 008-32-56.8E" and "47 22.205 N 8 32.946 E". The parameter is the
    /// index of the last digit of the first angle.
    func hemispheres(at index: Int) -> Find? {
        let side = letter(index + 1) == 0x20 ? index + 2 : index + 1
        guard Self.isDigit(letter(index)), isHemisphere(side) else { return nil }
        var start = side + 1
        while start - side < 5, " \t\r\n,;/|+-".utf8.contains(letter(start)) { start += 1 }
        guard let second = bareAngle(at: start) else { return nil }
        var last = second.range.upperBound
        if letter(last) == 0x20 { last += 1 }
        guard isHemisphere(last, of: Self.sidesOfSecond) else { return nil }
        for start in stride(from: index, through: max(0, index - 20), by: -1) {
            guard Self.isDigit(letters[start]) || " -:.".utf8.contains(letters[start]) else { break }
            guard Self.isDigit(letters[start]), !Self.isDigit(letter(start - 1)), letter(start - 1) != 46,
                !Self.isLetter(letter(start - 1)), let first = bareAngle(at: start), first.range.upperBound == index + 1
            else { continue }
            if let place = packed(first, second) {
                return sided(start..<last + 1, place.0, place.1, isSouth: letter(side) == UInt8(ascii: "S"), last)
            }
            if first.makesPlace(with: second, digits: 2) {
                return sided(start..<last + 1, first.degrees, second.degrees, isSouth: letter(side) == UInt8(ascii: "S"), last)
            }
        }
        return nil
    }

    /// Finds texts such as "N47.370094 E8.549106", and texts with degrees and minutes in one number, for example
    /// "N47222056E008329464", "[N][47222056][E][008329464]".
    func sides(at index: Int) -> Find? {
        let north = letter(index) == UInt8(ascii: "[") ? index + 1 : index
        guard "NS".utf8.contains(letter(north)), !Self.isLetter(letter(index - 1)), let first = angle(behindSide: north) else {
            return nil
        }
        var east = first.range.upperBound
        while east - first.range.upperBound < 3, " ,;/|-+[]".utf8.contains(letter(east)) { east += 1 }
        guard Self.sidesOfSecond.utf8.contains(letter(east)), let second = angle(behindSide: east) else { return nil }
        let place = packed(first, second)
        guard place != nil || first.makesPlace(with: second, digits: 3) else { return nil }
        let (latitude, longitude) = place ?? (first.degrees, second.degrees)
        return sided(
            north..<second.range.upperBound, latitude, longitude, isSouth: letter(north) == UInt8(ascii: "S"), east)
    }

    /// Returns the degrees of numbers that contain degrees, minutes and seconds. Examples are "4722.2056", "472212.34", and
    /// "47222056", which has four digits of a fraction.
    private func packed(_ first: BareAngle, _ second: BareAngle) -> (Double, Double)? {
        guard first.parts == 1, second.parts == 1 else { return nil }
        let wholes = [first, second].map { letters[$0.range].prefix { $0 != 46 } }
        if first.fraction == 0, wholes[0].count == 8, second.fraction == 0, (8...9).contains(wholes[1].count),
            let latitude = Self.degrees(first.degrees / 10_000, upTo: 90),
            let longitude = Self.degrees(second.degrees / 10_000, upTo: 180)
        {
            return (latitude, longitude)
        }
        let isPrecise = wholes[0].count == 6 || min(first.fraction, second.fraction) > 1
        guard [4, 6].contains(wholes[0].count), wholes[1].count == wholes[0].count + 1, isPrecise,
            Self.isPossible(wholes[0], degrees: 2), Self.isPossible(wholes[1], degrees: 3)
        else { return nil }
        let text = [43] + letters[first.range] + [43] + letters[second.range]
        return PlaceText.iso6709(text).map { ($0.latitude, $0.longitude) }
    }

    private func angle(behindSide side: Int) -> BareAngle? {
        var start = side + 1
        while start - side < 3, " []".utf8.contains(letter(start)) { start += 1 }
        return bareAngle(at: start)
    }

    private func sided(_ range: Range<Int>, _ latitude: Double, _ longitude: Double, isSouth: Bool, _ side: Int) -> Find {
        let isWest = letter(side) == UInt8(ascii: "W")
        let place = FoundPlace(latitude: isSouth ? -latitude : latitude, longitude: isWest ? -longitude : longitude)
        return Find(blanks: [range], places: [place], end: range.upperBound)
    }

    /// Returns the degrees of a number that contains degrees and minutes. The number is 100 times the degrees, plus the minutes.
    private static func degrees(_ value: Double, upTo limit: Double) -> Double? {
        let (degrees, minutes) = ((value / 100).rounded(.down), value.truncatingRemainder(dividingBy: 100))
        return value >= 0 && degrees <= limit && minutes < 60 ? degrees + minutes / 60 : nil
    }

    /// The bytes of typographic marks for minutes and seconds in Windows-1252.
    static let minuteMarks: Set<UInt8> = [0x92, 0x94, 0xB4]

    /// Finds angles such as "48°08'14.3"N" and "48 deg 8' 14.28" N". Such an angle has a hemisphere, and has minutes or a
    /// fraction.
    ///
    /// - Parameter isSecond: `true` if the angle follows a latitude.
    func degrees(at mark: Int, isSecond: Bool = false) -> Find? {
        let sides = isSecond ? Self.sidesOfSecond : "NSEW"
        var start = mark
        while start > 0, letters[start - 1] == 0x20, mark - start < 2 { start -= 1 }
        let digits = start
        while start > 0, mark - start < 20, Self.isDigit(letters[start - 1]) || letters[start - 1] == 46 { start -= 1 }
        while start < digits, letters[start] == 46 { start += 1 }
        guard let number = number(at: start), number.range.upperBound == digits, number.value <= 360 else { return nil }
        // The degree sign in Latin-1 and "d" are frequent in bytes that are not text. The minutes must therefore have a mark such
        // as "'".
        let hasLetter = letters[mark] == UInt8(ascii: "d") && !has("deg", at: mark)
        let isOneByte = hasLetter || [0xB0, 0xBA].contains(letters[mark])
        var end = mark + (isOneByte ? 1 : letters[mark] == 0xC2 ? 2 : 3)
        var isPrecise = number.fraction > 0
        while end < letters.count, end - mark < 32, !isHemisphere(end, of: sides) {
            let letter = letters[end]
            let isDigit = Self.isDigit(letter)
            // A point at the end of a sentence is not part of the angle.
            if letter == 46, !Self.isDigit(self.letter(end + 1)) { break }
            guard
                isDigit || " .,'\"`".utf8.contains(letter) || Self.minuteMarks.contains(letter)
                    || hasLetter && "ms".utf8.contains(letter)
            else { break }
            let isMinuteMark =
                !isDigit && !" ,".utf8.contains(letter) && Self.isDigit(letters[end - 1])
                && (!hasLetter || letter != 46)
            if isOneByte ? isMinuteMark : isDigit { isPrecise = true }
            end += 1
        }
        // The hemisphere can be written as "N48", "N 48" or "48 N". In "48 N 11 E", the "N" belongs to the first angle.
        let front = letter(start - 1) == 0x20 ? start - 2 : start - 1
        let isInFront = isHemisphere(front, of: sides)
        let isOfOther =
            front < start - 1
            && letters[max(0, front - 2)..<max(0, front)].contains { Self.isDigit($0) || $0 >= 0x80 || "'\"".utf8.contains($0) }
        let side: UInt8
        if isInFront, !isOfOther || !isHemisphere(end, of: sides) {
            (side, start) = (letters[front], front)
            end = trimmed(digits..<end)?.upperBound ?? digits
        } else if isHemisphere(end, of: sides) {
            (side, end) = (letters[end], end + 1)
        } else {
            return isSecond || number.fraction < 4 ? nil : withoutSides(number)
        }
        guard isPrecise, !isOneByte || isInText(start..<end) else { return nil }
        let isLatitude = side == UInt8(ascii: "N") || side == UInt8(ascii: "S")
        var find = Find(blanks: [start..<end], end: end)
        if let degrees = PlaceText.degrees(letters[start..<end].prefix(60)) { find.places = [Self.place(degrees, isLatitude)] }
        if isLatitude, let second = second(behind: end) {
            find.blanks += second.blanks
            find.places += second.places
            find.end = second.end
        }
        return find
    }

    /// Finds pairs of angles such as "47.370094°, 8.549106°". Angles with fewer digits are ignored, because they may describe
    /// something else, for example the angle of a camera.
    private func withoutSides(_ first: Number) -> Find? {
        let mark = first.range.upperBound
        var start = mark + (letter(mark) == 0xC2 ? 2 : 1)
        while start - mark < 6, " ,;/".utf8.contains(letter(start)) { start += 1 }
        guard let second = number(at: start), second.fraction > 3, abs(first.value) <= 90, abs(second.value) <= 180,
            [0xC2, 0xB0].contains(letter(second.range.upperBound))
        else { return nil }
        return Self.find([first, second])
    }

    /// Returns the longitude that follows a latitude.
    private func second(behind end: Int) -> Find? {
        var start = end
        while start - end < 5, " \t\r\n,;/|+'\"".utf8.contains(letter(start)) { start += 1 }
        if Self.sidesOfSecond.utf8.contains(letter(start)) { start += letter(start + 1) == 0x20 ? 2 : 1 }
        guard let number = number(at: start) else { return nil }
        let mark = number.range.upperBound + (letter(number.range.upperBound) == 0x20 ? 1 : 0)
        guard [0xC2, 0xB0, 0xBA, UInt8(ascii: "d")].contains(letter(mark)) else { return nil }
        return degrees(at: mark, isSecond: true)
    }

    /// Returns whether at least eight letters of text are next to the found coordinates, or whether the text contains few other
    /// letters.
    private func isInText(_ find: Range<Int>) -> Bool {
        if letters.count - find.count < 8 { return true }
        let isText = { (letter: UInt8) in (0x20...0x7E).contains(letter) || [9, 10, 13, 0x92, 0x94, 0xB0, 0xB4].contains(letter) }
        let before = letters[..<find.lowerBound].suffix(8).reversed().prefix(while: isText).count
        return before + letters[find.upperBound...].prefix(8).prefix(while: isText).count >= 8
    }
}
