/// A TIFF structure: a TIFF file, a camera's raw file, or the Exif block of another container.
///
/// All TIFF directories are read before bytes are overwritten, so that pixels and TIFF directories are never overwritten.
struct TIFFFile {
    private enum Kind { case image, gps, other }

    private let view: ByteView
    private let block: String
    private let little: Bool
    private let isBig: Bool
    private let firstDirectory: Int
    private let (isGPS, isPanasonic): (Bool, Bool)
    /// `true` if the version is the version of a known format. The version confirms the header, because other bytes may begin
    /// like a header by chance.
    let hasKnownVersion: Bool
    private var make = ""

    /// The ranges of TIFF directories, headers and pixels. If a value overlaps one of these ranges, the bytes in the range are
    /// not overwritten.
    private var protected = ProtectedRanges()
    /// The GPS directories, with the entries that point to them.
    private var gps: [(directory: Int, pointer: TIFFDirectory.Entry?)] = []
    /// The values that are read after all TIFF directories are known.
    private var values: [TIFFDirectory.Entry] = []
    private(set) var pixels: [Range<Int>] = []

    /// The maximum number of TIFF directories, and the maximum number of their entries, that are visited.
    private static let (maximumDirectories, maximumEntries) = (300_000, 4_000_000)
    private static let pointers: Set<Int> = [0x014A, 0x8769, 0xA005, 0x8290, 0xFE00, 0x0190, 0xF000]
    /// The tags of XMP, IPTC, Photoshop, AFCP, maker notes, DNG's private data, Panasonic's embedded JPEG, GeoTIFF, GDAL,
    /// satellite coefficients (RPC), content credentials, an embedded raw file with its MD5, and Kodak's GPS text.
    private static let interesting: Set<Int> = [
        0x02BC, 0x83BB, 0x8649, 0x8568, 0x927C, 0xC634, 0x002E, 0x0127, 33550, 33920, 33922, 34264, 34735, 34736, 34737, 42112,
        37724, 50844, 52545, 0xC68C, 0xC71D, 0x0402, 0x0120,
    ]

    /// - Parameters:
    ///   - view: The bytes from the header to the end.
    ///   - isGPS: `true` if the first TIFF directory is a GPS directory, as in Canon's CMT4.
    /// - Returns: `nil` if there is no header. The version can be any number, because readers of Exif ignore the version.
    init?(_ view: ByteView, _ block: String, isGPS: Bool = false) {
        guard let mark = view.bytes(0, 4), mark.starts(with: [0x49, 0x49]) || mark.starts(with: [0x4D, 0x4D]) else { return nil }
        little = mark[0] == 0x49
        let version = little ? Int(mark[2]) | Int(mark[3]) << 8 : Int(mark[2]) << 8 | Int(mark[3])
        // These numbers are the versions of TIFF, BigTIFF, Olympus, Panasonic, and the DNG files of some tools.
        hasKnownVersion = [42, 43, 0x4F52, 0x5352, 0x55].contains(version)
        isBig = version == 43
        guard let first = isBig ? view.number(8, 8, little: little) : view.number(4, 4, little: little) else { return nil }
        (firstDirectory, self.view, self.block, self.isGPS, isPanasonic) = (first, view, block, isGPS, version == 0x55)
    }

    /// `true` if the first TIFF directory is plausible. This check is necessary because a header has only four bytes, which other
    /// data may contain by chance.
    var isPlausible: Bool {
        guard firstDirectory >= 8, let directory = TIFFDirectory(view, at: firstDirectory, little: little, isBig: isBig) else {
            return false
        }
        return (1..<1_000).contains(directory.entries.count)
            && directory.entries.prefix(8).allSatisfy { (1...18).contains($0.type) && $0.tag > 0 || $0.tag == 0 }
    }

    /// - Parameter again: `true` to clean a structure again that was cleaned before with fewer bytes.
    /// - Returns: `false` if the structure was cleaned before.
    @discardableResult
    mutating func clean(again: Bool = false) -> Bool {
        guard view.search.begin("TIFF", at: view.offset(0)) || again else { return false }
        view.search.recordHeader(at: view.offset(0))
        protected.add(0..<(isBig ? 16 : 8))
        visit()
        protected.prepare()
        view.search.nest(block) { cleanValues() }
        return true
    }

    /// Cleans the first TIFF directory as a maker note. A CR3 file stores the maker note as a separate structure.
    func cleanMakerNote(of make: String) {
        MakerNote(
            tiff: view, at: firstDirectory, size: view.count - firstDirectory, little: little, make: make,
            block: "maker note of \(block)"
        ).clean()
    }

    private func cleanValues() {
        for entry in values { clean(entry) }
        for (directory, pointer) in gps { clean(gps: directory, pointer: pointer) }
        for range in pixels {
            let part = view.part(range.lowerBound, range.count)
            if part.has([0xFF, 0xD8, 0xFF], at: 0) { JPEGFile(part, "picture in \(block)").clean() }
        }
    }

    // MARK: Directories

    private mutating func visit() {
        var waiting: [(offset: Int, kind: Kind, pointer: TIFFDirectory.Entry?)] = [(firstDirectory, isGPS ? .gps : .image, nil)]
        var (known, entries): (Set<Int>, Int) = ([], 0)
        var (strips, directories): ([Range<Int>], [Int]) = ([], [])
        defer { protectPixels(strips, directories) }
        while let (offset, kind, pointer) = waiting.popLast(), !view.search.isFinished {
            if kind == .gps {
                gps.append((offset, pointer))
                if GPSDirectory.isPlausible(at: offset, in: view, little: little, isBig: isBig) { directories.append(offset) }
                continue
            }
            guard offset > 0, known.insert(offset).inserted,
                let directory = TIFFDirectory(view, at: offset, little: little, isBig: isBig)
            else { continue }
            entries += directory.entries.count
            guard known.count <= Self.maximumDirectories, entries <= Self.maximumEntries else {
                return view.search.fail(.tooExpensive(block))
            }
            // A damaged pointer may lead to bytes that are not a TIFF directory.
            if directory.entries.count(where: { (1...18).contains($0.type) }) * 2 >= directory.entries.count {
                protected.add(directory.range)
                directories.append(offset)
            }
            // The order in which TIFF directories are visited has no effect on the result.
            waiting.append((directory.next, .image, nil))
            for entry in directory.entries {
                if entry.tag == 0x8825 {
                    for target in offsets(entry) { waiting.append((target, .gps, entry)) }
                } else if Self.pointers.contains(entry.tag), [4, 9, 13, 16, 18].contains(entry.type) {
                    for target in offsets(entry) { waiting.append((target, .other, nil)) }
                } else if Self.interesting.contains(entry.tag) || Self.isText(entry) {
                    values.append(entry)
                }
                if entry.tag == 0x010F, let bytes = view.bytes(entry.value, min(entry.size, 32)) {
                    make = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
            }
            let pixels = TIFFPixels(directory: directory, view: view, little: little, isPanasonic: isPanasonic)
            for range in pixels.tables { protected.add(range) }
            strips += pixels.ranges
        }
    }

    private func offsets(_ entry: TIFFDirectory.Entry) -> [Int] {
        TIFFDirectory.numbers(of: entry, in: view, little: little, limit: 10_000)
    }

    /// Protects the strips, the tiles, and the JPEG pictures. If a strip contains a TIFF directory, the stored size of the strip
    /// is wrong.
    private mutating func protectPixels(_ strips: [Range<Int>], _ directories: [Int]) {
        let directories = directories.sorted()
        var next = 0
        for strip in strips.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            while next < directories.count, directories[next] <= strip.lowerBound { next += 1 }
            let range = strip.lowerBound..<min(strip.upperBound, next < directories.count ? directories[next] : .max)
            protected.add(range)
            // The last marker shows where a codestream ends, so the bytes after this marker are also searched.
            if Codestream.isPlausible(at: range.lowerBound, in: view) {
                Codestream(view.part(range.lowerBound, range.count), "picture in \(block)").clean()
            }
            if !view.has([0xFF, 0xD8, 0xFF], at: range.lowerBound) { view.recordPixels(range.lowerBound, range.count) }
            if pixels.count < 10_000 { pixels.append(range) }
        }
    }

    // MARK: Values

    private func clean(_ entry: TIFFDirectory.Entry) {
        let part = view.part(entry.value, entry.size)
        guard part.count > 0 else { return }
        switch entry.tag {
        case 0x02BC: XMPText(part, "XMP of \(block)").clean()
        case 0x83BB, 0x8568: cleanIPTC(part)
        case 0x8649: PhotoshopResources(part, "Photoshop resources of \(block)").clean()
        case 0x927C:
            MakerNote(tiff: view, at: entry.value, size: part.count, little: little, make: make, block: "maker note of \(block)")
                .clean()
        case 0xC634: cleanPrivateData(part, entry)
        case 0x002E, 0x0127: if part.has([0xFF, 0xD8, 0xFF], at: 0) { JPEGFile(part, "picture in \(block)").clean() }
        case 33550, 33920, 33922, 34264, 34736, 50844: blank(entry, "GeoTIFF of \(block)")
        case 34735:
            // The value is replaced by an empty list of keys (version 1, revision 1.0).
            blank(entry, "GeoTIFF of \(block)")
            if part.count >= 8, !protected.overlaps(entry.value..<entry.value + 8) {
                let one: [UInt8] = little ? [1, 0] : [0, 1]
                part.overwrite(0, with: one + one, "GeoTIFF of \(block)")
            }
        case 34737:
            for range in protected.gaps(entry.value..<entry.value + max(0, part.count - 1)) {
                view.fill(range.lowerBound, range.count, with: 0x20, "GeoTIFF of \(block)")
            }
        case 52545:
            let (view, protected, name) = (view, protected, "content credentials of \(block)")
            let range = entry.value..<entry.value + part.count
            let remove = { for gap in protected.gaps(range) { view.fill(gap.lowerBound, gap.count, name) } }
            view.search.recordSignature(name, remove: remove)
        case 0xC68C:
            let digest = values.first { $0.tag == 0xC71D && $0.size == 16 }.map { view.part($0.value, 16) }
            EmbeddedRaw(part, digest: digest, "embedded raw file of \(block)").clean()
        case 37724: LayerPixels(part).register()
        case 0x0402: if entry.type == 2 { blank(entry, "GPS text of \(block)") }
        case 0x0120: OpaqueBytes(part, "camera block of \(block)").clean()
        default: if Self.isText(entry) { OpaqueBytes(part, "text of \(block)").cleanText() }
        }
    }

    /// Returns whether an entry is a text. Texts are entries in ASCII or UTF-8, the user comment, and the texts of Windows.
    private static func isText(_ entry: TIFFDirectory.Entry) -> Bool {
        entry.size > 5 && ([2, 129].contains(entry.type) || entry.tag == 0x9286 || (0x9C9B...0x9C9F).contains(entry.tag))
    }

    /// Cleans IPTC. Some writers reverse the order of the bytes in each group of four.
    private func cleanIPTC(_ part: ByteView) {
        IPTCBlock(part, "IPTC of \(block)").clean()
        if part.has([0x1C], at: 3), !part.has([0x1C], at: 0) {
            view.search.fail(.unproven(block: "IPTC of \(block)"))
        }
    }

    /// Cleans Adobe's private data, which contains the camera's maker note with its original offset.
    private func cleanPrivateData(_ part: ByteView, _ entry: TIFFDirectory.Entry) {
        OpaqueBytes(part, "private data of \(block)").clean()
        guard part.has("Adobe\0", at: 0) else { return }
        var position = 6
        while let size = part.number(position + 4, 4), position < part.count {
            let content = position + 8
            if part.has("MakN", at: position), size > 6, let origin = part.number(content + 2, 4, little: false) {
                let start = entry.value + content + 6
                MakerNote(
                    tiff: view, at: start, size: min(size - 6, part.count - content - 6), little: part.has("II", at: content),
                    make: make,
                    block: "maker note of \(block)", shift: start - origin
                ).clean()
            }
            position = content + size + size % 2
        }
    }

    private func blank(_ entry: TIFFDirectory.Entry, _ name: String) {
        guard entry.value >= 0, entry.value < view.count else { return }
        for range in protected.gaps(entry.value..<entry.value + min(entry.size, view.count - entry.value)) {
            view.fill(range.lowerBound, range.count, name)
        }
    }

    // MARK: GPS

    private func clean(gps offset: Int, pointer: TIFFDirectory.Entry?) {
        let name = "GPS directory of \(block)"
        let directory = offset > 0 ? TIFFDirectory(view, at: offset, little: little, isBig: isBig) : nil
        let isSeparate = directory.map { !protected.overlaps($0.range) } ?? false
        if !isSeparate, let pointer, offset > 0 {
            // If the pointer leads to data that is not a GPS directory, this data is kept. The tag of the entry is replaced by a
            // tag without a meaning.
            view.overwrite(pointer.position, with: little ? [0x26, 0x88] : [0x88, 0x26], name)
            view.fill(pointer.position + directoryWidth.header, directoryWidth.value, name)
        }
        // The GPS directory is not changed if it has no entries, or if its only entry is the version (GPSVersionID).
        guard let directory, !directory.entries.isEmpty else { return }
        if directory.entries.count == 1, directory.entries[0].tag == 0, directory.next == 0 { return }
        GPSDirectory(directory, view, little: little).recordPlaces()
        // If the GPS directory has no version entry, its values may belong to another TIFF directory. The values are then kept.
        guard isSeparate || directory.entries.contains(where: { $0.tag == 0 && $0.type == 1 && $0.count == 4 }) else { return }
        for entry in directory.entries where !entry.isInline && entry.value >= 0 && entry.value < view.count {
            // Texts may be long. The values of other entries are short numbers, even if a damaged entry has a larger size.
            let limit = [0x1B, 0x1C].contains(entry.tag) ? 1 << 16 : 256
            let range = entry.value..<entry.value + min(entry.size, limit, view.count - entry.value)
            for gap in protected.gaps(range) { view.fill(gap.lowerBound, gap.count, name) }
        }
        guard isSeparate else { return }
        let version = directory.entries.first { $0.tag == 0 && $0.isInline && $0.count == 4 }
        var content = view.bytes(directory.range.lowerBound, directory.range.count) ?? []
        let kept = version.flatMap { view.bytes($0.position, directory.entrySize) }
        content = [UInt8](repeating: 0, count: content.count)
        content[little ? 0 : directory.countSize - 1] = 1
        content.replaceSubrange(directory.countSize..<directory.countSize + directory.entrySize, with: kept ?? newVersion)
        view.overwrite(directory.range.lowerBound, with: content, name)
    }

    private var directoryWidth: (header: Int, value: Int) { isBig ? (12, 8) : (8, 4) }

    /// An entry GPSVersionID with the value 2.3.0.0.
    private var newVersion: [UInt8] {
        let width = directoryWidth.value
        let count = [UInt8](repeating: 0, count: width - 1)
        return (little ? [0, 0, 1, 0, 4] + count : [0, 0, 0, 1] + count + [4]) + [2, 3, 0, 0]
            + [UInt8](repeating: 0, count: width - 4)
    }
}
