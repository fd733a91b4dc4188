/// The items of a HEIF picture (ISO 23008-12): Exif, XMP, and embedded JPEG.
struct HEIFItems {
    private struct Item {
        var type: String
        var contentType = ""
        var isEncoded = false
    }

    private let meta: Box
    private let film: Film
    private let block: String
    private var file: ByteView { film.view }

    init(_ meta: Box, of film: Film, _ block: String) { (self.meta, self.film, self.block) = (meta, film, block) }

    private static let pictures: Set<String> = [
        "hvc1", "lhv1", "av01", "grid", "iden", "iovl", "tmap", "avc1", "unci", "vvc1", "evc1", "mski", "rgan",
    ]

    func clean() {
        guard let info = meta.child("iinf") else { return }
        let items = readItems(info.content)
        for (number, part) in readLocations(items) {
            guard let item = items[number], part.count > 0 else { continue }
            clean(item, part)
        }
    }

    /// The bytes of each item of the picture.
    var parts: [ByteView] { readLocations([:]).map(\.1) }

    private func readItems(_ content: ByteView) -> [Int: Item] {
        guard let version = content.number(0, 1) else { return [:] }
        var items: [Int: Item] = [:]
        for entry in Box.all(in: content, from: version == 0 ? 6 : 8) where entry.type == "infe" {
            guard let version = entry.content.number(0, 1), version >= 2 else { continue }
            var reader = BoxReader(entry.content, at: 4)
            guard let number = reader.number(version == 2 ? 2 : 4), reader.number(2) != nil else { continue }
            var item = Item(type: entry.content.name(reader.position))
            _ = reader.number(4)
            if item.type == "mime", reader.text() != nil {
                item.contentType = reader.text() ?? ""
                item.isEncoded = !(reader.text() ?? "").isEmpty
            }
            items[number] = item
        }
        return items
    }

    /// Returns the bytes of each item, joined from the item's extents.
    private func readLocations(_ items: [Int: Item]) -> [(Int, ByteView)] {
        guard let content = meta.child("iloc")?.content else { return [] }
        let data = meta.child("idat")?.content
        var reader = BoxReader(content, at: 0)
        guard let version = reader.number(1), reader.number(3) != nil, let sizes = reader.number(1), let more = reader.number(1),
            let count = reader.number(version < 2 ? 2 : 4)
        else { return [] }
        let (offsetSize, lengthSize, baseSize, indexSize) = (sizes >> 4, sizes & 15, more >> 4, version == 0 ? 0 : more & 15)
        var (result, extents) = ([(Int, ByteView)](), 0)
        for _ in 0..<min(count, 100_000) {
            guard let number = reader.number(version < 2 ? 2 : 4), let method = version == 0 ? 0 : reader.number(2),
                reader.number(2) != nil, let base = reader.number(baseSize), let parts = reader.number(2)
            else { break }
            var ranges: [ByteView] = []
            for _ in 0..<parts {
                guard reader.number(indexSize) != nil, let offset = reader.number(offsetSize),
                    let length = reader.number(lengthSize)
                else { break }
                extents += 1
                var (start, isTooLarge) = base.addingReportingOverflow(offset)
                guard !isTooLarge, let source = method & 15 == 1 ? data : file else { continue }
                // The offsets in an appended picture may be counted from the beginning of the file.
                if method & 15 == 0, start >= file.count, start >= film.start { start -= film.start }
                ranges.append(length == 0 ? source.from(start) : source.part(start, length))
            }
            guard extents < 500_000 else {
                file.search.fail(.tooExpensive("items of \(block)"))
                break
            }
            if method & 15 > 1, let item = items[number], ["Exif", "mime"].contains(item.type) {
                file.search.fail(.unproven(block: "item \(item.type) of \(block)"))
            }
            result.append((number, ByteView(joining: ranges, in: file.search)))
        }
        return result
    }

    private func clean(_ item: Item, _ part: ByteView) {
        let name = "item \(item.type) of \(block)"
        switch item.type {
        case "Exif":
            part.recordBlock(name)
            let start = 4 + (part.number(0, 4) ?? 0)
            if var tiff = TIFFFile(part.from(start), "Exif of \(block)") { tiff.clean() }
            // The items are stored in the box with the pixels, which the search of all bytes leaves out. For this reason, this
            // method searches the items.
            OpaqueBytes(part, name).clean()
        case "mime" where item.isEncoded: cleanEncoded(part, name)
        case "mime":
            part.recordBlock(name)
            if !XMPText(part, "XMP of \(block)").clean() { OpaqueBytes(part, name).cleanAny() }
        case "jpeg": JPEGFile(part, "picture in \(block)").clean()
        case "j2k1":
            let end = Codestream(part, "picture in \(block)").clean()
            if end > 0 { OpaqueBytes(part.from(end), name).clean() }
        default: if !Self.pictures.contains(item.type), part.count < 1 << 22 { OpaqueBytes(part, name).cleanAny() }
        }
    }

    /// Cleans deflated XMP, and deflates it again without its location. If the new stream is longer than the old stream, the text
    /// is replaced by uncompressed spaces.
    private func cleanEncoded(_ part: ByteView, _ name: String) {
        guard let text = Deflate.inflate(part.allBytes(), limit: 32 << 20) else {
            return part.search.fail(.unproven(block: name))
        }
        part.search.clean(nested: text, as: name) { changed in
            if let stored = Deflate.deflate(changed, into: part.count) ?? Deflate.spaces(in: part.count) {
                part.overwrite(0, with: stored, name)
            } else {
                part.search.fail(.unproven(block: name))
            }
        }
    }
}
