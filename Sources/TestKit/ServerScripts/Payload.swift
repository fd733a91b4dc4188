import Foundation

/// Bytes to send. The bytes are read in pieces, so that a large body is never completely in memory.
public struct Payload: Sendable, Equatable, Codable {
    enum Origin: Sendable, Equatable, Codable {
        case bytes(Data)
        case pattern
        case file(path: String)
    }

    let origin: Origin
    /// The offset in bytes. If this payload is a part of a file or pattern, the offset is the position where the part begins.
    let offset: Int
    /// The number of bytes.
    public let count: Int

    /// Returns a payload of bytes in memory.
    public static func bytes(_ data: Data) -> Payload {
        Payload(origin: .bytes(data), offset: 0, count: data.count)
    }

    /// Returns the UTF-8 bytes of a text.
    public static func text(_ text: String) -> Payload { .bytes(Data(text.utf8)) }

    /// Returns `count` bytes that are computed from their positions. Large bodies therefore need no memory. Neighboring kilobytes
    /// are never equal, so that a part at a wrong offset is detected.
    public static func pattern(_ count: Int) -> Payload {
        Payload(origin: .pattern, offset: 0, count: count)
    }

    /// Returns the bytes of a file. The bytes are read when they are sent. Until then, the file must keep at least `count` bytes.
    public static func file(path: String, count: Int) -> Payload {
        Payload(origin: .file(path: path), offset: 0, count: count)
    }

    /// Returns a part of this payload. If a bound is beyond the end, the end is used.
    public func slice(_ range: Range<Int>) -> Payload {
        let lower = min(max(range.lowerBound, 0), count)
        let upper = min(max(range.upperBound, lower), count)
        return Payload(origin: origin, offset: offset + lower, count: upper - lower)
    }

    /// Reads up to `length` bytes from `position`. Returns fewer bytes only at the end, or if a file is shorter than announced.
    public func read(at position: Int, length: Int) -> Data {
        let part = slice(position..<(position + max(length, 0)))
        guard part.count > 0 else { return Data() }
        switch origin {
        case .bytes(let data):
            let start = data.startIndex + part.offset
            return data.subdata(in: start..<(start + part.count))
        case .pattern:
            return Data(
                [UInt8](unsafeUninitializedCapacity: part.count) { buffer, filled in
                    for index in 0..<part.count { buffer[index] = Self.patternByte(at: part.offset + index) }
                    filled = part.count
                })
        case .file(let path):
            guard let handle = FileHandle(forReadingAtPath: path) else { return Data() }
            defer { try? handle.close() }
            guard (try? handle.seek(toOffset: UInt64(part.offset))) != nil else { return Data() }
            return (try? handle.read(upToCount: part.count)) ?? Data()
        }
    }

    /// The complete payload in memory, for comparisons in tests.
    public var data: Data { read(at: 0, length: count) }

    private static func patternByte(at position: Int) -> UInt8 {
        // The byte is a multiplicative hash of position / 8, plus the position itself. The hash is fast to compute, and aperiodic
        // for the sizes in tests.
        let mixed = UInt64(position >> 3) &* 0x9E37_79B9_7F4A_7C15
        return UInt8(truncatingIfNeeded: (mixed >> 40) &+ UInt64(position & 7))
    }
}

extension Payload: ExpressibleByStringLiteral {
    /// Creates a payload for `.body("hello")`.
    public init(stringLiteral value: String) { self = .text(value) }
}
