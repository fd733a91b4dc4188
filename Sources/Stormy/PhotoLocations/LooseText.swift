/// Text of no format in the bytes of a block, in ASCII, UTF-8 or UTF-16. Overwrites what `CoordinateText` finds.
struct LooseText {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// Overwrites what belongs to the word at a position.
    ///
    /// - Parameter isPlace: The word is the sign of a place of ISO 6709.
    func clean(at position: Int, isPlace: Bool = false) {
        let width = view.number(position + 1, 1) == 0 ? 2 : 1
        // A list of places can be longer than any other find.
        for length in [600, 200_000, 8 << 20] {
            let before = min(position / width, 120)
            let start = position - before * width
            guard let bytes = view.bytes(start, min((before + length) * width, view.count - start)) else { return }
            let letters = stride(from: 0, to: bytes.count, by: width).map { bytes[$0] }
            let text = CoordinateText(letters)
            guard let find = isPlace ? text.place(at: before) : text.find(at: before) else { return }
            if find.end + 60 > letters.count, start + bytes.count < view.count, length < 8 << 20 { continue }
            for place in find.places { view.search.note(place) }
            for index in find.blanks.joined() { view.overwrite(start + index * width, with: [0x20], block) }
            for index in find.zeros { view.overwrite(start + index * width, with: [0x30], block) }
            return
        }
    }
}
