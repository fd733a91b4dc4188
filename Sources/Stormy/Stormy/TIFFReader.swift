import Foundation

/// Reads numbers of a TIFF structure. The reader never reads outside the file.
struct TIFFReader {
    let data: Data
    let base: Int
    let isLittleEndian: Bool

    func number(at offset: Int, bytes: Int) -> Int? {
        let start = base + offset
        guard offset >= 0, start + bytes <= data.endIndex else { return nil }
        var value = 0
        for index in 0..<bytes {
            let byte = Int(data[start + (isLittleEndian ? bytes - 1 - index : index)])
            value = value << 8 | byte
        }
        return value
    }

    struct Entry {
        let tag: Int
        let count: Int
        let value: Int
    }

    func entries(at offset: Int) -> [Entry]? {
        guard let count = number(at: offset, bytes: 2), base + offset + 2 + 12 * count <= data.endIndex else { return nil }
        var entries: [Entry] = []
        for index in 0..<count {
            let start = offset + 2 + 12 * index
            guard let tag = number(at: start, bytes: 2), let count = number(at: start + 4, bytes: 4),
                let value = number(at: start + 8, bytes: 4)
            else { return nil }
            entries.append(Entry(tag: tag, count: count, value: value))
        }
        return entries
    }

    /// Returns the text of an entry with type ASCII, up to `limit` characters.
    func text(_ entry: Entry, limit: Int) -> String {
        // A text of up to four bytes is in the entry itself.
        let bytes = (0..<min(entry.count, limit)).compactMap { index in
            if entry.count > 4 { return number(at: entry.value + index, bytes: 1) }
            return entry.value >> (isLittleEndian ? 8 * index : 24 - 8 * index) & 0xFF
        }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8($0) }, as: UTF8.self)
    }

    /// Returns the offsets of the directories that an entry points to. The entry contains a single offset, or a list of offsets.
    func offsets(of entry: Entry) -> [Int] {
        guard entry.count > 1 else { return [entry.value] }
        return (0..<min(entry.count, 64)).compactMap { number(at: entry.value + 4 * $0, bytes: 4) }
    }
}
