import Foundation

/// Bytes to be sent, read piece by piece so that a large body never lies in memory whole.
public struct Payload: Sendable, Equatable, Codable {
    enum Origin: Sendable, Equatable, Codable {
        case bytes(Data)
        case pattern
        case file(path: String)
    }

    let origin: Origin
    /// Where this payload begins inside its origin, in bytes.
    let offset: Int
    /// Number of bytes.
    public let count: Int

    /// Bytes held in memory.
    public static func bytes(_ data: Data) -> Payload {
        Payload(origin: .bytes(data), offset: 0, count: data.count)
    }

    /// The UTF-8 bytes of a text.
    public static func text(_ text: String) -> Payload { .bytes(Data(text.utf8)) }

    /// `count` bytes computed from their position: large bodies for nothing, in which no two neighbouring
    /// kilobytes are equal, so a splice at a wrong offset shows.
    public static func pattern(_ count: Int) -> Payload {
        Payload(origin: .pattern, offset: 0, count: count)
    }

    /// A file's bytes, read as they are sent. The file must keep at least `count` bytes until then.
    public static func file(path: String, count: Int) -> Payload {
        Payload(origin: .file(path: path), offset: 0, count: count)
    }

    /// A part of this payload; bounds beyond its end are clamped.
    public func slice(_ range: Range<Int>) -> Payload {
        let lower = min(max(range.lowerBound, 0), count)
        let upper = min(max(range.upperBound, lower), count)
        return Payload(origin: origin, offset: offset + lower, count: upper - lower)
    }

    /// Reads up to `length` bytes from `position`. Shorter only at the end, or where a file turned out shorter.
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

    /// The whole payload in memory: for comparing in tests.
    public var data: Data { read(at: 0, length: count) }

    private static func patternByte(at position: Int) -> UInt8 {
        // A multiplicative hash of position / 8 plus the position itself: cheap, and aperiodic for our sizes.
        let mixed = UInt64(position >> 3) &* 0x9E37_79B9_7F4A_7C15
        return UInt8(truncatingIfNeeded: (mixed >> 40) &+ UInt64(position & 7))
    }
}

extension Payload: ExpressibleByStringLiteral {
    /// `.body("hello")`.
    public init(stringLiteral value: String) { self = .text(value) }
}
