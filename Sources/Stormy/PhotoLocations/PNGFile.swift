/// A PNG file, which consists of chunks with checksums. If a chunk is changed, its checksum is updated.
///
/// Compressed text with a location is compressed again without the location, to the same length. If the chunk would be longer,
/// the chunk is replaced by an uncompressed text of spaces.
struct PNGFile {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// The types of chunks with pixels, with colours, or with the structure of the file.
    private static let pixels: Set<String> = [
        "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "acTL", "fcTL", "fdAT", "cHRM", "gAMA", "sBIT", "sRGB", "bKGD", "hIST", "pHYs",
        "sPLT",
        "tIME", "cICP", "mDCv", "cLLi",
    ]
    private static let maximumText = 32 << 20

    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    func clean() {
        var position = 8
        while let size = view.number(position, 4), !view.search.isFinished {
            let type = view.name(position + 4)
            let content = view.part(position + 8, size)
            if Self.pixels.contains(type) {
                view.recordPixels(position, 12 + size)
            } else if content.count > 0 {
                Chunk(view: view, start: position, content: content, size: size, type: type, block: block).clean()
            }
            position += 12 + size
            if type == "IEND" {
                if position < view.count { Trailer(view.from(position)).clean() }
                return
            }
        }
    }

    private struct Chunk {
        let view: ByteView
        let start: Int
        let content: ByteView
        let size: Int
        let type: String
        let block: String

        var name: String { "chunk \(type) of \(block)" }

        func clean() {
            content.recordBlock(name)
            switch type {
            case "eXIf": cleanExif()
            case "tEXt": cleanText(from: keywordEnd)
            case "zTXt": cleanDeflated(from: keywordEnd + 1)
            case "iTXt": cleanInternational()
            case "iCCP": cleanColours()
            case "caBX":
                let (view, start, size) = (view, start, size)
                ContentCredentials(content, "content credentials (C2PA) in \(name)").register {
                    PNGFile.blank(view, start, size, $0)
                }
            // This chunk contains deflated Exif after a zero and the size.
            case "zxIf": cleanDeflated(from: 5)
            default: OpaqueBytes(content, name).clean()
            }
            writeChecksum()
        }

        private func writeChecksum() {
            guard content.count == size, let block = content.touchedBlock else { return }
            PNGFile.writeChecksum(view, start, size, block)
        }

        private func cleanExif() {
            let start = content.has("Exif\0\0", at: 0) ? 6 : 0
            if var tiff = TIFFFile(content.from(start), "Exif in \(name)") { tiff.clean() }
            // The content is searched before the checksum is updated.
            OpaqueBytes(content, name).clean()
        }

        // MARK: Text

        /// The keyword of a text chunk, without the zero byte after the keyword.
        private var keyword: [UInt8] { Array((content.bytes(0, min(80, content.count)) ?? []).prefix { $0 != 0 }) }

        private var keywordEnd: Int { keyword.count + 1 }

        private func cleanText(from textStart: Int) {
            let (keyword, text) = (keyword, content.from(textStart))
            if isLocation(keyword, text) { return blank("\(name) (\(String(decoding: keyword, as: UTF8.self)))") }
            if keyword.starts(with: "Raw profile type ".utf8) {
                cleanProfile(text)
            } else if keyword.elementsEqual("XML:com.adobe.xmp".utf8) {
                XMPText(text, "XMP in \(name)").clean()
            } else {
                OpaqueBytes(text, name).cleanText()
                OpaqueBytes(text, name).clean()
            }
        }

        /// Returns whether a text chunk contains a location, and records the location. Some tools write each tag as a chunk, for
        /// example "exif:GPSLatitude" or "lat".
        private func isLocation(_ keyword: [UInt8], _ text: ByteView) -> Bool {
            let value = text.bytes(0, min(text.count, 200)) ?? []
            guard let places = KeyedText(key: keyword, text: value).location else { return false }
            for place in places { view.search.add(place) }
            return true
        }

        /// Cleans a profile that is stored as text: a name, the number of bytes, and lines of hexadecimal digits.
        private func cleanProfile(_ text: ByteView) {
            guard let start = Self.digits(of: text.bytes(0, min(200, text.count)) ?? []) else {
                return OpaqueBytes(text, name).clean()
            }
            EncodedBytes(hexadecimal: text, start..<text.count, "profile in \(name)").clean()
        }

        /// Returns the index of the first hexadecimal digit after the line with the number of bytes.
        private static func digits(of text: [UInt8]) -> Int? {
            let lines = text.split(separator: 10, omittingEmptySubsequences: false)
            guard
                let number = lines.firstIndex(where: { line in
                    let line = line.drop { $0 == 32 }
                    return !line.isEmpty && line.allSatisfy { (48...57).contains($0) }
                })
            else { return nil }
            return lines[...number].reduce(0) { $0 + $1.count + 1 }
        }

        private func cleanInternational() {
            // After the keyword, the chunk contains the compression flag, the method, the language, and the keyword in this
            // language.
            let start = keywordEnd
            guard let isDeflated = content.number(start, 1), let language = content.find([0], from: start + 2),
                let translated = content.find([0], from: language + 1)
            else { return OpaqueBytes(content, name).clean() }
            if isDeflated == 0 { cleanText(from: translated + 1) } else { cleanDeflated(from: translated + 1) }
        }

        /// Inflates the text, cleans it like plain text, and deflates it again.
        private func cleanDeflated(from textStart: Int) {
            let keyword = type == "zxIf" ? [] : keyword
            let label = keyword.isEmpty ? name : "\(name) (\(String(decoding: keyword, as: UTF8.self)))"
            let deflated = content.from(textStart).allBytes()
            guard !deflated.isEmpty else { return }
            guard let text = Deflate.inflate(deflated, limit: PNGFile.maximumText) else {
                // A stream that cannot be decompressed is removed, because some readers show the part that they can decompress.
                return blank("\(label) that cannot be decompressed")
            }
            let front = keyword + (type == "zxIf" ? [] : [0])
            let plain = LocationSearch(MemoryBytes(front + text), depth: view.search.depth + 1)
            let whole = ByteView(plain)
            let copy = Chunk(view: whole, start: 0, content: whole, size: whole.count, type: type, block: block)
            let isKeyword = type != "zxIf" && copy.isLocation(keyword, whole.from(front.count))
            if type == "zxIf" {
                copy.cleanExif()
            } else if !isKeyword {
                copy.cleanText(from: front.count)
            }
            for place in plain.places { view.search.add(place) }
            if let failure = plain.failure { view.search.fail(failure) }
            if isKeyword { return blank(label) }
            guard let block = plain.overwrites.all.first?.block else { return }
            guard let cleaned = whole.bytes(front.count, text.count), let stream = Deflate.deflate(cleaned, into: deflated.count)
            else {
                return blank("all of \(label)")
            }
            content.overwrite(textStart, with: stream, block)
        }

        /// Cleans the name of a colour profile, and the profile. The profile is not removed, because the picture needs the
        /// profile for its colours.
        private func cleanColours() {
            let (start, label) = (keywordEnd + 1, "colour profile in \(name)")
            OpaqueBytes(content.part(0, start), label).cleanText()
            let deflated = content.from(start).allBytes()
            guard let profile = Deflate.inflate(deflated, limit: PNGFile.maximumText) else { return }
            view.search.clean(nested: profile, as: label) { cleaned in
                if let stream = Deflate.deflate(cleaned, into: deflated.count) {
                    content.overwrite(start, with: stream, label)
                } else {
                    view.search.fail(.unproven(block: label))
                }
            }
        }

        private func blank(_ name: String) { PNGFile.blank(view, start, size, name) }
    }

    /// Replaces a chunk by a plain text chunk with spaces.
    private static func blank(_ view: ByteView, _ start: Int, _ size: Int, _ name: String) {
        let keyword = Array("-\0".utf8.prefix(size))
        view.overwrite(start + 4, with: Array("tEXt".utf8), name)
        view.fill(start + 8, size, with: 0x20, name)
        view.overwrite(start + 8, with: keyword, name)
        writeChecksum(view, start, size, name)
    }

    private static func writeChecksum(_ view: ByteView, _ start: Int, _ size: Int, _ name: String) {
        var (checksum, position) = (UInt32(0), start + 4)
        let end = start + 8 + size
        // A truncated chunk has no checksum.
        guard end + 4 <= view.count else { return }
        while position < end, let piece = view.bytes(position, min(1 << 20, end - position)) {
            checksum = Deflate.checksum(piece, after: checksum)
            position += piece.count
        }
        view.overwrite(end, with: (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (24 - 8 * UInt32($0))) }, name)
    }
}
