/// Searches the parts of a film's media data that no index table lists. These parts may be blocks of dashcams, messages in the
/// H.264 data of AVCHD cameras, or metadata of frames in JPEG or JPEG 2000.
struct MediaSearch {
    private let view: ByteView
    private let name: String

    private static let dashcam = Array("freeGPS ".utf8)
    /// The identifier of the message (ISO 14496-10 Annex D, user data), followed by the letters MDPM.
    static let message: [UInt8] =
        [0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66] + Array("MDPM".utf8)

    init(_ view: ByteView, _ name: String) { (self.view, self.name) = (view, name) }

    /// The number of bytes that are searched in every film. Cameras record positions at least every second, so a long film is
    /// read to its end only if these bytes contain a position.
    static let beginning = 8 << 20

    func clean() {
        var (position, hasFound) = (0, false)
        while position < view.count, position < Self.beginning || hasFound,
            let piece = view.bytes(position, min(1 << 20, view.count - position))
        {
            let (blocks, messages) = (Self.places(of: Self.dashcam, in: piece), Self.places(of: Self.message, in: piece))
            for place in blocks { cleanDashcam(position + place) }
            for place in messages { cleanMessage(position + place + Self.message.count) }
            let pictures = Self.places(of: [0xFF, 0xD8, 0xFF], in: piece).filter { cleanJPEG(position + $0) }
            let codestreams = Self.places(of: Codestream.start, in: piece).filter { cleanCodestream(position + $0) }
            hasFound = hasFound || ![blocks, messages, pictures, codestreams].allSatisfy(\.isEmpty)
            if position + piece.count >= view.count { return }
            position += piece.count - Self.message.count + 1
        }
    }

    /// Cleans the segments before the scan of a picture, for example of a frame in Motion JPEG.
    ///
    /// - Returns: `false` if the bytes are not the segments of a picture, or have no location.
    private func cleanJPEG(_ start: Int) -> Bool {
        var position = start + 2
        for _ in 0..<64 {
            guard view.number(position, 1) == 0xFF, let marker = view.number(position + 1, 1), marker >= 0xC0,
                !(0xD0...0xD9).contains(marker), let size = view.number(position + 2, 2), size >= 2
            else { return false }
            if marker == 0xDA {
                let header = view.part(start, position - start)
                JPEGFile(header, "picture in \(name)").clean()
                return header.isTouched
            }
            position += 2 + size
        }
        return false
    }

    /// Cleans the comments of a frame in Motion JPEG 2000.
    ///
    /// - Returns: `false` if no codestream begins at this offset, or if the codestream has no location.
    private func cleanCodestream(_ start: Int) -> Bool {
        guard Codestream.isPlausible(at: start, in: view) else { return false }
        let frame = view.from(start)
        return frame.part(0, Codestream(frame, "picture in \(name)").clean()).isTouched
    }

    private static func places(of pattern: [UInt8], in piece: [UInt8]) -> [Int] {
        var (places, start) = ([Int](), 0)
        while let place = piece.firstRange(of: pattern, from: start) {
            places.append(place)
            start = place + pattern.count
        }
        return places
    }

    /// Cleans a dashcam's block. The size of the block is stored before its name.
    private func cleanDashcam(_ position: Int) {
        guard let size = view.number(position - 4, 4), (16...0x10000).contains(size) else {
            return view.search.fail(.unproven(block: "dashcam location in \(name)"))
        }
        view.fill(position + 8, size - 12, "dashcam location in \(name)")
        view.overwrite(position + 4, with: Array("    ".utf8), "dashcam location in \(name)")
    }

    /// Cleans a message with tagged values. The message consists of the number of values, and of a tag and four bytes for each
    /// value. The tags of GPS values are 0xB0 to 0xCA.
    ///
    /// If a byte 3 follows two zeros, this byte is not part of a value. Zeros are kept, because two zeros mark the beginning of
    /// the next message.
    func cleanMessage(_ start: Int) {
        let bytes = view.bytes(start, min(1_500, max(0, view.count - start))) ?? []
        var content: [(index: Int, isBehindMark: Bool)] = []
        var (zeros, isBehindMark) = (0, false)
        for (index, byte) in bytes.enumerated() {
            if zeros >= 2, byte == 3 {
                (zeros, isBehindMark) = (0, true)
                continue
            }
            content.append((index, isBehindMark))
            isBehindMark = false
            zeros = byte == 0 ? zeros + 1 : 0
        }
        guard let count = bytes.first else { return }
        for number in 0..<Int(count) where 1 + 5 * number + 5 <= content.count {
            guard (0xB0...0xCA).contains(bytes[content[1 + 5 * number].index]) else { continue }
            for (index, isBehindMark) in content[2 + 5 * number..<6 + 5 * number] where bytes[index] != 0 {
                let blank: UInt8 = isBehindMark ? 1 : 0xFF
                if bytes[index] != blank { view.overwrite(start + index, with: [blank], "location in the pictures of \(name)") }
            }
        }
    }
}
