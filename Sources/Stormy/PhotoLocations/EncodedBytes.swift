/// The alphabet of base64.
enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values: [UInt8] = {
        var result = [UInt8](repeating: 0xFF, count: 256)
        for (value, digit) in digits.enumerated() { result[Int(digit)] = UInt8(value) }
        return result
    }()

    static func isLetter(_ byte: UInt8) -> Bool { values[Int(byte)] != 0xFF || byte == UInt8(ascii: "=") }
    static func value(_ byte: UInt8) -> UInt8? { values[Int(byte)] == 0xFF ? nil : values[Int(byte)] }
    static func digit(_ value: UInt8) -> UInt8 { digits[Int(value & 63)] }
}

/// Bytes that are encoded as base64 or hexadecimal digits in a text. The decoded bytes are searched like a file, and the digits
/// are overwritten.
struct EncodedBytes {
    private let view: ByteView
    private let block: String
    /// The offset of each digit in the view.
    private var positions: [Int] = []
    private var values: [UInt8] = []
    /// The number of bits of one digit.
    private let width: Int

    /// Reads base64 in a range of the view.
    init(_ view: ByteView, _ range: Range<Int>, _ block: String) {
        self.init(view, block, width: 6)
        var isEntity = false
        for (index, byte) in (view.bytes(range.lowerBound, range.count) ?? []).enumerated() {
            // In an attribute, "&#xA;" is an encoded line break.
            if byte == UInt8(ascii: "&") { isEntity = true }
            if !isEntity, let value = Base64.value(byte) { append(value, at: range.lowerBound + index) }
            if byte == UInt8(ascii: ";") { isEntity = false }
        }
    }

    /// Reads hexadecimal digits in a range of the view. Letters that are not hexadecimal digits are skipped.
    init(hexadecimal view: ByteView, _ range: Range<Int>, _ block: String) {
        self.init(view, block, width: 4)
        for (index, byte) in (view.bytes(range.lowerBound, range.count) ?? []).enumerated() {
            if let value = Self.hexadecimal(byte) { append(value, at: range.lowerBound + index) }
        }
    }

    /// Returns the value of a hexadecimal digit. `nil` for other letters.
    static func hexadecimal(_ letter: UInt8) -> UInt8? {
        switch letter {
        case 48...57: letter - 48
        case 65...70: letter - 55
        case 97...102: letter - 87
        default: nil
        }
    }

    private init(_ view: ByteView, _ block: String, width: Int) { (self.view, self.block, self.width) = (view, block, width) }

    private mutating func append(_ value: UInt8, at position: Int) {
        values.append(value)
        positions.append(position)
    }

    /// The decoded bytes.
    var decoded: [UInt8] {
        var (result, bits, count) = ([UInt8](), 0, 0)
        result.reserveCapacity(values.count)
        for value in values {
            bits = (bits << width | Int(value)) & 0xFFFF
            count += width
            if count >= 8 {
                count -= 8
                result.append(UInt8(bits >> count & 0xFF))
            }
        }
        return result
    }

    func clean() {
        view.search.clean(nested: decoded, as: block) { changed in write(changed) }
    }

    /// Writes the digits of the bytes that have changed.
    private func write(_ bytes: [UInt8]) {
        var (bits, count, digit) = (0, 0, 0)
        for byte in bytes {
            bits = (bits << 8 | Int(byte)) & 0xFFFF
            count += 8
            while count >= width, digit < values.count {
                count -= width
                set(digit, UInt8(bits >> count & (1 << width - 1)))
                digit += 1
            }
        }
        if count > 0, digit < values.count { set(digit, UInt8(bits << (width - count) & (1 << width - 1))) }
    }

    private func set(_ digit: Int, _ value: UInt8) {
        guard values[digit] != value else { return }
        let letter = width == 6 ? Base64.digit(value) : value < 10 ? 48 + value : 87 + value
        view.overwrite(positions[digit], with: [letter], block)
    }
}

extension LocationSearch {
    /// Searches decoded bytes like a file.
    ///
    /// - Parameter write: A closure that receives the changed bytes. The closure is called only if bytes were overwritten. The
    ///   number of bytes does not change.
    /// - Returns: `true` if bytes were overwritten.
    @discardableResult
    func clean(nested bytes: [UInt8], as block: String, write: ([UInt8]) -> Void) -> Bool {
        guard let inner = search(nested: MemoryBytes(bytes), as: block) else { return false }
        guard let changed = inner.bytes(0..<bytes.count) else {
            fail(.tooExpensive(block))
            return false
        }
        write(changed)
        return true
    }

    /// Searches bytes that are encoded in this file.
    ///
    /// - Returns: The search, or `nil` if no byte is overwritten.
    func search(nested source: PhotoBytes, as block: String) -> LocationSearch? {
        guard depth < Self.maximumDepth else {
            fail(.tooExpensive(block))
            return nil
        }
        let inner = LocationSearch(source, depth: depth + 1)
        inner.cleanFile(block)
        for place in inner.places { add(place) }
        if let failure = inner.failure { fail(failure == .unreadable ? .unproven(block: block) : failure) }
        return inner.overwrites.all.isEmpty ? nil : inner
    }
}
