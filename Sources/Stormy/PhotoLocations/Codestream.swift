/// A codestream of JPEG 2000 (ISO 15444-1 Annex A). The codestream consists of marker segments for the picture and for each tile
/// part, and of coded data.
///
/// Comments are searched as text. Segments that a decoder does not need are also searched.
struct Codestream {
    /// The first marker, and the marker of the size of the picture.
    static let start: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51]
    /// The markers of segments that the decoder needs: sizes, coding, quantization, lists of lengths, packet headers.
    private static let coding: Set<Int> = [
        0x50, 0x51, 0x52, 0x53, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5C, 0x5D, 0x5E, 0x5F, 0x60, 0x61, 0x63,
    ]

    private let view: ByteView
    private let block: String

    /// - Parameter view: The bytes from the first marker to the end.
    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// Returns whether a codestream begins at a position. Checks the first two markers, and whether the size of the second
    /// segment is possible.
    static func isPlausible(at position: Int, in view: ByteView) -> Bool {
        guard view.has(start, at: position), let size = view.number(position + 4, 2) else { return false }
        return size >= 41 && (size - 38) % 3 == 0
    }

    /// - Returns: The end of the picture in the view, or the position at which a damaged picture becomes unreadable. The result
    ///   is 0 if this picture was read earlier.
    @discardableResult
    func clean() -> Int {
        guard view.search.begin("codestream", at: view.offset(0)) else { return 0 }
        var comments: [ByteView] = []
        var end = 0
        view.search.nest(block) {
            end = readSegments(&comments)
            // A long comment may be split into several segments at any letter, so the comments are searched as one text.
            let name = "comment of \(block)"
            OpaqueBytes(ByteView(joining: comments, in: view.search), name).cleanText()
            for comment in comments { OpaqueBytes(comment, name).clean() }
        }
        return end
    }

    /// - Parameter comments: The array to which the texts of the comments are added.
    private func readSegments(_ comments: inout [ByteView]) -> Int {
        var (position, tileEnd) = (2, view.count)
        view.recordPixels(0, 2)
        while let marker = view.number(position, 2), marker >> 8 == 0xFF, !view.search.isFinished {
            switch marker & 0xFF {
            case 0xD9:
                view.recordPixels(position, 2)
                return position + 2
            case 0x93:
                // Coded data cannot contain the last marker. If the size of a tile part is damaged, the part must not extend
                // beyond the last marker.
                let end = view.find([0xFF, 0xD9], from: position + 2, to: tileEnd) ?? tileEnd
                view.recordPixels(position, end - position)
                position = max(position + 2, end)
            case 0x30...0x3F: position += 2
            case let kind:
                guard let size = view.number(position + 2, 2), size >= 2 else { return position }
                if kind == 0x90, let length = view.number(position + 6, 4) {
                    // The length of a tile part is counted from this marker. If the length is 0, the tile part extends to the
                    // last marker.
                    tileEnd = length == 0 ? view.count : min(view.count, position + length)
                }
                clean(kind, view.part(position + 4, size - 2), &comments)
                if kind == 0x90 || Self.coding.contains(kind) { view.recordPixels(position, 2 + size) }
                position += 2 + size
            }
        }
        return min(position, view.count)
    }

    private func clean(_ kind: Int, _ content: ByteView, _ comments: inout [ByteView]) {
        guard kind != 0x90, !Self.coding.contains(kind), content.count > 0 else { return }
        let name =
            kind == 0x64 ? "comment of \(block)" : "marker segment FF\(String(kind, radix: 16, uppercase: true)) of \(block)"
        content.recordBlock(name)
        // If a comment is text in ISO 8859-1, its first two bytes are the number 1. If the comment consists of other bytes, which
        // may be UTF-8, the number is 0.
        let text = content.from(2)
        let isText = kind == 0x64 && (content.number(0, 2) != 0 || text.allBytes().allSatisfy { $0 >= 0x20 || 9...13 ~= $0 })
        if isText { comments.append(text) } else { OpaqueBytes(content, name).clean() }
    }
}
