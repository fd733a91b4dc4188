/// A box of ISO base media files (ISO 14496-12 §4.2), which consists of a size, a type and a content.
struct Box {
    /// The offset of the box in the list that contains the box, and the size of the box's header.
    let (start, header): (Int, Int)
    let type: String
    let content: ByteView
    /// The size of the box with its header. If the box is damaged, the box can extend beyond the end of the list that contains
    /// it.
    let size: Int
    private let list: ByteView

    /// Returns `nil` at the end of the list, or if the size of the box is impossible.
    init?(_ list: ByteView, at start: Int) {
        guard start + 8 <= list.count, var size = list.number(start, 4) else { return nil }
        var header = 8
        if size == 1 {
            guard let long = list.number(start + 8, 8) else { return nil }
            (size, header) = (long, 16)
        } else if size == 0 {
            size = list.count - start
        }
        guard size >= header, size < 1 << 60 else { return nil }
        (self.start, self.header, self.size, self.list) = (start, header, size, list)
        type = list.name(start + 4)
        content = list.part(start + header, size - header)
    }

    /// Returns the boxes of a list, up to the first box with an impossible size.
    static func all(in list: ByteView, from first: Int = 0) -> [Box] {
        var (boxes, position) = ([Box](), first)
        while boxes.count < 200_000, let box = Box(list, at: position) {
            boxes.append(box)
            position += box.size
        }
        return boxes
    }

    /// Changes the box to a box of free space, which readers ignore.
    func free(_ name: String) {
        list.overwrite(start + 4, with: Array("free".utf8), name)
        content.fill(0, content.count, name)
    }

    /// The name of the handler in a box `hdlr`.
    var handler: String { content.name(8) }

    /// The boxes inside this box. The content of a box `meta` begins with a version, except in QuickTime files.
    var children: [Box] {
        guard type == "meta" else { return Box.all(in: content) }
        return Box.all(in: content, from: content.has("hdlr", at: 4) ? 0 : 4)
    }

    /// Returns the first box of a type inside this box.
    func child(_ type: String) -> Box? { children.first { $0.type == type } }
}

/// Reads the numbers of a box in order.
struct BoxReader {
    private let view: ByteView
    private(set) var position: Int

    init(_ view: ByteView, at position: Int) { (self.view, self.position) = (view, position) }

    /// Returns a number. If the length is 0, the number is 0. Returns `nil` if the number is beyond the end of the box.
    mutating func number(_ length: Int) -> Int? {
        guard length > 0 else { return 0 }
        defer { position += length }
        return view.number(position, length)
    }

    /// Returns a text that ends with a zero byte.
    mutating func text() -> String? {
        guard let bytes = view.bytes(position, min(1_000, max(0, view.count - position))), let end = bytes.firstIndex(of: 0)
        else { return nil }
        position += end + 1
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
