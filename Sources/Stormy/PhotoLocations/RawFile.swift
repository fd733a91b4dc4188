/// A raw file that is not a TIFF file. Raw files of this kind come from cameras of Fujifilm, Minolta and Sigma, and from older
/// cameras of Canon. The sensor data is treated as pixels. Other bytes are searched for blocks of known formats.
struct RawFile {
    private enum Format { case fujifilm, minolta, sigma, canon }

    private let view: ByteView
    private let block: String
    private let format: Format
    /// The ranges of the sensor data in the view.
    private var sensor = ProtectedRanges()

    /// - Returns: `nil` if the file has another format.
    init?(_ view: ByteView, _ block: String) {
        if view.has("FUJIFILMCCD-RAW", at: 0) {
            format = .fujifilm
        } else if view.has("\0MRM", at: 0) {
            format = .minolta
        } else if view.has("FOVb", at: 0) {
            format = .sigma
        } else if view.has("HEAPCCDR", at: 6) {
            format = .canon
        } else {
            return nil
        }
        (self.view, self.block) = (view, block)
    }

    mutating func clean() {
        switch format {
        case .fujifilm: for place in [100, 128] { readFujifilm(view.number(place, 4) ?? 0, view.number(place + 4, 4) ?? 0) }
        case .minolta: add(8 + (view.number(4, 4) ?? view.count), view.count)
        case .sigma: readSigma()
        case .canon:
            let start = view.number(2, 4, little: true) ?? 0
            readCanon(start, view.count, depth: 0)
        }
        sensor.prepare()
        for gap in sensor.gaps(0..<view.count) { OpaqueBytes(view.part(gap.lowerBound, gap.count), block).clean() }
    }

    private mutating func add(_ start: Int, _ size: Int) {
        guard start > 0, size > 0, start < view.count else { return }
        let size = min(size, view.count - start)
        sensor.add(start..<start + size)
        view.recordPixels(start, size)
    }

    /// Reads a range with the sensor data. The range is a TIFF structure with the sensor data, or only the sensor data.
    private mutating func readFujifilm(_ start: Int, _ size: Int) {
        guard start > 136, size > 0 else { return }
        guard var tiff = TIFFFile(view.part(start, size), "TIFF structure in \(block)"), tiff.isPlausible else {
            return add(start, size)
        }
        tiff.clean()
        for range in tiff.pixels { add(start + range.lowerBound, range.count) }
    }

    /// Reads the list of sections, which is at the end of the file. A section with a picture has a header of 28 bytes. A picture
    /// of format 18 is a JPEG picture.
    private mutating func readSigma() {
        guard let list = view.number(view.count - 4, 4, little: true), view.has("SECd", at: list),
            let count = view.number(list + 8, 4, little: true)
        else { return }
        for entry in stride(from: list + 12, to: list + 12 + 12 * min(count, 1_000), by: 12) {
            guard let start = view.number(entry, 4, little: true), let size = view.number(entry + 4, 4, little: true) else {
                return
            }
            if view.name(entry + 8).hasPrefix("IMA"), view.has("SECi", at: start), view.number(start + 12, 4, little: true) != 18
            {
                add(start + 28, size - 28)
            }
        }
    }

    /// Reads a heap of the CIFF format. The directory of the heap is stored after the values. Entry 0x2005 is the sensor data.
    private mutating func readCanon(_ start: Int, _ end: Int, depth: Int) {
        guard depth < 4, end - start > 6, let offset = view.number(end - 4, 4, little: true),
            let count = view.number(start + offset, 2, little: true)
        else { return }
        for entry in stride(from: start + offset + 2, to: start + offset + 2 + 10 * min(count, 200), by: 10) {
            guard let tag = view.number(entry, 2, little: true), let size = view.number(entry + 2, 4, little: true),
                let value = view.number(entry + 6, 4, little: true), start + value + size <= end
            else { continue }
            if tag == 0x2005 { add(start + value, size) }
            if [0x2800, 0x3000].contains(tag & 0xF800) { readCanon(start + value, start + value + size, depth: depth + 1) }
        }
    }
}
