/// A RIFF file, for example WebP or AVI. The file consists of chunks with a name, a size, and a content of even length.
struct RIFFFile {
    private static let pixels: Set<String> = ["VP8 ", "VP8L", "VP8X", "ANIM", "ALPH", "movi", "data", "idx1"]

    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    func clean() {
        let size = view.number(4, 4, little: true) ?? 0
        let end = min(view.count, 8 + size + size % 2)
        clean(view.part(12, end - 12), depth: 0)
        if end < view.count { Trailer(view.from(end)).clean() }
    }

    private func clean(_ list: ByteView, depth: Int) {
        var position = 0
        while let size = list.number(position + 4, 4, little: true), !view.search.isFinished {
            let type = list.name(position)
            let content = list.part(position + 8, size)
            let name = "chunk \(type) of \(block)"
            content.recordBlock(name)
            switch type {
            case "EXIF":
                let start = content.has("Exif\0\0", at: 0) ? 6 : 0
                if var tiff = TIFFFile(content.from(start), "Exif in \(name)") {
                    tiff.clean()
                } else {
                    OpaqueBytes(content, name).clean()
                }
            case "XMP ", "_PMX": XMPText(content, "XMP in \(name)").clean()
            case "C2PA":
                let header = list.part(position, 4)
                ContentCredentials(content, "content credentials (C2PA) in \(name)").register { name in
                    header.overwrite(0, with: Array("JUNK".utf8), name)
                    content.fill(0, content.count, name)
                }
            case "LIST" where depth < 8 && !content.has("movi", at: 0): clean(content.from(4), depth: depth + 1)
            default:
                if type == "ANMF", depth < 8 {
                    // A frame consists of its position, its duration, and chunks.
                    list.recordPixels(position, 24)
                    clean(content.from(16), depth: depth + 1)
                } else if Self.pixels.contains(type) || type == "LIST" {
                    if type == "LIST" { MediaSearch(content, name).clean() }
                    list.recordPixels(position, 8 + size)
                } else if size > 0 {
                    OpaqueBytes(content, name).cleanAny()
                }
            }
            position += 8 + size + size % 2
        }
    }
}
