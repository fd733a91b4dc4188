/// A maker note: data that the camera's maker stores in Exif. Some makers store names of places, and the cities of the world
/// clock.
///
/// Source of the numbers: the documentation of ExifTool's tag names.
struct MakerNote {
    let tiff: ByteView
    /// The offset of the note, and its number of bytes.
    let at: Int
    let size: Int
    let little: Bool
    let make: String
    let block: String
    /// A number that is added to the offsets of values, because the note was moved.
    var shift = 0

    /// The entries of one maker's notes that contain a place.
    private struct Maker {
        /// The offset of the TIFF directory in the maker note.
        var directory: Int
        /// The entries with texts and structures that are overwritten with zeros.
        var texts: Set<Int> = []
        /// The entries with the number of a city. Zero is also the number of a city, so the tag of the entry is replaced by a tag
        /// without a meaning.
        var cities: Set<Int> = []
        /// The entries with a list whose second number is a city. In such a list, zero means no city.
        var clocks: Set<Int> = []
        /// `true` if the offsets of values begin at the note.
        var isRelative = false
        var little: Bool?
    }

    func clean() {
        let note = tiff.part(at, size)
        if let maker = maker(note) { clean(maker, note) }
        // Nikon's note is a TIFF structure, and the notes of some other makers contain TIFF structures.
        OpaqueBytes(note, block).clean()
    }

    /// The entries of the home city, of the destination, and of the world clock, which contains both cities.
    private static let pentax: Set<Int> = [0x23, 0x24, 0x6B]

    private func maker(_ note: ByteView) -> Maker? {
        let panasonic: Set<Int> = [0x67, 0x69, 0x6B, 0x6D, 0x6F, 0x80]
        if note.has("Panasonic\0", at: 0) { return Maker(directory: 12, texts: panasonic) }
        if note.has("LEICA\0", at: 0) { return Maker(directory: 8, texts: panasonic) }
        if note.has("Nikon\0\u{2}", at: 0) {
            let little = note.has("II", at: 10)
            guard let first = note.number(14, 4, little: little) else { return nil }
            return Maker(directory: 10 + first, texts: [0x39], isRelative: true, little: little)
        }
        if note.has("QVC\0", at: 0) || note.has("DCI\0", at: 0) {
            // The byte order of the note may differ from the byte order of the file. The number of entries is small, so a large
            // number shows that the bytes are in the other order.
            let isOther = note.number(6, 2, little: little) ?? 0 > 0xFF
            return Maker(directory: 6, texts: [0x3006], little: little != isOther)
        }
        if note.has("PENTAX \0", at: 0) {
            return Maker(directory: 10, cities: Self.pentax, isRelative: true, little: note.has("II", at: 8))
        }
        if note.has("RICOH\0II", at: 0) || note.has("RICOH\0MM", at: 0) {
            return Maker(directory: 8, cities: Self.pentax, isRelative: true, little: note.has("II", at: 6))
        }
        if note.has("AOC\0", at: 0) {
            return Maker(
                directory: 6, cities: Self.pentax, little: note.has("MM", at: 4) ? false : note.has("II", at: 4) ? true : nil)
        }
        if make.hasPrefix("Canon") { return Maker(directory: 0, clocks: [0x35]) }
        if make.uppercased().hasPrefix("SAMSUNG") { return Maker(directory: 0, texts: [0x30, 0x31]) }
        return nil
    }

    private func clean(_ maker: Maker, _ note: ByteView) {
        let little = maker.little ?? little
        let base = maker.isRelative ? at + (note.has("Nikon", at: 0) ? 10 : 0) : shift
        guard let directory = TIFFDirectory(tiff, at: at + maker.directory, little: little, shift: base) else { return }
        for entry in directory.entries {
            if maker.texts.contains(entry.tag) {
                blank(entry, directory, note)
            } else if maker.cities.contains(entry.tag), entry.isInline {
                tiff.overwrite(entry.position, with: [0xFF, 0xFF], "city in \(block)")
                tiff.fill(entry.value, 4, "city in \(block)")
            } else if maker.clocks.contains(entry.tag), entry.size >= 16, let city = tiff.number(entry.value + 8, 4), city != 0 {
                tiff.fill(entry.value + 8, 4, "city in \(block)")
            }
        }
    }

    /// Overwrites a text with zeros. The offset of the text is counted from the header of the file or from the note, because
    /// makers use both forms.
    private func blank(_ entry: TIFFDirectory.Entry, _ directory: TIFFDirectory, _ note: ByteView) {
        let name = "name of a place in \(block)"
        if entry.isInline { return tiff.fill(entry.value, 4, name) }
        let limit = min(entry.size, 4_096)
        for start in Set([entry.value, entry.value + at]) where start >= at + 4 && start + limit <= at + size {
            // The bytes of the TIFF directory are not overwritten.
            guard !directory.range.overlaps(start..<start + limit) else { continue }
            guard let bytes = tiff.bytes(start, limit), bytes.contains(where: { $0 != 0 }) else { continue }
            tiff.fill(start, limit, name)
            break
        }
    }
}
