/// A track of metadata that changes over time. The track may contain positions in telemetry, positions from phones of Apple and
/// Google, positions from cameras, or positions in subtitles.
struct TimedMetadata {
    private let track: Box
    private let film: Film
    private let block: String

    private static let coded: Set<String> = ["vide", "soun", "hint", "tmcd", "pict", "auxv"]
    private static let texts: Set<String> = ["text", "sbtl", "subt", "clcp"]
    /// The names of formats whose samples are positions, and of formats with positions that cannot be parsed.
    private static let blanked: Set<String> = ["djmd", "dbgi", "gps0", "gpsf", "3gf ", "SVMI"]
    /// The names of formats with positions that this type parses.
    private static let carriers: Set<String> = ["mebx", "gpmd", "camm", "rtmd", "mett", "RVMI"]

    init(_ track: Box, of film: Film, _ block: String) { (self.track, self.film, self.block) = (track, film, block) }

    private var file: ByteView { film.view }

    /// Returns `true` if the samples are neither pictures nor sound.
    static func isMetadata(_ track: Box) -> Bool {
        track.child("mdia")?.child("hdlr").map { !coded.contains($0.handler) } ?? false
    }

    func clean() {
        guard Self.isMetadata(track), let media = track.child("mdia"), let handler = media.child("hdlr")?.handler,
            let table = media.child("minf")?.child("stbl")
        else { return }
        let entries = table.child("stsd").map { Box.all(in: $0.content, from: 8) } ?? []
        // If a damaged film has no sample descriptions, the handler contains the name of the format.
        for entry in entries.isEmpty && handler == "camm" ? [nil] : entries.map(Optional.some) {
            let type = entry?.type ?? handler
            let name = "timed metadata (\(type)) of \(block)"
            let format = handler == "camm" ? handler : type
            let ids = type == "mebx" ? entry.map { cleanKeys($0, name) } ?? [] : []
            if type == "mebx", ids.isEmpty { continue }
            let samples = SampleTable(track, table, of: film, name)
            if !samples.isReadable, Self.carriers.contains(format) || Self.blanked.contains(format) {
                file.search.fail(.unproven(block: name))
            }
            for sample in samples.samples() where !file.search.isFinished {
                clean(sample, format, ids, name)
                if Self.texts.contains(handler) { cleanCipher(sample, name) }
            }
            if type == "gpmd" { cleanTelemetry(name) }
        }
    }

    /// Cleans telemetry that no index table of the film lists.
    private func cleanTelemetry(_ name: String) {
        var from = 0
        while let place = file.find(Array("DEVC\0".utf8), from: from), !file.search.isFinished {
            from = place + 5
            if file.has("DVID", at: place + 8), let size = file.number(place + 6, 2), let width = file.number(place + 5, 1) {
                GPMFBlock(file.part(place, 8 + size * width), name).clean()
            }
        }
    }

    /// Cleans text of dashcams that is encrypted with XOR 0xAA. After this encryption, ASCII letters have values of at least
    /// 0x80.
    private func cleanCipher(_ sample: ByteView, _ name: String) {
        let bytes = sample.bytes(0, min(sample.count, 1 << 16)) ?? []
        guard bytes.count(where: { $0 >= 0x80 }) > 16 else { return }
        if !CoordinateText(bytes.map { $0 ^ 0xAA }).all().isEmpty { sample.fill(0, sample.count, name) }
    }

    // MARK: Samples

    private func clean(_ sample: ByteView, _ format: String, _ ids: Set<Int>, _ name: String) {
        switch format {
        // Dashcams store other formats under the name of GoPro's format.
        case "gpmd" where !sample.has("DEVC", at: 0) && sample.count > 0:
            GPMFBlock(sample, name).clean()
            sample.fill(0, sample.count, name)
        case "gpmd": GPMFBlock(sample, name).clean()
        case "mett" where Self.isParrot(sample), "RVMI" where sample.has("gReV", at: 0): sample.fill(0, sample.count, name)
        case "mebx": cleanItems(sample, ids, name)
        case "camm": cleanCAMM(sample, name)
        case "rtmd": cleanSony(sample, name)
        default:
            if Self.blanked.contains(format) {
                sample.fill(0, sample.count, name)
            } else if sample.count > 0 {
                OpaqueBytes(sample, name).cleanAny()
            }
        }
    }

    /// Returns whether a sample is a record of a Parrot drone. A record begins with the letter E or P and a digit. In the first
    /// version of the format, a record has 60 bytes. Every record has a position.
    private static func isParrot(_ sample: ByteView) -> Bool {
        guard let mark = sample.bytes(0, 2) else { return false }
        return "EP".utf8.contains(mark[0]) && (48...57).contains(mark[1]) || sample.count == 60
    }

    // MARK: Apple

    /// Returns the numbers of the keys about a location, and overwrites their names.
    private func cleanKeys(_ entry: Box, _ name: String) -> Set<Int> {
        var ids: Set<Int> = []
        for list in Box.all(in: entry.content, from: 8) where list.type == "keys" {
            var position = 0
            // The type of each box is the number of a key.
            while let size = list.content.number(position, 4), size >= 8, let id = list.content.number(position + 4, 4),
                ids.count < 10_000
            {
                for declaration in Box.all(in: list.content.part(position + 8, size - 8)) where declaration.type == "keyd" {
                    let key = declaration.content.from(4)
                    if LocationNames.isLocation(key.bytes(0, min(key.count, 190)) ?? []) {
                        ids.insert(id)
                        key.fill(0, key.count, with: UInt8(ascii: "-"), name)
                    }
                }
                position += size
            }
        }
        return ids
    }

    private func cleanItems(_ sample: ByteView, _ ids: Set<Int>, _ name: String) {
        var position = 0
        while let size = sample.number(position, 4), size >= 8, let id = sample.number(position + 4, 4) {
            if ids.contains(id) {
                if let place = PlaceText.iso6709(sample.bytes(position + 8, min(size - 8, 200)) ?? []) {
                    file.search.add(FoundPlace(latitude: place.latitude, longitude: place.longitude))
                }
                sample.fill(position + 8, size - 8, with: 0x20, name)
            }
            position += size
        }
    }

    // MARK: Others

    /// Cleans Google's camera motion metadata. A sample of kind 5 contains three doubles. A sample of kind 6 contains a time and
    /// more values. The kind of the sample is replaced by a number without a meaning.
    private func cleanCAMM(_ sample: ByteView, _ name: String) {
        guard let kind = sample.number(2, 2, little: true), kind == 5 || kind == 6 else { return }
        let start = kind == 5 ? 4 : 16
        if let latitude = sample.bytes(start, 8), let longitude = sample.bytes(start + 8, 8) {
            let (x, y) = (
                Double(bitPattern: GPSDirectory.word(latitude, true)), Double(bitPattern: GPSDirectory.word(longitude, true))
            )
            if abs(x) <= 90, abs(y) <= 180, x != 0 { file.search.add(FoundPlace(latitude: x, longitude: y)) }
        }
        sample.overwrite(2, with: [0xFF, 0xFF], name)
        // The number of bytes is fixed, because a sample with a damaged size could include other data.
        sample.fill(4, kind == 5 ? 24 : 56, name)
    }

    /// Cleans Sony's list of numbers, sizes and values. The tags of GPS are 0x8500 to 0x851F. If the list is damaged, all its
    /// bytes are searched for these tags.
    private func cleanSony(_ sample: ByteView, _ name: String) {
        let bytes = sample.allBytes()
        func size(at position: Int) -> Int { Int(bytes[position + 2]) << 8 | Int(bytes[position + 3]) }
        func isLocation(_ position: Int) -> Bool {
            bytes[position] == 0x85 && (1...0x1F).contains(bytes[position + 1]) && size(at: position) <= 64
                && position + 4 + size(at: position) <= bytes.count
        }
        // The size of the header is stored before the header.
        var (position, found) = (sample.number(0, 2) ?? 0, [Int]())
        while position >= 4, position + 4 <= bytes.count, bytes[position] >= 0x80 || bytes[position] == 0x06 {
            if isLocation(position) { found.append(position) }
            // The label of a group has 16 bytes and no size.
            position += bytes[position] == 0x06 ? 16 : 4 + size(at: position)
        }
        // Only zeros follow a complete list.
        let isList = position >= 4 && position <= bytes.count && bytes[position...].allSatisfy { $0 == 0 }
        if !isList { found = bytes.indices.dropLast(3).filter(isLocation) }
        for place in found { sample.fill(place + 4, size(at: place), name) }
    }
}
