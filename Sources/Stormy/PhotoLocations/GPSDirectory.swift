/// The places of a GPS directory (Exif 3.0 §4.6.6): latitude 1 and 2, longitude 3 and 4, the destination 19 to 22.
struct GPSDirectory {
    private let directory: TIFFDirectory
    private let view: ByteView
    private let little: Bool

    init(_ directory: TIFFDirectory, _ view: ByteView, little: Bool) {
        (self.directory, self.view, self.little) = (directory, view, little)
    }

    /// Returns whether the entries are those of GPS. A damaged pointer leads to other bytes.
    static func isPlausible(at offset: Int, in view: ByteView, little: Bool, isBig: Bool) -> Bool {
        guard offset > 0, let directory = TIFFDirectory(view, at: offset, little: little, isBig: isBig) else { return false }
        return (1...32).contains(directory.entries.count)
            && directory.entries.allSatisfy { $0.tag < 0x20 && (1...12).contains($0.type) && $0.count > 0 }
    }

    func notePlaces() {
        for base in [0, 18] {
            let (latitude, longitude) = (degrees(base + 2, reference: base + 1), degrees(base + 4, reference: base + 3))
            if latitude == nil, longitude == nil { continue }
            view.search.note(FoundPlace(latitude: latitude, longitude: longitude))
        }
        for tag in [2, 4, 20, 22] {
            guard let entry = entry(tag), !entry.isInline, let raw = view.bytes(entry.value, min(entry.size, 24)),
                raw.count >= 16,
                Set(raw).count > 5
            else { continue }
            view.search.note(FoundPlace(raw: raw))
        }
    }

    private func entry(_ tag: Int) -> TIFFDirectory.Entry? { directory.entries.first { $0.tag == tag } }

    /// Up to three rationals, or doubles: degrees, minutes, seconds.
    private func degrees(_ tag: Int, reference: Int) -> Double? {
        guard let entry = entry(tag) else { return nil }
        var (result, unit) = (0.0, 1.0)
        let size = entry.type == 12 ? 8 : entry.type == 11 ? 4 : 8
        for index in 0..<min(entry.count, 3) {
            let place = entry.value + size * index
            guard let value = value(place, entry.type), value.isFinite else { break }
            result += value / unit
            unit *= 60
        }
        guard result.isFinite, abs(result) <= 360, result != 0 else { return nil }
        let letter = self.entry(reference).flatMap { view.bytes($0.value, 1)?.first } ?? 0
        return letter == UInt8(ascii: "S") || letter == UInt8(ascii: "W") ? -result : result
    }

    private func value(_ place: Int, _ type: Int) -> Double? {
        switch type {
        case 12: return view.bytes(place, 8).map { Double(bitPattern: Self.word($0, little)) }
        case 11: return view.bytes(place, 4).map { Double(Float(bitPattern: UInt32(Self.word($0, little)))) }
        default:
            guard let top = view.number(place, 4, little: little), let bottom = view.number(place + 4, 4, little: little),
                bottom != 0
            else { return nil }
            return Double(top) / Double(bottom)
        }
    }

    static func word(_ bytes: [UInt8], _ little: Bool) -> UInt64 {
        (little ? bytes.reversed() : bytes).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
