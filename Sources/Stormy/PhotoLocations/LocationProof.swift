import CZlib
import Glibc

/// Searches bytes of any format for known locations. The search finds rationals, doubles, floats and integers in each byte order,
/// and decimal text. The search also finds degrees with minutes, text in UTF-16, hexadecimal digits, and compressed streams.
///
/// The search shares no code with the parsers, so that it does not repeat an error of a parser. The parsers pass only the found
/// locations to the search.
struct LocationProof {
    /// The file is searched in pieces. Each piece is searched together with this number of bytes after the piece. The end of a
    /// deflated block of 65,536 bytes that begins in a piece is therefore also searched.
    static let overlap = 1 << 17
    /// The maximum number of bytes of a pattern together with the bytes that confirm the pattern.
    private static let reach = 256
    /// The maximum number of bytes between a latitude and a longitude of the same location. The limit applies only to numbers
    /// that may occur by chance.
    private static let neighbourhood = 64
    /// The maximum number of inflated bytes of one stream, and of all streams.
    private static let (maximumStream, maximumStreams) = (1 << 20, 256 << 20)

    private enum Kind {
        /// The pattern alone is enough, because such a pattern rarely occurs by chance.
        case certain
        /// The pattern counts only if a pattern for the other axis of the same location is near.
        case paired
        /// The found bytes are a rational number with the degrees. The next two rationals must be the minutes and seconds of the
        /// same angle.
        case rational(little: Bool)
    }

    private struct Pattern {
        var bytes: [UInt8]
        var kind: Kind
        var place: Int
        var isLatitude: Bool
        /// The degrees without sign.
        var degrees: Double
        /// `true` if the pattern is text. If a digit is directly before the text, the text is part of another number.
        var isText: Bool
    }

    private var patterns: [Pattern] = []
    private var lists: [[Int]] = []
    private var listIndex = [UInt32](repeating: 0, count: 1 << 16)
    private var known: Set<[UInt8]> = []
    /// The maximum number of zero bytes at the beginning of a pattern.
    private var leadingZeros = 0
    private var inflatedBytes = 0

    init(_ places: [FoundPlace]) {
        for (number, place) in places.enumerated() {
            // A latitude that was found without a longitude is combined with each longitude that was found without a latitude.
            let index = place.latitude == nil || place.longitude == nil ? -1 : number
            if let degrees = place.latitude { add(degrees, index, isLatitude: true) }
            if let degrees = place.longitude { add(degrees, index, isLatitude: false) }
            if place.raw.count >= 16 {
                add(place.raw, .certain, index, true, 0, isText: false)
                for digits in ["0123456789abcdef", "0123456789ABCDEF"].map({ Array($0.utf8) }) {
                    add(
                        place.raw.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, .certain, index, true, 0,
                        isText: false)
                }
            }
        }
    }

    // MARK: Patterns

    private mutating func add(_ bytes: [UInt8], _ kind: Kind, _ place: Int, _ isLatitude: Bool, _ degrees: Double, isText: Bool) {
        guard bytes.count >= 3, patterns.count < 400_000,
            known.insert(bytes + [isLatitude ? 1 : 0, UInt8(truncatingIfNeeded: place)]).inserted
        else { return }
        leadingZeros = max(leadingZeros, bytes.prefix { $0 == 0 }.count)
        let prefix = Int(bytes[0]) << 8 | Int(bytes[1])
        if listIndex[prefix] == 0 {
            lists.append([])
            listIndex[prefix] = UInt32(lists.count)
        }
        lists[Int(listIndex[prefix]) - 1].append(patterns.count)
        patterns.append(Pattern(bytes: bytes, kind: kind, place: place, isLatitude: isLatitude, degrees: degrees, isText: isText))
    }

    private mutating func add(_ signed: Double, _ place: Int, isLatitude: Bool) {
        let degrees = abs(signed)
        // A number with one digit after the point is ignored. Many values contain such a number, and the number is precise only
        // to ten kilometres.
        guard degrees > 0.001, degrees <= 360, abs(degrees * 10 - (degrees * 10).rounded()) > 1e-6 else { return }
        for (text, kind) in Self.texts(degrees) {
            let bytes = Array(text.utf8)
            add(bytes, kind, place, isLatitude, degrees, isText: true)
            add(Array(bytes.map { [$0] }.joined(separator: [0])), kind, place, isLatitude, degrees, isText: true)
        }
        let whole = UInt32(degrees)
        for little in [true, false] {
            let order = { (bytes: [UInt8]) in little ? Array(bytes.reversed()) : bytes }
            add(
                order(Self.bytes(whole)) + order(Self.bytes(1)), .rational(little: little), place, isLatitude, degrees,
                isText: false)
            // Numbers with few bits are ignored, because they occur by chance.
            guard (degrees * 64).rounded() != degrees * 64 else { continue }
            for value in [signed, degrees, signed * .pi / 180] {
                let bytes = (0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> (56 - 8 * UInt64($0))) }
                add(order(bytes), .certain, place, isLatitude, degrees, isText: false)
                add(order(Array(bytes[..<6])), .paired, place, isLatitude, degrees, isText: false)
                add(order(Self.bytes(Float(value).bitPattern)), .paired, place, isLatitude, degrees, isText: false)
            }
            for scale in [65_536.0, 1e4, 1e5, 1e6, 1e7] {
                for value in [signed, degrees] {
                    guard abs(value * scale) < 2_147_483_000, abs(value * scale) > 70_000 else { continue }
                    for rounded in Set([(value * scale).rounded(), (value * scale).rounded(.towardZero)]) {
                        add(
                            order(Self.bytes(UInt32(bitPattern: Int32(rounded)))), .paired, place, isLatitude, degrees,
                            isText: false)
                    }
                }
            }
        }
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32($0))) }
    }

    /// Returns the first digits of a number as text, in several forms.
    private static func texts(_ degrees: Double) -> [(String, Kind)] {
        var result: [(String, Kind)] = []
        func kind(_ text: String) -> Kind { text.utf8.filter { (48...57).contains($0) }.count >= 6 ? .certain : .paired }
        // The patterns have three or four digits after the point. Both the truncated value and rounded values are used. The text
        // in the file may have more digits.
        for value in Set([degrees, degrees + 2e-7, (degrees * 1e4).rounded() / 1e4 + 1e-9, degrees - 2e-7]) {
            for digits in [4, 3] {
                let text = decimal(value, digits)
                if (value * 100).rounded() / 100 == value, digits == 3 { continue }
                result.append((text, digits == 4 && !text.hasSuffix("000") ? kind(text) : .paired))
                // In many languages, a comma is written before the fraction.
                if digits == 4, !text.hasSuffix("000") {
                    result.append((String(text.map { $0 == "." ? "," : $0 }), kind(text)))
                }
            }
        }
        // If the number has few digits, the pattern is the complete number.
        let short = decimal(degrees + 1e-9, 2)
        if short.hasSuffix("0"), !short.hasSuffix("00"), abs(degrees * 10 - (degrees * 10).rounded()) < 1e-6 {
            result.append((String(short.dropLast()), .paired))
        } else if abs(degrees * 100 - (degrees * 100).rounded()) < 1e-6, !short.hasSuffix("00") {
            result.append((short, .paired))
        }
        let whole = Int(degrees)
        for minutes in Set([(degrees - Double(whole)) * 60, (degrees - Double(whole)) * 60 + 1e-6]) where minutes < 60 {
            let (minute, seconds) = (Int(minutes), (minutes - Double(Int(minutes))) * 60)
            let text = decimal(minutes, 2)
            result.append(("\(whole),\(text)", kind("\(whole)\(text)0")))
            result.append((padded(whole, 2) + (minute < 10 ? "0" : "") + text, kind("\(whole)0\(text)")))
            for mark in ["deg ", " deg ", "° ", "°"] {
                result.append(("\(whole)\(mark)\(minute)'", mark == "°" ? .paired : .certain))
            }
            for mark in [", ", " ", ","] { result.append(("\(whole)/1\(mark)\(minute)/1", kind("\(whole)1\(minute)100"))) }
            for second in Set([Int(seconds), Int(seconds + 0.5)]) {
                result.append(("\(whole),\(minute),\(second)", .paired))
                for mark in " -:" { result.append(("\(whole)\(mark)\(minute)\(mark)\(second)", .paired)) }
                result.append((padded(whole, 2) + padded(minute, 2) + padded(second, 2), .paired))
            }
        }
        return result
    }

    /// Formats a number. The digits are truncated, and not rounded.
    private static func decimal(_ value: Double, _ digits: Int) -> String {
        let scale = pow(10, Double(digits))
        let number = Int((value * scale).rounded(.down))
        return "\(number / Int(scale))." + padded(number % Int(scale), digits)
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    // MARK: Search

    /// Returns the offset of the first known location in the first `limit` bytes of a piece of the file. The bytes after the
    /// limit are used only to confirm a location.
    mutating func firstPlace(in bytes: [UInt8], upTo limit: Int) -> Int? {
        guard !patterns.isEmpty else { return nil }
        if let found = search(bytes, limit) { return found }
        var start = 0
        while start < limit, let found = Self.indexOfStream(bytes, from: start), found < limit {
            if inflatedBytes < Self.maximumStreams {
                let inflated = Self.inflate(bytes, from: found)
                inflatedBytes += inflated.count
                if inflated.count > 32, search(inflated, inflated.count) != nil { return found }
            }
            start = found + 1
        }
        return nil
    }

    private func search(_ bytes: [UInt8], _ limit: Int) -> Int? {
        var recent: [(place: Int, isLatitude: Bool, position: Int)] = []
        return bytes.withUnsafeBufferPointer { bytes in
            listIndex.withUnsafeBufferPointer { listIndex in
                var next = 0
                let end = min(bytes.count - 1, limit + Self.reach)
                while next < end {
                    var index = next
                    next += 1
                    let list = listIndex[Int(bytes[index]) << 8 | Int(bytes[index + 1])]
                    if list == 0 { continue }
                    if bytes[index] == 0, bytes[index + 1] == 0 {
                        // A sparse file has millions of zeros. No pattern begins with so many zeros, so these zeros are skipped.
                        let behind = Self.endOfZeros(bytes, from: index)
                        if behind >= end { return nil }
                        index = max(index, behind - leadingZeros)
                        next = index + 1
                    }
                    for number in lists[Int(list) - 1] {
                        let pattern = patterns[number]
                        guard pattern.bytes.count <= bytes.count - index,
                            (2..<pattern.bytes.count).allSatisfy({ bytes[index + $0] == pattern.bytes[$0] })
                        else { continue }
                        if pattern.isText, Self.isDigit(bytes, before: index) { continue }
                        switch pattern.kind {
                        case .certain: if index < limit { return index }
                        case .rational(let little):
                            if index < limit, Self.completes(pattern.degrees, bytes, index + 8, little) { return index }
                        case .paired:
                            recent.removeAll { index - $0.position > Self.neighbourhood }
                            if let other = recent.first(where: {
                                $0.place == pattern.place && $0.isLatitude != pattern.isLatitude
                            }),
                                other.position < limit
                            {
                                return other.position
                            }
                            recent.append((pattern.place, pattern.isLatitude, index))
                        }
                    }
                }
                return nil
            }
        }
    }

    private static func endOfZeros(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let raw = UnsafeRawBufferPointer(bytes)
        var end = start
        while end + 8 <= raw.count, raw.loadUnaligned(fromByteOffset: end, as: UInt64.self) == 0 { end += 8 }
        while end < raw.count, raw[end] == 0 { end += 1 }
        return end
    }

    private static func isDigit(_ bytes: UnsafeBufferPointer<UInt8>, before index: Int) -> Bool {
        guard index > 0 else { return false }
        let last = bytes[index - 1] == 0 && index > 1 ? bytes[index - 2] : bytes[index - 1]
        return (48...57).contains(last) || last == 46
    }

    /// Returns whether the next two rationals in the file are the minutes and seconds of the angle.
    private static func completes(_ degrees: Double, _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ little: Bool) -> Bool {
        guard start + 16 <= bytes.count else { return false }
        func number(_ offset: Int) -> Double {
            (0..<4).reduce(0.0) { $0 * 256 + Double(bytes[start + offset + (little ? 3 - $1 : $1)]) }
        }
        guard number(4) > 0, number(12) > 0 else { return false }
        let (minutes, seconds) = (number(0) / number(4), number(8) / number(12))
        // The limit is smaller for small angles, because the rationals 0/1 0/1 also occur before other values.
        let limit = degrees < 1.0 / 60 ? 0.000_01 : 0.0003
        return minutes <= 60 && seconds <= 60
            && abs(degrees.rounded(.down) + minutes / 60 + seconds / 3600 - degrees) < limit
    }

    // MARK: Deflated streams

    private static func indexOfStream(_ bytes: [UInt8], from start: Int) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var place = start
            while place + 1 < bytes.count {
                guard let found = memchr(base + place, 0x78, bytes.count - 1 - place) else { return nil }
                place = UnsafeRawPointer(found) - base
                if [0x01, 0x5E, 0x9C, 0xDA].contains(bytes[place + 1]) { return place }
                place += 1
            }
            return nil
        }
    }

    /// Returns the bytes of a stream up to its end or to the first damaged byte.
    private static func inflate(_ bytes: [UInt8], from start: Int) -> [UInt8] {
        var stream = z_stream()
        guard czlib_inflate_start(&stream) == Z_OK else { return [] }
        defer { inflateEnd(&stream) }
        return bytes.withUnsafeBufferPointer { input in
            // The cast is safe, because zlib does not write to its input.
            stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress! + start)
            stream.avail_in = UInt32(input.count - start)
            var (result, status) = ([UInt8](), Z_OK)
            while status == Z_OK, result.count < maximumStream {
                let piece = [UInt8](unsafeUninitializedCapacity: 1 << 15) { output, count in
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(output.count)
                    status = CZlib.inflate(&stream, Z_SYNC_FLUSH)
                    count = output.count - Int(stream.avail_out)
                }
                if piece.isEmpty { break }
                result += piece
            }
            return result
        }
    }
}
