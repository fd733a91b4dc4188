import CZlib

/// Decompresses and compresses metadata with zlib (RFC 1950).
enum Deflate {
    /// - Parameter limit: The maximum number of returned bytes.
    /// - Returns: The decompressed bytes. `nil` if the bytes are not a complete stream, or if the result is larger than the
    ///   limit.
    static func inflate(_ bytes: [UInt8], limit: Int) -> [UInt8]? {
        var stream = z_stream()
        guard czlib_inflate_start(&stream) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var (input, result) = (bytes, [UInt8]())
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        return input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            while true {
                let status = buffer.withUnsafeMutableBufferPointer { output in
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(output.count)
                    return CZlib.inflate(&stream, Z_NO_FLUSH)
                }
                let count = buffer.count - Int(stream.avail_out)
                result += buffer[..<count]
                if status == Z_STREAM_END { return result }
                guard status == Z_OK, result.count <= limit, count > 0 || stream.avail_in > 0 else { return nil }
            }
        }
    }

    /// Returns the CRC-32 that PNG uses. The calculation continues from the CRC-32 of the previous bytes.
    static func checksum(_ bytes: [UInt8], after previous: UInt32 = 0) -> UInt32 {
        UInt32(crc32(UInt(previous), bytes, UInt32(bytes.count)))
    }
}

extension Deflate {
    /// Returns a compressed stream that has exactly the given length. If the compressed data is shorter than this length, empty
    /// blocks before the data fill the stream.
    ///
    /// - Returns: `nil` if the compressed data is longer than this length.
    static func deflate(_ bytes: [UInt8], into length: Int) -> [UInt8]? {
        var shortest: [UInt8]?
        for level in stride(from: Int32(9), through: 1, by: -1) {
            var size = compressBound(UInt(bytes.count))
            var stream = [UInt8](repeating: 0, count: Int(size))
            guard compress2(&stream, &size, bytes, UInt(bytes.count), level) == Z_OK else { return nil }
            stream.removeLast(stream.count - Int(size))
            guard stream.count <= length else { continue }
            if let blocks = emptyBlocks(in: length - stream.count) { return Array(stream[..<2]) + blocks + stream[2...] }
            shortest = shortest ?? stream
        }
        // Zeros are added after the end of the stream. Readers ignore these bytes, and some readers show a warning.
        return shortest.map { $0 + [UInt8](repeating: 0, count: length - $0.count) }
    }

    /// Returns empty blocks that together have this number of bytes. The blocks end at the end of a byte (RFC 1951 §3.2.4).
    ///
    /// - Returns: `nil` for 1, 2, 3, 4 and 8 bytes, because empty blocks cannot have these lengths.
    private static func emptyBlocks(in length: Int) -> [UInt8]? {
        // A block with fixed codes has 10 bits. The stored block after these blocks begins with 3 bits.
        let kinds: [Int: [UInt8]] = [5: [0], 6: [2, 0], 7: [2, 8, 0], 9: [2, 8, 32, 0, 0]]
        if length == 0 { return [] }
        guard let size = [5, 6, 7, 9].first(where: { first in length >= first && (length - first) % 5 == 0 }) else {
            // The lengths 13, 18, 23 and so on require a block of 6 bytes and a block of 7 bytes.
            guard length >= 13, let rest = emptyBlocks(in: length - 6) else { return nil }
            return kinds[6]! + [0, 0, 0xFF, 0xFF] + rest
        }
        let stored: [UInt8] = [0, 0, 0xFF, 0xFF]
        return (0..<(length - size) / 5).flatMap { _ in [0] + stored } + kinds[size]! + stored
    }

    /// Returns a stream of an exact length that inflates to spaces. The stream consists of a header, stored blocks, and a
    /// checksum.
    static func spaces(in length: Int) -> [UInt8]? {
        var (rest, result) = (length - 6, [UInt8]([0x78, 0x01]))
        guard rest > 5 else { return nil }
        var count = 0
        while rest > 0 {
            // The last block must have room for its header.
            var size = min(rest - 5, 0xFFFF)
            if rest - 5 - size > 0, rest - 5 - size <= 5 { size -= 10 }
            let isLast = rest - 5 - size == 0
            let (low, high) = (UInt8(size & 0xFF), UInt8(size >> 8))
            result += [isLast ? 1 : 0, low, high, ~low, ~high] + [UInt8](repeating: 0x20, count: size)
            (rest, count) = (rest - 5 - size, count + size)
        }
        let checksum = UInt32(adler32(1, [UInt8](repeating: 0x20, count: count), UInt32(count)))
        return result + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (24 - 8 * UInt32($0))) }
    }
}
