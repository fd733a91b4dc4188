/// Bytes in a format without a parser, for example unknown blocks, trailers and makers' notes. Blocks of known formats inside
/// these bytes are found by their first bytes.
struct OpaqueBytes {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private enum Mark: CaseIterable, Sendable {
        case tiff, gps, xmp, iptc, photoshop, jpeg, codestream, film, matroska, telemetry, thermal, dashcam, message, place, text

        var patterns: [[UInt8]] {
            switch self {
            case .tiff: [[0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A]]
            case .gps: GPSDirectory.latitudes
            case .xmp: ["<x:xmpmeta", "<rdf:RDF"].map { Array($0.utf8) }.flatMap { [$0, Self.wide($0)] }
            case .iptc: IPTCBlock.locations.map { [0x1C, 2, $0] }
            case .photoshop: [Array("8BIM".utf8)]
            case .jpeg: [[0xFF, 0xD8, 0xFF]]
            case .codestream: [Codestream.start]
            case .film: [Array("ftyp".utf8)]
            case .matroska: [MatroskaFile.start]
            case .telemetry: ["DEVC\0", "GPS5l", "GPS9?"].map { Array($0.utf8) }
            case .thermal: [Array("FFF\0".utf8)]
            case .dashcam: [Array("freeGPS ".utf8)]
            case .message: [MediaSearch.message]
            // A sign and a digit, for example at the beginning of "+48.1373+011.5755/".
            case .place: "+-".utf8.flatMap { sign in (UInt8(48)...57).flatMap { digit in [[sign, digit], [sign, 0, digit]] } }
            case .text: CoordinateText.words.flatMap { [$0, Self.wide($0)] } + [[0xB0, 0], [0xBA, 0]]
            }
        }

        /// Returns the letters with a zero byte between each two letters. This pattern occurs in little-endian and in big-endian
        /// UTF-16.
        static func wide(_ text: [UInt8]) -> [UInt8] { Array(text.map { [$0] }.joined(separator: [0])) }
    }

    private static let marks = PatternTable(Mark.allCases.flatMap { mark in mark.patterns.map { ($0, mark) } })
    private static let texts = PatternTable([Mark.text, .place].flatMap { mark in mark.patterns.map { ($0, mark) } })

    /// Searches all bytes for known blocks.
    func clean() { scan(Self.marks) }

    /// Searches the bytes as a text, for words and numbers of a location.
    func cleanText() { scan(Self.texts, isText: true) }

    /// Cleans the bytes as a file if the format is known. If the format is unknown, all blocks of known formats inside the bytes
    /// are cleaned.
    func cleanAny() {
        if !Container.clean(view, block) { clean() }
    }

    private func scan(_ table: PatternTable<Mark>, isText: Bool = false) {
        view.search.nest(block) { scanPieces(table, isText) }
    }

    private func scanPieces(_ table: PatternTable<Mark>, _ isText: Bool) {
        var (position, next) = (0, 0)
        let step = 1 << 18
        while position < view.count, !view.search.isFinished {
            guard let piece = view.bytes(position, min(step + 32, view.count - position)) else { return }
            var index = max(0, next - position)
            while let (found, mark) = table.first(in: piece, from: index), found < step {
                index = found + 1
                if let end = clean(mark, at: position + found, isText), end > position + index {
                    next = end
                    index = end - position
                    if index >= piece.count { break }
                }
            }
            position += step
            if next > position { position = next }
        }
    }

    /// - Returns: The position after the block, at which the search continues. `nil` if the end of the block is not known.
    private func clean(_ mark: Mark, at position: Int, _ isText: Bool) -> Int? {
        switch mark {
        case .tiff:
            if var tiff = TIFFFile(view.from(position), "TIFF structure in \(block)"), tiff.isPlausible { tiff.clean() }
        case .gps: GPSDirectory.cleanUnlinked(at: position, in: view, block)
        case .xmp: return cleanXMP(position)
        case .iptc:
            if let size = IPTCBlock.looseDataset(at: position, in: view) {
                IPTCBlock(view.part(position, size), "IPTC in \(block)").clean()
            }
        case .photoshop:
            if view.has([4, 4], at: position + 4) || view.has([4, 0x22], at: position + 4)
                || view.has([4, 0x24], at: position + 4),
                let nameLength = view.number(position + 6, 1), let size = view.number(position + 6 + (nameLength + 2) / 2 * 2, 4)
            {
                let count = 10 + (nameLength + 2) / 2 * 2 + size
                if view.search.begin("8BIM", at: view.offset(position)) {
                    PhotoshopResources(view.part(position, count), "Photoshop resources in \(block)").clean()
                }
            }
        case .jpeg:
            guard let marker = view.number(position + 3, 1), marker >= 0xC0, marker != 0xFF else { return nil }
            let end = JPEGFile(view.from(position), "picture in \(block)").clean()
            return end > 0 ? position + end : nil
        case .codestream:
            guard Codestream.isPlausible(at: position, in: view) else { return nil }
            let end = Codestream(view.from(position), "picture in \(block)").clean()
            return end > 0 ? position + end : nil
        case .matroska: MatroskaFile(view.from(position), "film in \(block)").checkTexts()
        case .film:
            guard position >= 4, let size = view.number(position - 4, 4), (12...4_096).contains(size) else { return nil }
            let film = BoxFile(view.from(position - 4), "film in \(block)")
            film.clean()
            return film.knownEnd.map { position - 4 + $0 }
        case .telemetry:
            guard let size = view.number(position + 5, 1), let count = view.number(position + 6, 2),
                view.has("DEVC", at: position) ? view.has("DVID", at: position + 8) : GPMFBlock.isValue(at: position, in: view)
            else { return nil }
            GPMFBlock(view.part(position, 8 + size * count), "telemetry (GPMF) in \(block)").clean()
        case .thermal:
            guard FLIRFile.isPlausible(at: position, in: view) else { return nil }
            FLIRFile(view.from(position), "thermal data (FLIR) in \(block)").clean()
        case .dashcam:
            let size = position >= 4 ? view.number(position - 4, 4) ?? 0 : 0
            view.fill(position + 8, (16...0x10000).contains(size) ? size - 12 : 0x1000, "dashcam location in \(block)")
            view.overwrite(position + 4, with: Array("    ".utf8), "dashcam location in \(block)")
        case .message: MediaSearch(view, block).cleanMessage(position + MediaSearch.message.count)
        case .place: LooseText(view, block, isText: isText).clean(at: position, isPlace: true)
        case .text:
            LooseText(view, block, isText: isText).clean(at: position)
            TaggedNumbers(view, block).clean(at: position)
        }
        return nil
    }

    private func cleanXMP(_ position: Int) -> Int? {
        let isWide = view.number(position + 1, 1) == 0
        let isMeta = view.number(position + (isWide ? 2 : 1), 1) == Int(UInt8(ascii: "x"))
        let closing = isMeta ? "</x:xmpmeta" : "</rdf:RDF"
        let pattern = isWide ? Mark.wide(Array(closing.utf8)) : Array(closing.utf8)
        // In big-endian UTF-16, the letter is the second byte of a unit.
        let isBig =
            isWide && position > 0 && view.number(position - 1, 1) == 0 && view.number(position + pattern.count * 2, 1) != 0
        let limit = min(view.count, position + LocationSearch.maximumBlock)
        let end =
            view.find(pattern, from: position, to: limit).map { $0 + pattern.count + (isWide ? 2 : 1) }
            ?? min(limit, position + (1 << 20))
        guard view.search.begin("XMP", at: view.offset(position)) else { return nil }
        XMPText(view.part(position - (isBig ? 1 : 0), end - position), "XMP in \(block)").clean()
        return end
    }
}

/// Finds the first occurrence of any of many patterns. The first two bytes of a pattern exclude most positions quickly.
struct PatternTable<Value: Sendable>: Sendable {
    private var patterns: [(bytes: [UInt8], value: Value)] = []
    private var byPrefix: [[Int32]] = []
    private var isFirst = [UInt16](repeating: 0, count: 1 << 16)
    /// The table has one bit for each pair of bytes. The table is small enough for the processor's cache.
    private var bits = [UInt64](repeating: 0, count: 1 << 10)

    init(_ patterns: [([UInt8], Value)]) {
        for (bytes, value) in patterns where bytes.count >= 2 {
            let prefix = Int(bytes[0]) << 8 | Int(bytes[1])
            if isFirst[prefix] == 0 {
                byPrefix.append([])
                isFirst[prefix] = UInt16(byPrefix.count)
                bits[prefix >> 6] |= 1 << UInt64(prefix & 63)
            }
            byPrefix[Int(isFirst[prefix]) - 1].append(Int32(self.patterns.count))
            self.patterns.append((bytes, value))
        }
    }

    func first(in bytes: [UInt8], from start: Int) -> (index: Int, value: Value)? {
        bytes.withUnsafeBufferPointer { bytes in
            bits.withUnsafeBufferPointer { bits in
                var index = start
                let last = bytes.count - 1
                while index < last {
                    let prefix = Int(bytes[index]) << 8 | Int(bytes[index + 1])
                    if bits[prefix >> 6] >> UInt64(prefix & 63) & 1 != 0 {
                        for pattern in byPrefix[Int(isFirst[prefix]) - 1] {
                            let wanted = patterns[Int(pattern)].bytes
                            guard wanted.count <= bytes.count - index else { continue }
                            var equal = 2
                            while equal < wanted.count, bytes[index + equal] == wanted[equal] { equal += 1 }
                            if equal == wanted.count { return (index, patterns[Int(pattern)].value) }
                        }
                    }
                    index += 1
                }
                return nil
            }
        }
    }
}
