import Foundation

/// Finds out whether a photo says where it was taken. Pure: bytes in, verdict out.
///
/// Looks at every TIFF structure in the file, wherever its container keeps it (JPEG's APP1, PNG's eXIf, WebP's EXIF,
/// HEIC's items, TIFF and raw files themselves), and for XMP's GPS properties. Errs on the side of "yes".
enum PhotoLocation {
    static func isPresent(in data: Data) -> Bool {
        if hasProperty(in: data) { return true }
        return starts(of: [0x49, 0x49, 0x2A, 0x00], in: data).contains { hasPosition(in: data, at: $0, isLittleEndian: true) }
            || starts(of: [0x4D, 0x4D, 0x00, 0x2A], in: data).contains { hasPosition(in: data, at: $0, isLittleEndian: false) }
    }

    /// XMP's properties, as text; and of a film that goes with the picture, its place.
    private static func hasProperty(in data: Data) -> Bool {
        if words.contains(where: { find(Array($0.utf8), in: data, from: 0) != nil }) { return true }
        // Four bytes stand anywhere by chance: only behind the mark of such a film.
        guard let film = find(Array("ftyp".utf8), in: data, from: 0) else { return false }
        return [[0xA9] + Array("xyz".utf8), Array("loci".utf8)].contains { find($0, in: data, from: film) != nil }
    }

    /// From one first byte to the next by libc: over all bytes of every photo, Foundation's search takes most of the time of
    /// queueing it.
    private static func find(_ pattern: [UInt8], in data: Data, from start: Int) -> Int? {
        data.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let first = pattern.first else { return nil }
            var place = start
            while place >= 0, place + pattern.count <= bytes.count {
                guard let found = memchr(base + place, Int32(first), bytes.count - pattern.count - place + 1) else { return nil }
                if memcmp(found, pattern, pattern.count) == 0 { return UnsafeRawPointer(found) - base }
                place = UnsafeRawPointer(found) - base + 1
            }
            return nil
        }
    }

    private static let words = [
        "GPSLatitude", "GPSLongitude", "GPSDestLatitude", "photoshop:City", "photoshop:State", "photoshop:Country",
        "Iptc4xmpCore:Location", "Iptc4xmpCore:CountryCode", "Iptc4xmpExt:Location", "com.apple.quicktime.location",
    ]

    private static func starts(of pattern: [UInt8], in data: Data) -> [Int] {
        var found: [Int] = []
        var from = 0
        // A file made of nothing but patterns must not cost more than this.
        while found.count < 10_000, let start = find(pattern, in: data, from: from) {
            found.append(start)
            from = start + 1
        }
        return found
    }

    /// Follows the first directories of a TIFF structure to a GPS directory (tag 0x8825) with a latitude (tag 2) or longitude (4).
    private static func hasPosition(in data: Data, at base: Int, isLittleEndian: Bool) -> Bool {
        let reader = TIFFReader(data: data, base: base, isLittleEndian: isLittleEndian)
        guard var directory = reader.number(at: 4, bytes: 4) else { return false }
        for _ in 0..<8 where directory > 0 {
            guard let entries = reader.entries(at: directory) else { return false }
            for entry in entries where entry.tag == 0x8825 {
                let tags = reader.entries(at: entry.value)?.map(\.tag) ?? []
                if tags.contains(2) || tags.contains(4) { return true }
            }
            directory = reader.number(at: directory + 2 + 12 * entries.count, bytes: 4) ?? 0
        }
        return false
    }
}

/// Numbers of a TIFF structure, never outside the file.
private struct TIFFReader {
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

    func entries(at offset: Int) -> [(tag: Int, value: Int)]? {
        guard let count = number(at: offset, bytes: 2), count <= 1_000 else { return nil }
        var entries: [(tag: Int, value: Int)] = []
        for index in 0..<count {
            let start = offset + 2 + 12 * index
            guard let tag = number(at: start, bytes: 2), let value = number(at: start + 8, bytes: 4) else { return nil }
            entries.append((tag, value))
        }
        return entries
    }
}
