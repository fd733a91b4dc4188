/// The reason why bytes are not a valid region table.
package enum RegionTableError: Error, Equatable, Sendable {
    /// The first bytes are not the beginning of a supported version of the table.
    case unknownFormat
    /// The bytes at this offset are not valid in this format, or the table ends too early.
    case damaged(offset: Int)
}

/// Reads numbers and texts of a region table in their order. Every access is checked, so that no byte after the last byte is
/// read.
///
/// Source of the format: `Packaging/warning_regions.py`.
struct RegionTableReader {
    private let bytes: [UInt8]
    private(set) var offset: Int
    private let end: Int

    /// - Parameter range: a part of `bytes`.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        (self.bytes, offset, end) = (bytes, range.lowerBound, min(range.upperBound, bytes.count))
    }

    var isAtEnd: Bool { offset == end }

    mutating func byte() throws(RegionTableError) -> UInt8 {
        guard offset < end else { throw .damaged(offset: offset) }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Reads a number of four bytes, little-endian.
    mutating func fixed() throws(RegionTableError) -> UInt32 {
        var value: UInt32 = 0
        for shift in stride(from: UInt32(0), to: 32, by: 8) { value |= UInt32(try byte()) << shift }
        return value
    }

    /// Reads an LEB128 number of at most 32 bits.
    mutating func varint() throws(RegionTableError) -> Int {
        let start = offset
        var (value, shift) = (0, 0)
        while true {
            let part = try byte()
            value |= Int(part & 0x7F) << shift
            if part & 0x80 == 0 { break }
            shift += 7
            guard shift < 35 else { throw .damaged(offset: start) }
        }
        guard value <= Int(UInt32.max) else { throw .damaged(offset: start) }
        return value
    }

    /// Reads a zigzag-coded varint.
    mutating func signed() throws(RegionTableError) -> Int {
        let value = try varint()
        return value & 1 == 0 ? value >> 1 : -(value >> 1) - 1
    }

    mutating func text() throws(RegionTableError) -> String {
        let (start, count) = (offset, Int(try byte()))
        guard count <= end - offset, let text = String(validating: bytes[offset..<offset + count], as: UTF8.self)
        else { throw .damaged(offset: start) }
        offset += count
        return text
    }

    /// Reads the number of elements that follow. Each element takes at least `size` bytes.
    mutating func count(ofSize size: Int, atLeast least: Int = 0) throws(RegionTableError) -> Int {
        let start = offset
        let count = try varint()
        guard count >= least, count <= (end - offset) / size else { throw .damaged(offset: start) }
        return count
    }

    /// Returns the range of the next bytes, and moves the reader to the end of this range.
    mutating func skip(_ count: Int) throws(RegionTableError) -> Range<Int> {
        guard count <= end - offset else { throw .damaged(offset: offset) }
        defer { offset += count }
        return offset..<offset + count
    }

    /// Reads the corners of one ring, and passes each corner to `visit` in thousandths of a degree. The corners are not stored.
    ///
    /// - Throws: ``RegionTableError/damaged(offset:)`` if a corner is outside of `box`.
    mutating func ring(in box: RegionBox, _ visit: (_ east: Int, _ north: Int) -> Void) throws(RegionTableError) {
        let corners = try count(ofSize: 2, atLeast: 3)
        var (east, north) = (0, 0)
        for _ in 0..<corners {
            let start = offset
            east += try signed()
            north += try signed()
            guard box.contains(east, north) else { throw .damaged(offset: start) }
            visit(east, north)
        }
    }
}

/// The frame of a region, in thousandths of a degree. The longitudes of a frame across the antimeridian are above 180 degrees.
struct RegionBox: Sendable, Equatable {
    static let stepsPerDegree = 1000.0

    let west, south, east, north: Int

    /// `nil` if the frame is not on Earth.
    init?(west: Int32, south: Int32, east: Int32, north: Int32) {
        guard (-180_000...180_000).contains(west), (west...(west + 360_000)).contains(east), (-90_000...90_000).contains(south),
            (south...90_000).contains(north)
        else { return nil }
        (self.west, self.south, self.east, self.north) = (Int(west), Int(south), Int(east), Int(north))
    }

    func contains(_ east: Int, _ north: Int) -> Bool {
        (west...self.east).contains(east) && (south...self.north).contains(north)
    }

    /// Returns the longitude of a place if the place is in the frame or at most `margin` outside of the frame. The result is in
    /// degrees, and may differ from the place's longitude by 360. `nil` if the place is further away.
    ///
    /// - Parameter margin: The number of degrees from west to east, and the number of degrees from south to north.
    func longitude(of place: Coordinates, margin: (east: Double, north: Double)) -> Double? {
        let steps = Self.stepsPerDegree
        guard place.latitude >= Double(south) / steps - margin.north, place.latitude <= Double(north) / steps + margin.north
        else { return nil }
        return [place.longitude, place.longitude + 360, place.longitude - 360].first {
            $0 >= Double(west) / steps - margin.east && $0 <= Double(east) / steps + margin.east
        }
    }
}
