/// A block of IPTC datasets (IPTC-IIM 4.2 §1.5). A dataset about a location is replaced by dataset 2:255, which has no meaning,
/// and the text of the dataset is replaced by spaces. Other datasets, for example keywords and the caption, are searched as text.
struct IPTCBlock {
    private let view: ByteView
    private let block: String

    /// The numbers of the datasets with a location: content location, city, sub-location, province and country.
    static let locations: Set<UInt8> = [26, 27, 90, 92, 95, 100, 101]

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// - Returns: `true` if a dataset was overwritten.
    @discardableResult
    func clean() -> Bool {
        let bytes = view.allBytes()
        var (position, datasets) = (0, 0)
        while position + 5 <= bytes.count, datasets < 200_000 {
            // Other bytes may be between datasets.
            guard bytes[position] == 0x1C else {
                position += 1
                continue
            }
            var (content, size) = (position + 5, Int(bytes[position + 3]) << 8 | Int(bytes[position + 4]))
            if size & 0x8000 != 0 {
                // If the size is extended, these bits are the number of bytes of the size.
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

    // MARK: Loose datasets

    /// Returns the size of a dataset about a location in bytes of another format. `nil` if the first three bytes only look like a
    /// dataset by chance.
    ///
    /// A real dataset contains text, and is next to another dataset. A single dataset must contain a name, and must be followed
    /// by a zero or by the end of the bytes.
    static func looseDataset(at position: Int, in view: ByteView) -> Int? {
        guard let size = textDataset(at: position, in: view) else { return nil }
        if textDataset(at: position + size, in: view) != nil || isBehindDataset(position, in: view) { return size }
        let name = view.bytes(position + 5, size - 5) ?? []
        guard name.count > 3, name.allSatisfy({ CoordinateText.isLetter($0) || $0 >= 0xC0 || " '-.".utf8.contains($0) }) else {
            return nil
        }
        return position + size == view.count || view.number(position + size, 1) == 0 ? size : nil
    }

    /// Returns the size of a dataset of the records 1 to 3 whose value is text or the version of the record.
    private static func textDataset(at position: Int, in view: ByteView) -> Int? {
        guard let head = view.bytes(position, 5), head[0] == 0x1C, (1...3).contains(head[1]) else { return nil }
        let size = Int(head[3]) << 8 | Int(head[4])
        if head[2] == 0, size == 2 { return 7 }
        guard (1...2_000).contains(size), let value = view.bytes(position + 5, size) else { return nil }
        return value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || [9, 10, 13].contains($0) } ? size + 5 : nil
    }

    private static func isBehindDataset(_ position: Int, in view: ByteView) -> Bool {
        let start = max(0, position - 2_005)
        guard position > start + 5, let bytes = view.bytes(start, position - start) else { return false }
        return (start..<position - 5).contains { place in
            bytes[place - start] == 0x1C && textDataset(at: place, in: view).map { place + $0 } == position
        }
    }
}
