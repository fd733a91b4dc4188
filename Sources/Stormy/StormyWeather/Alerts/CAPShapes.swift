import Foundation

/// This extension reads the polygons and circles of a CAP document.
extension CAPDocument {
    private typealias Word = Slice<UnsafeBufferPointer<UInt8>>

    /// Reads pairs such as "51.4377,13.3222", latitude first, with blanks between them. Blanks next to a comma, altitudes, and
    /// numbers that are separated only by blanks or only by commas are also read.
    ///
    /// - Parameter most: the number of corners after which no further corner is read.
    /// - Returns: `nil` if a part of the text cannot be read, because a polygon without one of its corners is another area.
    static func corners(_ text: String, most: Int) -> [Coordinates]? {
        var text = asciiBlanks(text)
        // Bytes are read one by one, because a polygon may have megabytes of text.
        return text.withUTF8 { bytes in
            var (corners, rest): ([Coordinates], Word) = ([], bytes[...])
            /// The numbers with commas between them, and the numbers without commas.
            var (group, singles): ([Double], [Double]) = ([], [])
            func endGroup() -> Bool {
                defer { group = [] }
                if group.count == 1 {
                    singles += group
                    return true
                }
                guard let read = Self.corners(group) else { return false }
                corners += read
                return true
            }
            var isJoined = false
            while corners.count < most {
                rest = rest.drop(while: isBlank)
                guard let first = rest.first else { break }
                if first == comma {
                    guard !isJoined, !group.isEmpty else { return nil }
                    (isJoined, rest) = (true, rest.dropFirst())
                    continue
                }
                if !isJoined, !group.isEmpty, !endGroup() { return nil }
                let word = rest.prefix { !isBlank($0) && $0 != comma }
                guard let number = number(word) else { return nil }
                group.append(number)
                (isJoined, rest) = (false, rest[word.endIndex...])
            }
            if !group.isEmpty, corners.count < most, !endGroup() { return nil }
            if singles.isEmpty { return Array(corners.prefix(most)) }
            return corners.isEmpty && singles.count % 2 == 0 ? pairs(singles, 2).map { Array($0.prefix(most)) } : nil
        }
    }

    private static let comma = UInt8(ascii: ",")

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte) || byte == UInt8(ascii: ";")
    }

    /// Replaces all Unicode blanks, and the Unicode minus sign.
    private static func asciiBlanks(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            if scalar == "\u{2212}" { return "-" }
            return scalar.properties.isWhitespace || scalar.properties.generalCategory == .format ? " " : scalar
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Returns the corners in a list of numbers with commas. The list contains a single corner, a corner with its altitude, or
    /// several corners.
    private static func corners(_ group: [Double]) -> [Coordinates]? {
        if group.count == 3 { return pairs(group, 3) }
        let hasAltitudes =
            group.count % 3 == 0 && stride(from: 2, to: group.count, by: 3).allSatisfy { group[$0] == group[2] }
        return hasAltitudes ? pairs(group, 3) : group.count % 2 == 0 ? pairs(group, 2) : nil
    }

    private static func pairs(_ numbers: [Double], _ step: Int) -> [Coordinates]? {
        var corners: [Coordinates] = []
        for index in stride(from: 0, to: numbers.count, by: step) {
            guard let corner = Coordinates(latitude: numbers[index], foldingLongitude: numbers[index + 1]) else { return nil }
            corners.append(corner)
        }
        return corners
    }

    /// Powers of ten that a `Double` represents exactly, so that a quotient is the number nearest to the text.
    private static let powers: [Double] = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15]

    /// Reads a number with up to 15 digits. The standard library reads all other numbers.
    private static func number(_ word: Word) -> Double? {
        let isNegative = word.first == UInt8(ascii: "-")
        var (value, digits, decimals, hasPoint) = (0, 0, 0, false)
        for byte in isNegative ? word.dropFirst() : word {
            if byte == UInt8(ascii: "."), !hasPoint {
                hasPoint = true
            } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), digits < 15 {
                value = 10 * value + Int(byte - UInt8(ascii: "0"))
                digits += 1
                if hasPoint { decimals += 1 }
            } else {
                return Double(String(decoding: word, as: UTF8.self))
            }
        }
        guard digits > 0 else { return nil }
        return Double(isNegative ? -value : value) / powers[decimals]
    }

    /// Reads a circle such as "51.4,13.3 20", with the radius in kilometres.
    static func circle(_ text: String) -> AlertArea.Circle? {
        let words = asciiBlanks(text).lowercased().split { $0.isWhitespace || $0 == "," || $0 == ";" }
        let numbers = words.filter { $0 != "km" }.map { Double($0.hasSuffix("km") ? $0.dropLast(2) : $0) }
        guard numbers.count == 3, let latitude = numbers[0], let longitude = numbers[1], let radius = numbers[2],
            let center = Coordinates(latitude: latitude, foldingLongitude: longitude), (0...20_100).contains(radius)
        else { return nil }
        return AlertArea.Circle(center: center, kilometres: radius)
    }
}
