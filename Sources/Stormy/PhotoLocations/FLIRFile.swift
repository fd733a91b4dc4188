/// The thermal data of a FLIR camera (FFF). The data consists of a header, a list of records, and the records. A record of kind
/// 0x2B is a location.
///
/// Source of the numbers: the documentation of ExifTool's FLIR tags.
struct FLIRFile {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    /// Returns whether the version, the creator and the list have possible values. This check is necessary because other bytes
    /// may contain the four letters of the format by chance.
    static func isPlausible(at position: Int, in view: ByteView) -> Bool {
        guard let version = view.number(position + 20, 4), let creator = view.bytes(position + 4, 16) else { return false }
        let little = !(100..<200).contains(version)
        guard !little || (100..<200).contains(version.byteSwapped >> 32),
            creator.allSatisfy({ $0 == 0 || (0x20...0x7E).contains($0) }),
            let list = view.number(position + 24, 4, little: little), let count = view.number(position + 28, 4, little: little),
            (1...1_000).contains(count), position + list + 32 * count <= view.count
        else { return false }
        return (0..<min(count, 4)).allSatisfy { index in
            let entry = position + list + 32 * index
            guard let kind = view.number(entry, 2, little: little), let start = view.number(entry + 12, 4, little: little) else {
                return false
            }
            return kind < 0x100 && position + start <= view.count
        }
    }

    func clean() {
        view.recordBlock(block)
        guard view.search.begin("FLIR", at: view.offset(0)) else { return }
        guard view.has("FFF\0", at: 0) || view.has("AFF\0", at: 0) else { return OpaqueBytes(view, block).clean() }
        // The version is a number between 100 and 199, so the byte order of the version is known.
        let little = !(100..<200).contains(view.number(0x14, 4) ?? 0)
        guard let list = view.number(0x18, 4, little: little), let count = view.number(0x1C, 4, little: little) else { return }
        for index in 0..<min(count, 10_000) {
            let entry = list + 32 * index
            guard let kind = view.number(entry, 2, little: little), let start = view.number(entry + 12, 4, little: little),
                let size = view.number(entry + 16, 4, little: little)
            else { break }
            if kind == 0x2B {
                recordPlace(start)
                view.fill(start, size, block)
                // An entry of kind 0 is an unused entry.
                view.fill(entry, 2, block)
            } else if kind != 1 {
                // Records other than the thermal picture are searched.
                OpaqueBytes(view.part(start, size), block).clean()
            }
        }
        cleanUnlisted()
    }

    /// Cleans records that the list does not contain. A record without an entry is found by the letters of the hemispheres, which
    /// are followed by doubles.
    private func cleanUnlisted() {
        for north in ["N\0", "S\0"] {
            for east in ["E\0", "W\0"] {
                var from = 0
                while let place = view.find(Array((north + east).utf8), from: from) {
                    from = place + 4
                    if place >= 8, recordPlace(place - 8) { view.fill(place - 8, 96, block) }
                }
            }
        }
    }

    /// - Returns: `true` if the numbers are a location.
    @discardableResult
    private func recordPlace(_ start: Int) -> Bool {
        // The letters of the hemispheres are followed by two doubles, whose order of bytes is unknown.
        for little in [true, false] {
            guard let latitude = view.bytes(start + 16, 8), let longitude = view.bytes(start + 24, 8) else { return false }
            var x = Double(bitPattern: GPSDirectory.word(latitude, little))
            var y = Double(bitPattern: GPSDirectory.word(longitude, little))
            guard abs(x) <= 90, abs(y) <= 180, abs(x) > 1e-6 || abs(y) > 1e-6 else { continue }
            if view.has("S", at: start + 8) { x = -abs(x) }
            if view.has("W", at: start + 10) { y = -abs(y) }
            view.search.add(FoundPlace(latitude: x, longitude: y))
            return true
        }
        return false
    }
}
