/// A GIF file. A comment consists of sub-blocks of at most 255 bytes. The sub-blocks of a comment are searched as one text.
struct GIFFile {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// - Returns: `false` if the file is damaged. The search of all bytes then reads the bytes after the damage.
    func clean() -> Bool {
        guard let flags = view.number(10, 1) else { return false }
        var position = 13 + Self.colours(flags)
        while let kind = view.number(position, 1), !view.search.isFinished {
            switch kind {
            case 0x3B:
                Trailer(view.from(position + 1)).clean()
                return true
            case 0x2C:
                // The descriptor of the picture contains its position, its colours, and the size of a code.
                guard let flags = view.number(position + 9, 1), let end = subBlocks(from: position + 11 + Self.colours(flags)).end
                else { return false }
                view.recordPixels(position, end - position)
                position = end
            case 0x21:
                let (parts, end) = subBlocks(from: position + 2)
                let name = view.number(position + 1, 1) == 0xFE ? "comment of \(block)" : "extension of \(block)"
                let joined = ByteView(joining: parts.map { view.part($0.lowerBound, $0.count) }, in: view.search)
                joined.recordBlock(name)
                // XMP is not stored in sub-blocks, so the search of all bytes finds the XMP.
                if joined.count > 8, !joined.has("XMP DataXMP", at: 0) { OpaqueBytes(joined, name).clean() }
                guard let end else { return false }
                position = end
            default: return false
            }
        }
        return false
    }

    /// Returns the number of bytes of a colour table.
    private static func colours(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 6 << (flags & 7) }

    /// - Returns: The contents of the sub-blocks, and the position after the last sub-block. The position is `nil` if the file
    ///   ends before the last sub-block.
    private func subBlocks(from start: Int) -> (parts: [Range<Int>], end: Int?) {
        var (parts, position) = ([Range<Int>](), start)
        while let size = view.number(position, 1) {
            if size == 0 { return (parts, position + 1) }
            parts.append(position + 1..<position + 1 + size)
            position += 1 + size
        }
        return (parts, nil)
    }
}
