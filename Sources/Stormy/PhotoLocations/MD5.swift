import Glibc

/// The MD5 digest (RFC 1321). Extended XMP and Photoshop use this digest to detect changes.
struct MD5 {
    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]
    private static let sines: [UInt32] = (1...64).map { UInt32(abs(sin(Double($0))) * 4_294_967_296) }

    static func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = MD5()
        digest.finish(bytes, count: bytes.count)
        return digest.bytes
    }

    /// Returns the digest of a view of any size. The view is read piece by piece.
    ///
    /// - Parameter current: `true` to include the overwrites that were recorded before this call.
    /// - Returns: `nil` if the bytes cannot be read.
    static func digest(of view: ByteView, current: Bool = true) -> [UInt8]? {
        var (digest, position) = (MD5(), 0)
        while view.count - position > 1 << 20 {
            guard let piece = view.bytes(position, 1 << 20, current: current) else { return nil }
            digest.add(piece)
            position += piece.count
        }
        guard let rest = view.bytes(position, view.count - position, current: current) else { return nil }
        digest.finish(rest, count: view.count)
        return digest.bytes
    }

    private var (a0, b0, c0, d0): (UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476)

    private var bytes: [UInt8] {
        [a0, b0, c0, d0].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * UInt32($0))) } }
    }

    /// Adds the last bytes and the padding.
    ///
    /// - Parameter count: The total number of bytes.
    private mutating func finish(_ bytes: [UInt8], count: Int) {
        var message = bytes
        message.append(0x80)
        while message.count % 64 != 56 { message.append(0) }
        let bits = UInt64(count) * 8
        for index in 0..<8 { message.append(UInt8(truncatingIfNeeded: bits >> (8 * UInt64(index)))) }
        add(message)
    }

    /// - Parameter message: Bytes whose number is a multiple of 64.
    private mutating func add(_ message: [UInt8]) {
        var words = [UInt32](repeating: 0, count: 16)
        for start in stride(from: 0, to: message.count, by: 64) {
            for index in 0..<16 {
                let place = start + 4 * index
                words[index] =
                    UInt32(message[place]) | UInt32(message[place + 1]) << 8 | UInt32(message[place + 2]) << 16
                    | UInt32(message[place + 3]) << 24
            }
            var (a, b, c, d) = (a0, b0, c0, d0)
            for round in 0..<64 {
                let (mixed, word): (UInt32, Int)
                switch round / 16 {
                case 0: (mixed, word) = ((b & c) | (~b & d), round)
                case 1: (mixed, word) = ((d & b) | (~d & c), (5 * round + 1) % 16)
                case 2: (mixed, word) = (b ^ c ^ d, (3 * round + 5) % 16)
                default: (mixed, word) = (c ^ (b | ~d), 7 * round % 16)
                }
                let sum = a &+ mixed &+ Self.sines[round] &+ words[word]
                let shift = Self.shifts[round / 16 * 4 + round % 4]
                (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 - shift)))
            }
            (a0, b0, c0, d0) = (a0 &+ a, b0 &+ b, c0 &+ c, d0 &+ d)
        }
    }

    static func hexadecimal(_ digest: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }
}
