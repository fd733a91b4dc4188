/// The box `jbrd` of JPEG XL, which contains the data for restoring the original JPEG file. The box also contains the markers of
/// JPEG that JPEG XL does not support. These markers are compressed with Brotli. The markers may contain a location, for example
/// in IPTC.
struct JPEGReconstruction {
    private let bytes: [UInt8]
    private var position = 0

    /// - Parameter content: The content of the box, whose first bits are not compressed.
    init(_ content: ByteView) { bytes = content.bytes(0, min(content.count, 4_096)) ?? [] }

    /// `true` if the box has a comment or compressed markers other than the JFIF marker, or if the box cannot be read.
    var holdsUnknownMarkers: Bool {
        var copy = self
        return copy.readMarkers()
    }

    private mutating func readMarkers() -> Bool {
        // The first bit is set if the picture is gray. After this bit, the markers are stored in their order, up to the marker
        // for the end of the picture.
        guard bits(1) != nil else { return true }
        var markers: [Int] = []
        while let marker = bits(6) {
            if marker + 0xC0 == 0xD9 { return unknown(markers) }
            if (0xE0...0xEF).contains(marker + 0xC0) { markers.append(marker + 0xC0) }
            // The marker of a comment.
            if marker + 0xC0 == 0xFE { return true }
        }
        return true
    }

    /// Returns whether the kind of a marker is unknown. Each marker has a kind (0 unknown, 1 colour profile, 2 Exif, 3 XMP) and a
    /// size of 16 bits.
    private mutating func unknown(_ markers: [Int]) -> Bool {
        for marker in markers {
            guard let selector = bits(2) else { return true }
            let kind: Int
            switch selector {
            case 0, 1: kind = selector
            case 2: kind = 2 + (bits(1) ?? 0)
            default: return true
            }
            if bits(16) == nil || kind == 0 && marker != 0xE0 { return true }
        }
        return false
    }

    /// Reads a number. The lowest bit of the number is stored first.
    private mutating func bits(_ count: Int) -> Int? {
        guard position + count <= 8 * bytes.count else { return nil }
        var result = 0
        for index in 0..<count {
            let place = position + index
            result |= Int(bytes[place / 8] >> UInt8(place % 8) & 1) << index
        }
        position += count
        return result
    }
}
