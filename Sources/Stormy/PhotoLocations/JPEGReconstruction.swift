/// The box `jbrd` of JPEG XL: what is needed to make the old JPEG file again. Markers that JPEG XL does not know are compressed in it
/// with Brotli and can hold a location, for example IPTC.
struct JPEGReconstruction {
    private let bytes: [UInt8]
    private var position = 0

    /// - Parameter content: The content of the box. The first bits are not compressed.
    init(_ content: ByteView) { bytes = content.bytes(0, min(content.count, 4_096)) ?? [] }

    /// True if the box has compressed markers other than the one of JFIF, or cannot be read.
    var holdsUnknownMarkers: Bool {
        var copy = self
        return copy.readMarkers()
    }

    private mutating func readMarkers() -> Bool {
        // Whether the picture is gray; then the markers in order, up to the end of the picture.
        guard bits(1) != nil else { return true }
        var markers: [Int] = []
        while let marker = bits(6) {
            if marker + 0xC0 == 0xD9 { return unknown(markers) }
            if (0xE0...0xEF).contains(marker + 0xC0) { markers.append(marker + 0xC0) }
            // A comment.
            if marker + 0xC0 == 0xFE { return true }
        }
        return true
    }

    /// The kinds of the markers, each with a size of 16 bits: 0 is unknown, 1 a colour profile, 2 Exif, 3 XMP.
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

    /// A number whose lowest bit is first.
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
