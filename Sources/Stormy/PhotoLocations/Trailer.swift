/// The data after a picture in a file. This data may be other pictures (MPF), a film, or blocks that phones and cameras add. The
/// last bytes of such a block identify the block.
struct Trailer {
    private let view: ByteView

    /// - Parameter view: All bytes after the picture.
    init(_ view: ByteView) { self.view = view }

    func clean() {
        guard view.count > 0 else { return }
        cleanFromEnd()
        OpaqueBytes(view, "data after the picture").clean()
    }

    /// Cleans the blocks that are identified by their last bytes.
    func cleanFromEnd() {
        cleanSamsung()
        cleanInsta360()
    }

    /// Cleans Samsung's trailer. The trailer consists of blocks, the list of the blocks (SEFH), the size of the list, and the
    /// letters SEFT.
    private func cleanSamsung() {
        var end = view.count
        // If another trailer follows, the end of Samsung's trailer is found by its last letters.
        if !view.has("SEFT", at: end - 4) {
            guard let found = view.find(Array("SEFT".utf8), from: max(0, view.count - (1 << 20))) else { return }
            end = found + 4
        }
        guard let size = view.number(end - 8, 4, little: true), size >= 12 else { return }
        let list = end - 8 - size
        guard view.has("SEFH", at: list), let count = view.number(list + 8, 4, little: true) else { return }
        for index in 0..<min(count, (size - 12) / 12) {
            let entry = list + 12 + 12 * index
            guard let back = view.number(entry + 4, 4, little: true), let size = view.number(entry + 8, 4, little: true),
                back <= list, size >= 8, let kind = view.number(entry + 2, 2, little: true)
            else { continue }
            let isLocation = cleanSamsung(view.part(list - back, min(size, back)), kind)
            if isLocation { view.fill(entry + 2, 2, "Samsung's list of data blocks") }
        }
    }

    /// - Returns: `true` if the block was a location. If the block was a location, the number and the name of the block are also
    ///   overwritten.
    private func cleanSamsung(_ part: ByteView, _ kind: Int) -> Bool {
        guard let nameLength = part.number(4, 4, little: true), nameLength < part.count - 8 else { return false }
        let name = part.bytes(8, min(nameLength, 200)) ?? []
        let content = part.from(8 + nameLength)
        let text = String(decoding: name.filter { $0 >= 0x20 && $0 < 0x7F }, as: UTF8.self)
        let label = "Samsung block \(text)"
        content.recordBlock(label)
        // A block with a name such as MCC_Data contains the country of the mobile network.
        let isNamed = name.starts(with: "MCC".utf8) || LocationNames.isLocation(name)
        if kind == 0x0AA1 || isNamed {
            part.fill(2, 2, label)
            part.fill(8, nameLength, with: UInt8(ascii: "-"), label)
            // If only the number identifies the block, the block may be at a damaged offset, so pixels in the block are kept.
            if isNamed { content.fill(0, content.count, label) } else { content.fillBehindPixels(label) }
            return true
        }
        OpaqueBytes(content, label).cleanAny()
        return false
    }

    /// Cleans Insta360's trailer. Records are read from the end to the beginning, because the number and the size of a record are
    /// stored after the record.
    private func cleanInsta360() {
        guard view.count > 78, view.has("8db42d694ccc418790edff439fe026bf", at: view.count - 32),
            let size = view.number(view.count - 40, 4, little: true)
        else { return }
        var (end, header, records) = (view.count - 78, view.count - 78, 0)
        while records < 10_000, let kind = view.number(header, 2, little: true),
            let count = view.number(header + 2, 4, little: true)
        {
            let start = end - count
            guard start >= max(0, view.count - size) else { break }
            let part = view.part(start, count)
            if kind == 0x700 {
                notesInsta360(part)
                let label = "location record of Insta360"
                // If the picture is damaged, its last block may include the trailer.
                if !part.fillBehindPixels(label) { fillInsta360(part, label) }
            }
            (header, end) = (start - 6, start - 6)
            records += 1
        }
        // The bytes after a damaged record are also searched.
        let first = max(0, view.count - size)
        if header > first { fillInsta360(view.part(first, header + 6 - first)) }
    }

    /// Overwrites the records of locations at any offset. The records are found by their letters and numbers.
    private func fillInsta360(_ part: ByteView) {
        guard part.count <= LocationSearch.maximumBlock else { return }
        let bytes = part.allBytes()
        var start = 0
        while start + 53 <= bytes.count {
            defer { start += 1 }
            guard "AV".utf8.contains(bytes[start + 10]), "NS".utf8.contains(bytes[start + 19]),
                "EW".utf8.contains(bytes[start + 28]), notesInsta360(part.part(start, 53))
            else { continue }
            part.fill(start, 53, "location record of Insta360")
            start += 52
        }
    }

    /// Overwrites the records that contain the letters of a location.
    private func fillInsta360(_ part: ByteView, _ label: String) {
        for start in stride(from: 0, to: part.count, by: 53) {
            guard let record = part.bytes(start, 29) else { return }
            if "AV".utf8.contains(record[10]), "NS".utf8.contains(record[19]), "EW".utf8.contains(record[28]) {
                part.fill(start, 53, label)
            }
        }
    }

    /// Reads the locations of records with 53 bytes. A record contains a letter for its validity, and then doubles and letters.
    ///
    /// - Returns: `true` if a record contains a location.
    @discardableResult
    private func notesInsta360(_ part: ByteView) -> Bool {
        var isPlace = false
        for start in stride(from: 0, to: min(part.count, 53 * 200), by: 53) {
            guard let latitude = part.bytes(start + 11, 8), let longitude = part.bytes(start + 20, 8) else { break }
            let (x, y) = (GPSDirectory.word(latitude, true), GPSDirectory.word(longitude, true))
            let (lat, lon) = (Double(bitPattern: x), Double(bitPattern: y))
            if lat.isFinite, lon.isFinite, abs(lat) <= 90, abs(lon) <= 180, lat != 0 {
                view.search.add(FoundPlace(latitude: lat, longitude: lon))
                isPlace = true
            }
        }
        return isPlace
    }
}
