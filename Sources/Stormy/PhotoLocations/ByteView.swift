import Glibc

/// A part of the file, or several joined parts of the file. For example, the parts are the two extents of a HEIC item, or several
/// segments with XMP.
struct ByteView {
    /// A range of bytes that are adjacent in the file.
    private struct Extent {
        /// The offset of the range in the view.
        var start: Int
        /// The offset of the range in the file.
        var offset: Int
        var count: Int
    }

    let search: LocationSearch
    private let extents: [Extent]
    let count: Int

    /// Creates a view of all bytes of the file.
    init(_ search: LocationSearch) { self.init(search, [0..<search.source.count]) }

    /// - Parameter ranges: Ranges of the file, in the order of the view.
    init(_ search: LocationSearch, _ ranges: [Range<Int>]) {
        self.search = search
        var (extents, count) = ([Extent](), 0)
        for range in ranges {
            let range = range.clamped(to: 0..<search.source.count)
            guard !range.isEmpty else { continue }
            if let last = extents.last, last.offset + last.count == range.lowerBound {
                extents[extents.count - 1].count += range.count
            } else {
                extents.append(Extent(start: count, offset: range.lowerBound, count: range.count))
            }
            count += range.count
        }
        (self.extents, self.count) = (extents, count)
    }

    /// Joins views in their order.
    init(joining views: [ByteView], in search: LocationSearch) {
        self.init(search, views.flatMap { $0.ranges(0..<$0.count) })
    }

    /// Returns a view of `count` bytes from an offset. Bytes after the end of the view are left out.
    func part(_ start: Int, _ count: Int) -> ByteView {
        guard start >= 0, count > 0, start < self.count else { return ByteView(search, []) }
        return ByteView(search, ranges(start..<start + min(count, self.count - start)))
    }

    func from(_ start: Int) -> ByteView { part(start, count - start) }

    /// Returns the ranges of the file that contain a range of the view.
    func ranges(_ range: Range<Int>) -> [Range<Int>] {
        if extents.count == 1, range.upperBound <= count, range.lowerBound >= 0 {
            return [extents[0].offset + range.lowerBound..<extents[0].offset + range.upperBound]
        }
        var (low, high) = (0, extents.count)
        while low < high {
            let middle = (low + high) / 2
            if extents[middle].start + extents[middle].count > range.lowerBound { high = middle } else { low = middle + 1 }
        }
        var result: [Range<Int>] = []
        while low < extents.count, extents[low].start < range.upperBound {
            let extent = extents[low]
            let common = range.clamped(to: extent.start..<extent.start + extent.count)
            if !common.isEmpty {
                let shift = extent.offset - extent.start
                result.append(common.lowerBound + shift..<common.upperBound + shift)
            }
            low += 1
        }
        return result
    }

    /// Returns the offset in the file for a position in the view. Returns -1 if the position is beyond the end of the view.
    func offset(_ position: Int) -> Int { ranges(position..<position + 1).first?.lowerBound ?? -1 }

    /// Returns bytes of the view. Returns `nil` if the range extends beyond the end of the view, or is larger than
    /// ``LocationSearch/maximumBlock``.
    func bytes(_ start: Int, _ length: Int, current: Bool = true) -> [UInt8]? {
        guard start >= 0, length >= 0, start <= count, length <= count - start, length <= LocationSearch.maximumBlock else {
            return nil
        }
        let ranges = ranges(start..<start + length)
        if ranges.count == 1 { return search.bytes(ranges[0], current: current) }
        var result: [UInt8] = []
        for range in ranges {
            guard let bytes = search.bytes(range, current: current) else { return nil }
            result += bytes
        }
        return result
    }

    /// Returns all bytes of the view, but at most ``LocationSearch/maximumBlock`` bytes.
    func allBytes(current: Bool = true) -> [UInt8] {
        bytes(0, min(count, LocationSearch.maximumBlock), current: current) ?? []
    }

    func has(_ expected: [UInt8], at start: Int) -> Bool { bytes(start, expected.count) == expected }

    func has(_ text: String, at start: Int) -> Bool { has(Array(text.utf8), at: start) }

    /// Returns a number without sign. Returns `nil` if the number is beyond the end of the view, or is too large for `Int`.
    func number(_ start: Int, _ length: Int, little: Bool = false) -> Int? {
        guard let bytes = bytes(start, length) else { return nil }
        var result = 0
        for byte in little ? bytes.reversed() : bytes {
            guard result < 1 << 55 else { return nil }
            result = result << 8 | Int(byte)
        }
        return result
    }

    /// Returns four bytes as the name of a box or chunk, in ISO 8859-1.
    func name(_ start: Int) -> String {
        String(String.UnicodeScalarView((bytes(start, 4) ?? []).map { Unicode.Scalar($0) }))
    }

    // MARK: Overwriting

    func overwrite(_ start: Int, with bytes: [UInt8], _ block: String) {
        guard start >= 0, start < count else { return }
        var done = 0
        for range in ranges(start..<min(start + bytes.count, count)) {
            search.overwrite(Overwrite(range: range, content: .bytes(Array(bytes[done..<done + range.count])), block: block))
            done += range.count
        }
    }

    func fill(_ start: Int, _ length: Int, with byte: UInt8 = 0, _ block: String) {
        guard start >= 0, start < count, length > 0 else { return }
        for range in ranges(start..<start + min(length, count - start)) {
            search.overwrite(Overwrite(range: range, content: .fill(byte), block: block))
        }
    }

    /// Overwrites the bytes of the view that are after all pixels in the view. The bytes before the end of the pixels are kept,
    /// because a trailer with a damaged size can include a picture.
    ///
    /// - Returns: `false` if bytes were kept because of pixels.
    @discardableResult
    func fillBehindPixels(_ block: String) -> Bool {
        var isComplete = true
        for range in ranges(0..<count) {
            let start = search.pixels.reduce(range.lowerBound) { $1.lowerBound < range.upperBound ? max($0, $1.upperBound) : $0 }
            if start > range.lowerBound { isComplete = false }
            guard start < range.upperBound else { continue }
            search.overwrite(Overwrite(range: start..<range.upperBound, content: .fill(0), block: block))
        }
        return isComplete
    }

    /// `true` if a byte of the view is overwritten.
    var isTouched: Bool { touchedBlock != nil }

    /// The name of the first block that is overwritten in the view.
    var touchedBlock: String? { ranges(0..<count).lazy.compactMap(search.overwrites.first(in:)).first?.block }

    func recordPixels(_ start: Int, _ length: Int) {
        guard start >= 0, start < count, length > 0 else { return }
        for range in ranges(start..<start + min(length, count - start)) { search.recordPixels(range) }
    }

    func recordBlock(_ name: String) { for range in ranges(0..<count) { search.recordBlock(range, name) } }

    // MARK: Searching

    /// Returns the offset of the first occurrence of a pattern after `start`. The method reads only the parts of the file that
    /// are needed.
    func find(_ pattern: [UInt8], from start: Int = 0, to end: Int = .max) -> Int? {
        let end = min(end, count)
        var position = max(0, start)
        let step = 1 << 20
        while position <= end - pattern.count {
            guard let piece = bytes(position, min(step, end - position)) else { return nil }
            if let found = piece.firstRange(of: pattern) { return position + found }
            if position + piece.count >= end { return nil }
            position += piece.count - (pattern.count - 1)
        }
        return nil
    }
}

extension Array where Element == UInt8 {
    /// Returns the index of the first occurrence of a pattern after the index `start`.
    func firstRange(of pattern: [UInt8], from start: Int = 0) -> Int? {
        withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let first = pattern.first else { return nil }
            var place = start
            while place + pattern.count <= bytes.count {
                guard let found = memchr(base + place, Int32(first), bytes.count - pattern.count + 1 - place) else { return nil }
                place = UnsafeRawPointer(found) - base
                if memcmp(found, pattern, pattern.count) == 0 { return place }
                place += 1
            }
            return nil
        }
    }
}
