/// A directory (IFD) of a TIFF structure.
struct TIFFDirectory {
    struct Entry {
        var tag: Int
        /// The code of the value's type. A value with an unknown code has the size 1.
        var type: Int
        var count: Int
        /// The position of the entry.
        var position: Int
        /// The position of the value. The value is in the entry or in another part of the file. The position may be after the end
        /// of the file.
        var value: Int
        /// The number of bytes of the value.
        var size: Int
        /// `true` if the value is in the entry.
        var isInline: Bool
    }

    /// The size of an entry, and the size of the number of entries, which is stored before the entries.
    let (entrySize, countSize): (Int, Int)
    let entries: [Entry]
    /// The range of the directory, including the offset of the next directory after the entries.
    let range: Range<Int>
    /// The offset of the next directory. The offset is 0 in the last directory.
    let next: Int

    private static let sizes = [
        1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8,
    ]

    /// Reads the entries that are inside the view. Returns `nil` if the directory begins after the end of the view.
    ///
    /// - Parameters:
    ///   - shift: A number that is added to the offsets of values. In makers' notes, offsets may be counted from another position
    ///     than the beginning of the file.
    ///   - isBig: `true` for BigTIFF, whose numbers have 8 bytes.
    init?(_ view: ByteView, at offset: Int, little: Bool, isBig: Bool = false, shift: Int = 0) {
        (entrySize, countSize) = isBig ? (20, 8) : (12, 2)
        let width = isBig ? 8 : 4
        guard offset >= 0, let stored = view.number(offset, countSize, little: little) else { return nil }
        let first = offset + countSize
        let count = min(stored, (view.count - first) / entrySize, isBig ? 1 << 20 : 0xFFFF)
        guard count >= 0, count > 0 || stored == 0, let bytes = view.bytes(first, count * entrySize) else { return nil }
        func number(_ start: Int, _ length: Int) -> Int {
            var result: UInt64 = 0
            for index in 0..<length { result = result << 8 | UInt64(bytes[start + (little ? length - 1 - index : index)]) }
            return Int(truncatingIfNeeded: min(result, 1 << 62))
        }
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        for index in 0..<count {
            let start = index * entrySize
            let (type, items) = (number(start + 2, 2), number(start + 4, width))
            let (size, isTooLarge) = items.multipliedReportingOverflow(by: Self.sizes[type] ?? 1)
            let isInline = !isTooLarge && size <= width
            let value = isInline ? first + start + 4 + width : number(start + 4 + width, width) &+ shift
            entries.append(
                Entry(
                    tag: number(start, 2), type: type, count: items, position: first + start, value: value,
                    size: isTooLarge ? Int.max : size, isInline: isInline))
        }
        self.entries = entries
        let end = first + count * entrySize
        next = count == stored ? view.number(end, width, little: little) ?? 0 : 0
        range = offset..<min(end + width, view.count)
    }

    /// Returns the values of an entry as numbers without sign, up to a limit.
    static func numbers(of entry: Entry, in view: ByteView, little: Bool, limit: Int) -> [Int] {
        let size = [1: 1, 3: 2, 4: 4, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8, 18: 8][entry.type] ?? 4
        let count = min(entry.count, limit, max(0, view.count - entry.value) / size)
        guard count > 0, let bytes = view.bytes(entry.value, count * size) else { return [] }
        return (0..<count).map { index in
            var result: UInt64 = 0
            for place in 0..<size { result = result << 8 | UInt64(bytes[index * size + (little ? size - 1 - place : place)]) }
            return Int(min(result, 1 << 62))
        }
    }
}
