import Glibc

/// Reads a latitude or a longitude from a text such as "48.137", "-11.5", "48,8.238N", "48,8,14W", "48/1 8/1 14/1".
enum PlaceText {
    /// Returns degrees. Latitudes in the south and longitudes in the west are negative. `nil` if the text is not a latitude or a
    /// longitude.
    static func degrees(_ text: some Sequence<UInt8>) -> Double? {
        var (numbers, current, isNegative, tags) = ([Double](), [UInt8](), false, 0)
        var isFraction = false
        func flush() {
            guard !current.isEmpty else { return }
            let value = number(current)
            current = []
            guard let value else { return }
            if isFraction, let top = numbers.popLast() {
                numbers.append(value != 0 ? top / value : 0)
            } else {
                numbers.append(value)
            }
            isFraction = false
        }
        for byte in text {
            if byte == UInt8(ascii: "<") { tags += 1 }
            if byte == UInt8(ascii: ">") { tags = max(0, tags - 1) }
            if tags > 0 { continue }
            switch byte {
            case 48...57, 46: current.append(byte)
            case UInt8(ascii: "-") where current.isEmpty && numbers.isEmpty: isNegative = true
            default:
                flush()
                if byte == UInt8(ascii: "/") { isFraction = !numbers.isEmpty }
                if byte == UInt8(ascii: "S") || byte == UInt8(ascii: "W") { isNegative = true }
            }
            if numbers.count > 3 { break }
        }
        flush()
        guard let first = numbers.first, first <= 360, first.isFinite else { return nil }
        var result = first
        if numbers.count > 1, numbers[1] < 60 { result += numbers[1] / 60 }
        if numbers.count > 2, numbers[1] < 60, numbers[2] < 60 { result += numbers[2] / 3600 }
        guard result != 0 else { return nil }
        return isNegative ? -result : result
    }

    /// Reads a decimal number without sign.
    static func number(_ text: [UInt8]) -> Double? {
        guard text.count < 40 else { return nil }
        return Double(String(decoding: text, as: UTF8.self))
    }

    /// Reads an ISO 6709 location such as "+48.1373+011.5755+520.000/".
    static func iso6709(_ text: [UInt8]) -> (latitude: Double, longitude: Double)? {
        var (parts, current) = ([[UInt8]](), [UInt8]())
        for byte in text.prefix(200) {
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") {
                if !current.isEmpty { parts.append(current) }
                current = [byte]
            } else if (48...57).contains(byte) || byte == 46 {
                if !current.isEmpty { current.append(byte) }
            } else if !current.isEmpty {
                parts.append(current)
                current = []
                if parts.count > 1 { break }
            }
        }
        if !current.isEmpty { parts.append(current) }
        guard parts.count > 1, let latitude = degrees(iso: parts[0], digits: 2), let longitude = degrees(iso: parts[1], digits: 3)
        else {
            return nil
        }
        return (latitude, longitude)
    }

    /// Returns degrees. The number of digits before the point shows whether the text contains only degrees, or also minutes and
    /// seconds.
    private static func degrees(iso text: [UInt8], digits: Int) -> Double? {
        guard let value = number(Array(text.dropFirst())), value.isFinite else { return nil }
        let whole = text.dropFirst().prefix { $0 != 46 }.count
        let sign = text[0] == UInt8(ascii: "-") ? -1.0 : 1.0
        if whole <= digits { return sign * value }
        if whole <= digits + 2 { return sign * ((value / 100).rounded(.down) + value.truncatingRemainder(dividingBy: 100) / 60) }
        let minutes = (value / 100).truncatingRemainder(dividingBy: 100).rounded(.down)
        return sign * ((value / 10_000).rounded(.down) + minutes / 60 + value.truncatingRemainder(dividingBy: 100) / 3600)
    }
}
