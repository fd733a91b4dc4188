import Foundation

/// Detects whether a photo contains a location. The search has no side effects.
///
/// The search checks every TIFF structure in the file, in any container (JPEG's APP1, PNG's eXIf, WebP's EXIF, HEIC's items, TIFF
/// and raw files). The search also finds XMP's GPS properties. If a file cannot be read with certainty, the result is `true`.
package enum PhotoLocation {
    /// The number of bytes that are searched for every pattern before the next bytes are searched.
    static let window = 16 << 20
    /// The number of bytes by which two windows overlap. The overlap is larger than each pattern, because a pattern may begin in
    /// one window and end in the next window.
    private static let overlap = 64
    /// The maximum number of TIFF headers, and the maximum number of directory entries that are followed. Because of these
    /// limits, a crafted file cannot take much time. A file that exceeds a limit counts as a file with a location.
    private static let (maximumMarks, maximumEntries) = (10_000, 2_000_000)

    /// - Parameter leave: A closure that receives each range that was searched. After the call, the search reads only a few
    ///   numbers in this range again.
    package static func isPresent(in data: Data, leave: (Range<Int>) -> Void = { _ in }) -> Bool {
        var (film, seen, captions) = (false, Set<Int>(), 0)
        var (marks, entries) = (0, 0)
        for start in stride(from: 0, to: data.count, by: window) {
            let range = start..<min(start + window + overlap, data.count)
            if words.contains(where: { isAny(of: $0.value, in: data, range) }) { return true }
            // The file may contain a video with a location. The signature of a location has only four bytes and may occur by
            // chance. For this reason, the signature counts only after the beginning of a video.
            let behind = film ? start : findFilm(in: data, range)
            film = behind != nil
            if let behind, places.contains(where: { find($0, in: data, behind..<range.upperBound) != nil }) { return true }
            for (index, pair) in unreadBlocks.enumerated() {
                for (half, mark) in pair.enumerated() where !seen.contains(2 * index + half) {
                    if find(mark, in: data, range) != nil { seen.insert(2 * index + half) }
                }
                if seen.isSuperset(of: [2 * index, 2 * index + 1]) { return true }
            }
            captions += count(iptcMark, in: data, range.lowerBound..<min(range.upperBound, start + window + iptcMark.count - 1))
            if captions > 1 { return true }
            for (mark, isLittleEndian) in tiffMarks {
                var from = start
                while let base = find(mark, in: data, from..<range.upperBound) {
                    marks += 1
                    from = base + 1
                    if hasPosition(in: data, at: base, isLittleEndian: isLittleEndian, &entries) { return true }
                    if marks >= maximumMarks || entries >= maximumEntries { return true }
                }
            }
            leave(start..<min(start + window, data.count))
        }
        return false
    }

    /// Returns the position of the first box of a video file (ISO 14496-12 §4.3). The signature of the box alone is not
    /// sufficient, because these four bytes occur by chance in every second file of 2 GiB. The four bytes before the signature
    /// must be the size of a small box.
    private static func findFilm(in data: Data, _ range: Range<Int>) -> Int? {
        var from = range.lowerBound
        while let mark = find(filmMark, in: data, from..<range.upperBound) {
            if mark >= 4, data[mark - 4] == 0, data[mark - 3] == 0, data[mark - 2] < 16 { return mark }
            from = mark + 1
        }
        return nil
    }

    /// The signatures of blocks that are not read and that may contain a location: a phone's trailer (SEFT), and a camera's
    /// telemetry (GPMF). One signature of four bytes may occur by chance. If both signatures of a block are in the file, this is
    /// not a coincidence.
    private static let unreadBlocks = [["SEFH", "SEFT"], ["GPMF", "DEVC"]].map { $0.map { Array($0.utf8) } }
    /// The signature of an IPTC block in a Photoshop resource. The cleaner cleans only the first IPTC block of a file.
    private static let iptcMark = Array("8BIM".utf8) + [4, 4]

    private static func count(_ mark: [UInt8], in data: Data, _ range: Range<Int>) -> Int {
        var (count, from) = (0, range.lowerBound)
        while let found = find(mark, in: data, from..<range.upperBound) { (count, from) = (count + 1, found + mark.count) }
        return count
    }

    private static let filmMark = Array("ftyp".utf8)
    private static let places = [[0xA9] + Array("xyz".utf8), Array("loci".utf8)]
    private static let tiffMarks: [(mark: [UInt8], isLittleEndian: Bool)] = [
        ([0x49, 0x49, 0x2A, 0x00], true), ([0x4D, 0x4D, 0x00, 0x2A], false),
    ]

    /// Searches for the pattern's first byte with libc's `memchr`, because `memchr` is fast. The search functions of Foundation
    /// would take most of the time that is needed to queue a photo.
    private static func find(_ pattern: [UInt8], in data: Data, _ range: Range<Int>) -> Int? {
        find([pattern], in: data, range)
    }

    private static func isAny(of patterns: [[UInt8]], in data: Data, _ range: Range<Int>) -> Bool {
        find(patterns, in: data, range) != nil
    }

    /// - Parameter patterns: patterns that all begin with the same byte.
    private static func find(_ patterns: [[UInt8]], in data: Data, _ range: Range<Int>) -> Int? {
        data.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let first = patterns.first?.first else { return nil }
            var place = range.lowerBound
            while place < range.upperBound {
                guard let found = memchr(base + place, Int32(first), range.upperBound - place) else { return nil }
                place = UnsafeRawPointer(found) - base
                let left = range.upperBound - place
                if patterns.contains(where: { $0.count <= left && memcmp(found, $0, $0.count) == 0 }) { return place }
                place += 1
            }
            return nil
        }
    }

    /// The names of XMP properties and other text properties with a location, and of JPEG XL boxes with compressed metadata.
    /// Drones write one name with a spelling error. XMP may be UTF-16 (ISO 16684-1 §7.3). In UTF-16, a zero byte is before or
    /// after each letter of a name.
    private static let words: [UInt8: [[UInt8]]] = {
        let texts = [
            "GPSLatitude", "GPSLongitude", "GPSDest", "GpsLatitude", "GpsLongitude", "GpsLongtitude", ":Latitude", ":Longitude",
            ":latitude", ":longitude", "geo:lat", "geo:long", "photoshop:City", "photoshop:State", "photoshop:Country",
            "Iptc4xmpCore:Location", "Iptc4xmpCore:CountryCode", "Iptc4xmpExt:Location",
        ].map { Array($0.utf8) }
        let wide = texts.map { text in Array(text.map { [$0] }.joined(separator: [0])) }
        let chunks = ["tEXt", "zTXt", "iTXt"].flatMap { ["\($0)Location\0", "\($0)GPS"] }
        let others = (["com.apple.quicktime.location", "brobExif", "brobxml ", "FLIR\0"] + chunks).map { Array($0.utf8) }
        return Dictionary(grouping: texts + wide + others) { $0[0] }
    }()

    /// Returns whether a TIFF structure has a GPS directory (tag 0x8825) with a latitude (tag 2) or a longitude (tag 4). The
    /// search reads the first directories, and all directories to which these directories point.
    ///
    /// - Parameter count: the number of entries that were followed.
    private static func hasPosition(in data: Data, at base: Int, isLittleEndian: Bool, _ count: inout Int) -> Bool {
        let reader = TIFFReader(data: data, base: base, isLittleEndian: isLittleEndian)
        guard let first = reader.number(at: 4, bytes: 4) else { return false }
        var (waiting, looked) = ([first], Set<Int>())
        while let directory = waiting.popLast() {
            guard directory > 0, looked.count < 64, looked.insert(directory).inserted, let entries = reader.entries(at: directory)
            else { continue }
            count += entries.count
            for entry in entries {
                switch entry.tag {
                case 0x8825:
                    let tags = reader.entries(at: entry.value)?.map(\.tag) ?? []
                    count += tags.count
                    if tags.contains(2) || tags.contains(4) { return true }
                // These tags point to the directory of Exif, and to the directories of other pictures in the file.
                case 0x8769, 0x014A: waiting += reader.offsets(of: entry)
                default: break
                }
            }
            waiting.append(reader.number(at: directory + 2 + 12 * entries.count, bytes: 4) ?? 0)
        }
        return false
    }
}
