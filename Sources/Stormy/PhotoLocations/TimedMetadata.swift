/// A track of metadata that changes over time: places of telemetry, of Apple's and Google's phones, of cameras, and of subtitles.
struct TimedMetadata {
    private let track: Box
    private let file: ByteView
    private let block: String
    private let isFragmented: Bool

    private static let coded: Set<String> = ["vide", "soun", "hint", "tmcd", "pict", "auxv"]
    /// Formats whose samples are positions, or cannot be read and hold positions.
    private static let blanked: Set<String> = ["djmd", "dbgi", "gps0", "gpsf", "3gf ", "SVMI"]
    private static let maximumSamples = 500_000

    init(_ track: Box, file: ByteView, _ block: String, isFragmented: Bool) {
        (self.track, self.file, self.block, self.isFragmented) = (track, file, block, isFragmented)
    }

    func clean() {
        guard let media = child(track, "mdia"), let handler = child(media, "hdlr")?.handler, !Self.coded.contains(handler),
            let table = child(media, "minf").flatMap({ child($0, "stbl") }), let description = child(table, "stsd")
        else { return }
        for entry in Box.all(in: description.content, from: 8) {
            let name = "timed metadata (\(entry.type)) of \(block)"
            let format = handler == "camm" ? handler : entry.type
            let ids = entry.type == "mebx" ? cleanKeys(entry, name) : []
            if entry.type == "mebx", ids.isEmpty { continue }
            let samples = self.samples(of: table, name)
            if isFragmented, samples.isEmpty,
                entry.type == "mebx" || ["gpmd", "camm", "rtmd", "mett", "RVMI"].contains(entry.type)
            {
                file.search.fail(.unproven(block: name))
            }
            for sample in samples where !file.search.isFinished { clean(sample, format, ids, name) }
            if entry.type == "gpmd" { cleanTelemetry(name) }
        }
    }

    /// Telemetry that the tables do not lead to.
    private func cleanTelemetry(_ name: String) {
        var from = 0
        while let place = file.find(Array("DEVC\0".utf8), from: from), !file.search.isFinished {
            from = place + 5
            if file.has("DVID", at: place + 8), let size = file.number(place + 6, 2), let width = file.number(place + 5, 1) {
                GPMFBlock(file.part(place, 8 + size * width), name).clean()
            }
        }
    }

    private func child(_ box: Box, _ type: String) -> Box? { box.children.first { $0.type == type } }

    // MARK: Samples

    /// The samples, by the tables of sizes, of chunks, and of offsets.
    private func samples(of table: Box, _ name: String) -> [ByteView] {
        guard let sizes = child(table, "stsz")?.content, let runs = child(table, "stsc")?.content,
            let uniform = sizes.number(4, 4),
            let count = sizes.number(8, 4)
        else { return [] }
        let long = child(table, "co64")?.content
        guard let offsets = long ?? child(table, "stco")?.content, let chunks = offsets.number(4, 4),
            let runCount = runs.number(4, 4)
        else {
            return []
        }
        guard count <= Self.maximumSamples else {
            file.search.fail(.tooExpensive(name))
            return []
        }
        let data = Box.all(in: file).filter { !["ftyp", "moov", "moof", "meta"].contains($0.type) }.map {
            $0.start..<$0.start + $0.size
        }
        var (result, run, perChunk) = ([ByteView](), 0, 0)
        for chunk in 0..<min(chunks, Self.maximumSamples) {
            while run < runCount, let first = runs.number(8 + 12 * run, 4), first <= chunk + 1 || run == 0 {
                perChunk = runs.number(12 + 12 * run, 4) ?? 0
                run += 1
            }
            guard var offset = long == nil ? offsets.number(8 + 4 * chunk, 4) : offsets.number(8 + 8 * chunk, 8) else { break }
            for _ in 0..<perChunk {
                guard result.count < count, let size = uniform > 0 ? uniform : sizes.number(12 + 4 * result.count, 4) else {
                    return result
                }
                // A damaged size or offset must not reach other boxes.
                let end = data.first { $0.contains(offset) }?.upperBound ?? 0
                if end > offset {
                    result.append(file.part(offset, min(size, end - offset)))
                } else {
                    result.append(file.part(0, 0))
                }
                offset += size
            }
        }
        return result
    }

    private func clean(_ sample: ByteView, _ format: String, _ ids: Set<Int>, _ name: String) {
        switch format {
        // Dashcams store other formats under the name of GoPro's.
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

    /// Records of Parrot's drones: E or P and a digit, or 60 bytes of the first version. Every record has a position.
    private static func isParrot(_ sample: ByteView) -> Bool {
        guard let mark = sample.bytes(0, 2) else { return false }
        return "EP".utf8.contains(mark[0]) && (48...57).contains(mark[1]) || sample.count == 60
    }

    // MARK: Apple

    /// The numbers of the keys that are about a location. Their names are overwritten.
    private func cleanKeys(_ entry: Box, _ name: String) -> Set<Int> {
        var ids: Set<Int> = []
        for list in Box.all(in: entry.content, from: 8) where list.type == "keys" {
            var position = 0
            // The type of each box is the number of the key.
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
                    file.search.note(FoundPlace(latitude: place.latitude, longitude: place.longitude))
                }
                sample.fill(position + 8, size - 8, with: 0x20, name)
            }
            position += size
        }
    }

    // MARK: Others

    /// Google's camera motion metadata: kind 5 has three doubles, kind 6 a time and more. The kind gets a number without meaning.
    private func cleanCAMM(_ sample: ByteView, _ name: String) {
        guard let kind = sample.number(2, 2, little: true), kind == 5 || kind == 6 else { return }
        let start = kind == 5 ? 4 : 16
        if let latitude = sample.bytes(start, 8), let longitude = sample.bytes(start + 8, 8) {
            let (x, y) = (
                Double(bitPattern: GPSDirectory.word(latitude, true)), Double(bitPattern: GPSDirectory.word(longitude, true))
            )
            if abs(x) <= 90, abs(y) <= 180, x != 0 { file.search.note(FoundPlace(latitude: x, longitude: y)) }
        }
        sample.overwrite(2, with: [0xFF, 0xFF], name)
        // A damaged size must not reach other data.
        sample.fill(4, kind == 5 ? 24 : 56, name)
    }

    /// Sony's list of numbers, sizes and values: 0x8500 to 0x851F are the tags of GPS.
    private func cleanSony(_ sample: ByteView, _ name: String) {
        let bytes = sample.allBytes()
        var position = 0
        while position + 4 <= bytes.count {
            let size = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
            if bytes[position] == 0x85, (1...0x1F).contains(bytes[position + 1]), size <= 64, position + 4 + size <= bytes.count {
                sample.fill(position + 4, size, name)
                position += 4 + size
            } else {
                position += 1
            }
        }
    }
}
