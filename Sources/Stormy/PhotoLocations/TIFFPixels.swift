/// The strips, tiles and pictures of a TIFF directory. The bytes of these pictures are not metadata.
struct TIFFPixels {
    let directory: TIFFDirectory
    let view: ByteView
    let little: Bool
    /// `true` if the file is a raw file of Panasonic. In such a file, another entry has the offset of the sensor data.
    let isPanasonic: Bool

    private static let (strips, tiles, picture, camera, fujifilm) =
        ((0x0111, 0x0117), (0x0144, 0x0145), (0x0201, 0x0202), (0x0120, 0x0121), (0xF007, 0xF008))
    private static let pairs = [strips, tiles, picture, camera, fujifilm]

    private func entry(_ tag: Int) -> TIFFDirectory.Entry? { directory.entries.first { $0.tag == tag } }

    private func numbers(_ tag: Int, limit: Int = 1 << 20) -> [Int] {
        entry(tag).map { TIFFDirectory.numbers(of: $0, in: view, little: little, limit: limit) } ?? []
    }

    /// The tags of values without which a decoder shows other pixels: bits per sample, transfer function, colour map, meaning and
    /// format and limits of samples, JPEG tables, coefficients and subsampling and reference of YCbCr, and colour profile.
    private static let decoding: Set<Int> = [
        0x0102, 0x012D, 0x0140, 0x0152, 0x0153, 0x0154, 0x0155, 0x015B, 0x0211, 0x0212, 0x0214, 0x8773,
    ]

    /// The ranges outside the TIFF directory that a decoder reads: lists with offsets and sizes, and values that describe the
    /// pixels.
    var tables: [Range<Int>] {
        let lists = Self.pairs.flatMap { start, length in
            guard let starts = entry(start), let lengths = entry(length) else { return [TIFFDirectory.Entry]() }
            return [starts, lengths]
        }
        let values = directory.entries.filter { Self.decoding.contains($0.tag) }
        return (lists + values).filter { !$0.isInline && (0..<view.count).contains($0.value) }.map {
            $0.value..<min($0.value + min($0.size, 1 << 24), view.count)
        }
    }

    /// The pixels as ranges of the view.
    var ranges: [Range<Int>] {
        var result: [Range<Int>] = []
        for (start, length) in Self.pairs {
            let (starts, lengths) = (numbers(start), numbers(length))
            for (index, number) in starts.enumerated() {
                let size =
                    [Self.strips, Self.tiles].contains { $0.0 == start } ? size(lengths, index, start) : lengths[safe: index]
                add(number, size ?? 0, to: &result)
            }
        }
        if isPanasonic, let start = numbers(0x0118, limit: 1).first {
            let stored = numbers(Self.strips.1, limit: 1).first ?? 0
            add(start, stored > 0 ? stored : view.count, to: &result)
        }
        return result
    }

    private func add(_ start: Int, _ size: Int, to ranges: inout [Range<Int>]) {
        guard start > 0, start < view.count, size > 0 else { return }
        ranges.append(start..<start + min(size, view.count - start))
    }

    /// Returns the size of a strip or tile. Even if the stored size is wrong, metadata after the pixels must be found, and pixels
    /// must not be treated as metadata.
    private func size(_ lengths: [Int], _ index: Int, _ start: Int) -> Int? {
        let stored = lengths[safe: index] ?? 0
        guard let full = fullSize(start) else { return stored }
        if numbers(0x0103, limit: 1).first == 1 { return stored < full / 8 ? full : min(stored, full) }
        return min(stored, 2 * full + (1 << 16))
    }

    /// Returns the uncompressed size of a strip or tile. `nil` if the TIFF directory does not contain the width or the height.
    private func fullSize(_ start: Int) -> Int? {
        let isTile = start == Self.tiles.0
        guard let width = numbers(isTile ? 0x0142 : 0x0100, limit: 1).first,
            let height = numbers(isTile ? 0x0143 : 0x0101, limit: 1).first, (1..<1 << 20).contains(width),
            (1..<1 << 20).contains(height)
        else { return nil }
        let rows = isTile ? height : min(height, numbers(0x0116, limit: 1).first ?? height)
        let samples = numbers(0x0115, limit: 1).first ?? 1
        let bits = numbers(0x0102, limit: 64)
        let perPixel = bits.count == samples ? bits.reduce(0, +) : (bits.first ?? 1) * samples
        guard rows > 0, (1...1_024).contains(perPixel) else { return nil }
        return (width * perPixel + 7) / 8 * rows
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
