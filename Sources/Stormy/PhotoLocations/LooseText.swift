/// Text in a block of an unknown format, in ASCII, UTF-8 or UTF-16. Locations that `CoordinateText` finds are overwritten.
struct LooseText {
    private let view: ByteView
    private let block: String
    /// The maximum number of letters of one found location.
    private static let longest = 8 << 20

    /// `true` if the format declares these bytes as text. In other bytes, a found text is used only with more evidence
    /// (``TextEvidence``).
    private let isText: Bool

    init(_ view: ByteView, _ block: String, isText: Bool) { (self.view, self.block, self.isText) = (view, block, isText) }

    /// Overwrites the coordinates that belong to the word at a position.
    ///
    /// - Parameter isPlace: `true` if the word is the sign at the beginning of an ISO 6709 location.
    func clean(at position: Int, isPlace: Bool = false) {
        let width = view.number(position + 1, 1) == 0 ? 2 : 1
        // Punctuation marks such as "+" are frequent in bytes that are not text. For this reason, the search first reads only a
        // few letters before and after a mark.
        let isMark = view.number(position, 1).map { $0 < 0x40 && $0 != 46 || (0x80..<0xC3).contains($0) } ?? true
        let before = min(position / width, isMark ? 40 : 120)
        // The lengths increase, because a list of places may be much longer than other texts with a location.
        for length in (isMark ? [100] : []) + [600, 6_000, 200_000, Self.longest] {
            let start = position - before * width
            guard let bytes = view.bytes(start, min((before + length) * width, view.count - start)) else { return }
            let letters = width == 1 ? bytes : stride(from: 0, to: bytes.count, by: width).map { bytes[$0] }
            let texts = width == 1 ? [letters] : Self.wideTexts(bytes, letters)
            let finds = texts.lazy.compactMap { CoordinateText($0).find(at: before, isPlace: isPlace) }
            guard let find = finds.first else { return }
            if find.end + 60 > letters.count, start + bytes.count < view.count, length < Self.longest { continue }
            let first = min(before, find.blanks.first?.lowerBound ?? before)
            guard isText || evidence(bytes, letters, start, width).supports(first..<find.end) else { return }
            for place in find.places { view.search.add(place) }
            for index in find.blanks.joined() { view.overwrite(start + index * width, with: [0x20], block) }
            for index in find.zeros { view.overwrite(start + index * width, with: [0x30], block) }
            return
        }
    }

    /// Returns the letters of a UTF-16 text, in several variants. Some variants leave out bytes that are not text, and the last
    /// letter of a text before these bytes.
    private static func wideTexts(_ bytes: [UInt8], _ letters: [UInt8]) -> [[UInt8]] {
        var (wide, alone) = (letters, letters)
        for index in letters.indices.dropLast() where bytes[2 * index + 1] != 0 {
            (wide[index], alone[index], alone[index + 1]) = (0, 0, 0)
        }
        return wide == letters ? [letters] : [letters, wide, alone]
    }

    private func evidence(_ bytes: [UInt8], _ letters: [UInt8], _ start: Int, _ width: Int) -> TextEvidence {
        var letters = letters
        if width == 2 {
            for index in letters.indices where 2 * index + 1 < bytes.count && bytes[2 * index + 1] != 0 { letters[index] = 1 }
        }
        return TextEvidence(letters: letters, isStart: start < width, isEnd: start + bytes.count == view.count)
    }
}
