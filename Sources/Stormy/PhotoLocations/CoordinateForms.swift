/// Forms of coordinates that need no name: places of ISO 6709, sentences of GPS receivers, and hemispheres in front of numbers.
extension CoordinateText {
    /// A place of ISO 6709, for example "+48.1373+011.5755/".
    ///
    /// Numbers of catalogues have the same form. A place has digits behind its points or a "/" at its end, and possible minutes.
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

    /// Degrees of two or three digits, then minutes and seconds of two digits each.
    private static func isPossible(_ digits: ArraySlice<UInt8>, degrees count: Int) -> Bool {
        func number(_ digits: ArraySlice<UInt8>) -> Int { digits.reduce(0) { $0 * 10 + Int($1) - 48 } }
        let rest = digits.dropFirst(count)
        return digits.count <= 7 && number(digits.prefix(count)) <= (count == 2 ? 90 : 180)
            && number(rest.prefix(2)) < 60 && number(rest.dropFirst(2)) < 60
    }

    /// "4722.2056,N,00832.9464,E" of any sentence of a receiver, at the comma in front of the first letter.
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

    /// "N47.370094 E8.549106", and degrees with minutes in one number: "N47222056E008329464", "[N][47222056][E][008329464]".
    func sides(at index: Int) -> Find? {
        let north = letter(index) == UInt8(ascii: "[") ? index + 1 : index
        guard "NS".utf8.contains(letter(north)), !Self.isLetter(letter(index - 1)), let first = number(behindSide: north) else {
            return nil
        }
        var east = first.range.upperBound
        while east - first.range.upperBound < 3, " ,;/|-+[]".utf8.contains(letter(east)) { east += 1 }
        guard "EW".utf8.contains(letter(east)), let second = number(behindSide: east) else { return nil }
        var values = [first.value, second.value]
        if first.fraction == 0, first.range.count == 8, second.fraction == 0, (8...9).contains(second.range.count),
            let latitude = Self.degrees(first.value / 10_000, upTo: 90),
            let longitude = Self.degrees(second.value / 10_000, upTo: 180)
        {
            values = [latitude, longitude]
        } else {
            guard first.fraction > 2, second.fraction > 2, values[0] <= 90, values[1] <= 180 else { return nil }
        }
        return sided(
            north..<second.range.upperBound, values[0], values[1], isSouth: letter(north) == UInt8(ascii: "S"), east)
    }

    private func number(behindSide side: Int) -> Number? {
        var start = side + 1
        while start - side < 3, " []".utf8.contains(letter(start)) { start += 1 }
        return Self.isDigit(letter(start)) ? number(at: start) : nil
    }

    private func sided(_ range: Range<Int>, _ latitude: Double, _ longitude: Double, isSouth: Bool, _ side: Int) -> Find {
        let isWest = letter(side) == UInt8(ascii: "W")
        let place = FoundPlace(latitude: isSouth ? -latitude : latitude, longitude: isWest ? -longitude : longitude)
        return Find(blanks: [range], places: [place], end: range.upperBound)
    }

    /// Degrees times 100, and minutes.
    private static func degrees(_ value: Double, upTo limit: Double) -> Double? {
        let (degrees, minutes) = ((value / 100).rounded(.down), value.truncatingRemainder(dividingBy: 100))
        return value >= 0 && degrees <= limit && minutes < 60 ? degrees + minutes / 60 : nil
    }
}
