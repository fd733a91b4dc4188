/// A block of IPTC datasets (IPTC-IIM 4.2 §1.5). A dataset about a location becomes dataset 2:255, which has no meaning, with spaces.
/// Other datasets are searched as text, for example keywords and the caption.
struct IPTCBlock {
    private let view: ByteView
    private let block: String

    /// Content location, city, sub-location, province, country.
    static let locations: Set<UInt8> = [26, 27, 90, 92, 95, 100, 101]

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// - Returns: True if something was overwritten.
    @discardableResult
    func clean() -> Bool {
        let bytes = view.allBytes()
        var (position, datasets) = (0, 0)
        while position + 5 <= bytes.count, datasets < 200_000 {
            // There can be other bytes between datasets.
            guard bytes[position] == 0x1C else {
                position += 1
                continue
            }
            var (content, size) = (position + 5, Int(bytes[position + 3]) << 8 | Int(bytes[position + 4]))
            if size & 0x8000 != 0 {
                // The size of the size.
                let width = size & 0x7FFF
                guard width <= 4, content + width <= bytes.count else {
                    position += 1
                    continue
                }
                size = bytes[content..<content + width].reduce(0) { $0 << 8 | Int($1) }
                content += width
            }
            datasets += 1
            let kept = min(size, bytes.count - content)
            if bytes[position + 1] == 2, Self.locations.contains(bytes[position + 2]) {
                view.overwrite(position + 2, with: [255], block)
                view.fill(content, kept, with: 0x20, block)
            } else if bytes[position + 1] == 2, kept > 3 {
                OpaqueBytes(view.part(content, kept), block).cleanText()
            }
            position = content + kept
        }
        return view.isTouched
    }
}
