/// Reads the locations of a GPS directory (Exif 3.0 §4.6.6). The latitude has the tags 1 and 2, the longitude has the tags 3 and
/// 4, and the destination has the tags 19 to 22.
struct GPSDirectory {
    private let directory: TIFFDirectory
    private let view: ByteView
    private let little: Bool

    init(_ directory: TIFFDirectory, _ view: ByteView, little: Bool) {
        (self.directory, self.view, self.little) = (directory, view, little)
    }

    /// Returns whether all entries have the tags and types of GPS entries. The check is necessary because a damaged pointer may
    /// lead to other data.
    static func isPlausible(at offset: Int, in view: ByteView, little: Bool, isBig: Bool) -> Bool {
        guard offset > 0, let directory = TIFFDirectory(view, at: offset, little: little, isBig: isBig) else { return false }
        return (1...32).contains(directory.entries.count)
            && directory.entries.allSatisfy { $0.tag < 0x20 && (1...12).contains($0.type) && $0.count > 0 }
    }

    /// The beginning of the latitude's entry (tag 2, three rationals), in each byte order.
    static let latitudes: [[UInt8]] = [[2, 0, 5, 0, 3, 0, 0, 0], [0, 2, 0, 5, 0, 0, 0, 3]]

    /// Cleans a GPS directory that no pointer leads to, for example because a tool removed only the pointer.
    ///
    /// - Parameter entry: The position of the entry of the latitude.
    static func cleanUnlinked(at entry: Int, in view: ByteView, _ block: String) {
        guard let first = view.number(entry, 1) else { return }
        let little = first == 2
        // The entries of the version and of the reference letter may be before this entry.
        var start = entry
        if view.number(start - 12, 4, little: little) == (little ? 0x2_0001 : 0x1_0002) { start -= 12 }
        if view.number(start - 12, 4, little: little) == (little ? 0x1_0000 : 1) { start -= 12 }
        start -= 2
        guard isPlausible(at: start, in: view, little: little, isBig: false),
            let plain = TIFFDirectory(view, at: start, little: little), plain.entries.contains(where: { $0.tag == 4 }),
            let lowest = plain.entries.filter({ !$0.isInline }).map(\.value).min()
        else { return }
        // The offset of a value is counted from the TIFF header, or the value is directly after the GPS directory. In a damaged
        // file, a wrong header may look correct. Numbers after the GPS directory are therefore also removed if they look like
        // coordinates.
        let headers = view.search.headers.reversed().map { $0 - view.offset(0) }.filter { $0 < entry }.prefix(100)
        let behind = [plain.range.upperBound - lowest, plain.range.upperBound - 4 - lowest]
        var found: [GPSDirectory] = []
        for (index, shift) in (headers + behind).enumerated() {
            let isHeader = index < headers.count
            guard !isHeader || found.isEmpty, let directory = TIFFDirectory(view, at: start, little: little, shift: shift) else {
                continue
            }
            let gps = GPSDirectory(directory, view, little: little)
            guard let latitude = gps.degrees(2, reference: 1), let longitude = gps.degrees(4, reference: 3),
                abs(latitude) <= 90, abs(longitude) <= 180, found.isEmpty || gps.hasDecimalFractions
            else { continue }
            found.append(gps)
        }
        for gps in found { gps.recordPlaces() }
        for entry in found.flatMap(\.directory.entries) where !entry.isInline && entry.size < 1 << 16 {
            view.fill(entry.value, entry.size, "GPS directory in \(block)")
        }
        if !found.isEmpty { view.fill(start, plain.range.count, "GPS directory in \(block)") }
    }

    /// `true` if degrees and minutes have the denominators that cameras write: 1, 10, 100 and so on.
    private var hasDecimalFractions: Bool {
        [2, 4].allSatisfy { tag in
            guard let entry = entry(tag), entry.type == 5 else { return false }
            return (0..<min(entry.count, 2)).allSatisfy { index in
                guard let bottom = view.number(entry.value + 8 * index + 4, 4, little: little) else { return false }
                return [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000].contains(bottom)
            }
        }
    }

    func recordPlaces() {
        for base in [0, 18] {
            let (latitude, longitude) = (degrees(base + 2, reference: base + 1), degrees(base + 4, reference: base + 3))
            if latitude == nil, longitude == nil { continue }
            view.search.add(FoundPlace(latitude: latitude, longitude: longitude))
        }
        for tag in [2, 4, 20, 22] {
            guard let entry = entry(tag), !entry.isInline, let raw = view.bytes(entry.value, min(entry.size, 24)),
                raw.count >= 16,
                Set(raw).count > 5
            else { continue }
            view.search.add(FoundPlace(raw: raw))
        }
    }

    private func entry(_ tag: Int) -> TIFFDirectory.Entry? { directory.entries.first { $0.tag == tag } }

    /// Returns the degrees of an angle. The angle consists of up to three rationals or doubles for degrees, minutes and seconds.
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
