import Foundation

/// The parts of a photo that the cleaner is known to damage in some files. Compared before and after, so that no damaged photo is sent.
struct PhotoStructure: Equatable {
    /// The pages of a TIFF file; `nil` if the file is not one.
    private var pages: Int?
    /// A TIFF file with a camera's name and further pictures: its other directories hold what the raw data mean.
    private var isRaw = false
    /// The pictures behind the first one (CIPA DC-007, for example a gain map), and how many of them begin where the index says.
    private var (pictures, pictureStarts) = (0, 0)

    init(of data: Data) {
        readDirectories(data)
        if data.starts(with: [0xFF, 0xD8]) { readPictures(data) }
    }

    /// Returns what cleaning damaged, or `nil`.
    ///
    /// - Parameter before: The structure of the photo before it was cleaned.
    func damage(since before: PhotoStructure) -> String? {
        if before.isRaw { return "it is a camera's raw file" }
        if pages != before.pages { return "it would lose a page" }
        if before.pictureStarts == before.pictures, (pictures, pictureStarts) != (before.pictures, before.pictureStarts) {
            return "it would lose its other pictures, for example the gain map of an HDR photo"
        }
        return nil
    }

    private mutating func readDirectories(_ data: Data) {
        let isLittleEndian = data.starts(with: [0x49, 0x49, 0x2A, 0])
        guard isLittleEndian || data.starts(with: [0x4D, 0x4D, 0, 0x2A]) else { return }
        let reader = TIFFReader(data: data, base: 0, isLittleEndian: isLittleEndian)
        var (directory, known) = (reader.number(at: 4, bytes: 4) ?? 0, Set<Int>())
        while directory > 0, known.count < 100_000, known.insert(directory).inserted, let entries = reader.entries(at: directory)
        {
            let tags = Set(entries.map(\.tag))
            // Make and SubIFDs.
            if tags.isSuperset(of: [0x010F, 0x014A]) { isRaw = true }
            directory = reader.number(at: directory + 2 + 12 * entries.count, bytes: 4) ?? 0
        }
        pages = known.count
    }

    private mutating func readPictures(_ data: Data) {
        // Segments of a JPEG file up to its first scan.
        var position = 2
        while position + 4 <= data.count, data[position] == 0xFF, data[position + 1] != 0xDA {
            let length = Int(data[position + 2]) << 8 | Int(data[position + 3])
            let content = position + 4
            if data[position + 1] == 0xE2, data[content...].starts(with: Array("MPF\0".utf8)) { readIndex(data, at: content + 4) }
            position += 2 + max(2, length)
        }
    }

    private mutating func readIndex(_ data: Data, at base: Int) {
        guard base + 8 <= data.count else { return }
        let reader = TIFFReader(data: data, base: base, isLittleEndian: data[base] == 0x49)
        let entries = reader.number(at: 4, bytes: 4).flatMap { reader.entries(at: $0) } ?? []
        for list in entries where list.tag == 0xB002 {
            // 16 bytes for each picture; the first one begins the file.
            for index in 1..<max(1, min(list.count / 16, 1_000)) {
                guard let offset = reader.number(at: list.value + 16 * index + 8, bytes: 4), offset > 0 else { continue }
                pictures += 1
                if base + offset + 2 <= data.count, data[base + offset] == 0xFF, data[base + offset + 1] == 0xD8 {
                    pictureStarts += 1
                }
            }
        }
    }
}
