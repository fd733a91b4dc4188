/// A list of Photoshop's image resources. Each resource has a signature, a number, a name, a size, and the content.
struct PhotoshopResources {
    private let view: ByteView
    private let block: String

    private static let marks: Set<String> = ["8BIM", "AgHg", "DCSR", "PHUT", "MeSa"]

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    func clean() {
        view.recordBlock(block)
        var (position, digests, texts): (Int, [Int], [ByteView]) = (0, [], [])
        while position + 12 <= view.count, !view.search.isFinished {
            guard Self.marks.contains(view.name(position)), let number = view.number(position + 4, 2),
                let nameLength = view.number(position + 6, 1)
            else {
                position += 1
                continue
            }
            let sizeAt = position + 6 + (nameLength + 2) / 2 * 2
            guard let size = view.number(sizeAt, 4) else { break }
            let content = view.part(sizeAt + 4, size)
            switch number {
            case 0x0404:
                if IPTCBlock(content, "IPTC of \(block)").clean() { texts.append(content) }
            case 0x0422, 0x0423:
                if var tiff = TIFFFile(content, "Exif of \(block)") { tiff.clean() }
            case 0x0424: XMPText(content, "XMP of \(block)").clean()
            case 0x0425: if content.count == 16 { digests.append(sizeAt + 4) }
            case 0x040C, 0x0409: JPEGFile(content.from(28), "thumbnail of \(block)").clean()
            default: OpaqueBytes(content, block).clean()
            }
            position = sizeAt + 4 + (size + 1) / 2 * 2
        }
        // The digest is updated, because Photoshop ignores IPTC or XMP if the stored MD5 differs from the MD5 of the IPTC data.
        for text in texts {
            let old = MD5.digest(of: text.allBytes(current: false))
            for digest in digests where view.has(old, at: digest) {
                view.overwrite(digest, with: MD5.digest(of: text.allBytes()), "IPTC of \(block)")
            }
        }
    }
}
