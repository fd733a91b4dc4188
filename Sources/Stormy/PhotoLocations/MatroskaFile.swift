/// A film in the format Matroska or WebM (RFC 9559). The film consists of elements with an identifier, a size, and a content.
/// Tags and other texts are searched for a location.
///
/// Checksums and cues depend on the bytes of the film. For this reason, a film with a location cannot be cleaned, and is not
/// uploaded.
struct MatroskaFile {
    /// The first element, which is the header of EBML.
    static let start: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3]
    /// The identifiers of elements with texts: tags, the description of the film, tracks, chapters, attachments.
    private static let tops: [[UInt8]] = [
        [0x12, 0x54, 0xC3, 0x67], [0x15, 0x49, 0xA9, 0x66], [0x16, 0x54, 0xAE, 0x6B], [0x10, 0x43, 0xA7, 0x70],
        [0x19, 0x41, 0xA4, 0x69],
    ]
    /// The identifiers of elements that contain other elements: a tag, tracks, chapters and attachments. A simple tag can contain
    /// other simple tags.
    private static let lists: Set<Int> = [0x7373, simpleTag, 0xAE, 0x45B9, 0xB6, 0x80, 0x61A7]
    private static let (simpleTag, tagName, tagText, tagBytes) = (0x67C8, 0x45A3, 0x4487, 0x4485)

    private struct Element {
        var identifier: Int
        var content: ByteView
        var end: Int

        /// Returns `nil` at the end of the list, or if the size of the element is impossible or unknown.
        init?(_ list: ByteView, at start: Int) {
            guard let first = list.number(start, 1), first >= 0x10 else { return nil }
            let width = 1 + (7 - (Int.bitWidth - 1 - first.leadingZeroBitCount))
            guard let identifier = list.number(start, width), let mark = list.number(start + width, 1), mark > 0 else {
                return nil
            }
            let length = 8 - (Int.bitWidth - 1 - mark.leadingZeroBitCount)
            guard let number = list.number(start + width, length) else { return nil }
            let size = number & ((1 << (7 * length)) - 1)
            let header = start + width + length
            guard size <= list.count - header else { return nil }
            (self.identifier, content, end) = (identifier, list.part(header, size), header + size)
        }

        static func all(in list: ByteView) -> [Element] {
            var (elements, position) = ([Element](), 0)
            while elements.count < 100_000, let element = Element(list, at: position) {
                elements.append(element)
                position = element.end
            }
            return elements
        }
    }

    private let view: ByteView
    private let block: String

    /// - Parameter view: The bytes from the EBML header to the end.
    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// Fails the search if a text is a location.
    func checkTexts() {
        guard view.search.begin("Matroska", at: view.offset(0)) else { return }
        for top in Self.tops {
            var from = 0
            while let place = view.find(top, from: from), !view.search.isFinished {
                if let element = Element(view, at: place) { search(element, depth: 0) }
                from = place + top.count
            }
        }
    }

    private func search(_ element: Element, depth: Int) {
        guard depth < 16 else { return view.search.fail(.tooExpensive(block)) }
        let elements = Element.all(in: element.content)
        let name = elements.first { $0.identifier == Self.tagName }?.content.bytes ?? []
        for child in elements where !view.search.isFinished {
            if Self.lists.contains(child.identifier) {
                search(child, depth: depth + 1)
            } else if element.identifier != Self.simpleTag {
                search(child.content.bytes, named: [])
            } else if [Self.tagText, Self.tagBytes].contains(child.identifier) {
                search(child.content.bytes, named: name)
            }
        }
    }

    private func search(_ text: [UInt8], named name: [UInt8]) {
        guard text.contains(where: { $0 > 0x20 }) else { return }
        let isText = text.allSatisfy { $0 >= 0x20 || 9...13 ~= $0 || $0 == 0 }
        let isLocation =
            KeyedText(key: name, text: isText ? text : []).location != nil || isText && !CoordinateText(text).all().isEmpty
        guard isLocation else { return }
        let label = name.isEmpty ? "a text" : "the tag \(String(decoding: name.prefix(40), as: UTF8.self))"
        view.search.fail(.unproven(block: "\(label) of \(block)"))
    }
}

extension ByteView {
    /// The bytes of a text. The result is empty if the text has 1 MiB or more.
    fileprivate var bytes: [UInt8] { count < 1 << 20 ? allBytes() : [] }
}
