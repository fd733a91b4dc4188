/// The media data that is listed in the file's index tables: the samples of a film's tracks and fragments, and the items of a
/// picture.
///
/// A box `mdat` may also contain other bytes. These bytes may be any data, so they are searched like free space.
struct NamedMedia {
    private let film: Film
    private var ranges = ProtectedRanges()

    /// If no location is found, at most this number of bytes is searched in a part of the media data that no index table lists.
    static let longestGap = 256 << 20

    /// A limit above the size of any file, so that sums of offsets and sizes do not overflow.
    private static let maximum = 1 << 58

    init(_ film: Film, _ block: String) {
        self.film = film
        let movies = film.boxes.filter { $0.type == "moov" }
        for track in movies.flatMap(\.children) where track.type == "trak" { addTrack(track) }
        let defaults = movies.compactMap { $0.child("mvex") }.flatMap(\.children).filter { $0.type == "trex" }
        for fragment in film.boxes where fragment.type == "moof" { addFragment(fragment, defaults) }
        for meta in film.boxes where meta.type == "meta" {
            for part in HEIFItems(meta, of: film, block).parts { for range in part.ranges(0..<part.count) { ranges.add(range) } }
        }
        ranges.prepare()
    }

    /// `true` if no index table was found.
    var isEmpty: Bool { ranges.isEmpty }

    /// Returns the parts of a view that no index table lists.
    func unnamed(in view: ByteView) -> [ByteView] {
        view.ranges(0..<view.count).flatMap { ranges.gaps($0) }.map { ByteView(view.search, [$0]) }
    }

    private mutating func add(_ offset: Int, _ size: Int) {
        guard offset >= 0, offset < film.view.count, size > 0 else { return }
        for range in film.view.ranges(offset..<offset + min(size, film.view.count - offset)) { ranges.add(range) }
    }

    /// Returns the numbers of an index table. A number that is larger than the size of any file is replaced by a large offset.
    private static func numbers(_ table: ByteView, from start: Int, width: Int, count: Int) -> [Int] {
        let count = min(count, max(0, table.count - start) / width, LocationSearch.maximumBlock / width)
        guard let bytes = table.bytes(start, count * width) else { return [] }
        return (0..<count).map { index in
            let number = bytes[index * width..<(index + 1) * width].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Int(min(number, UInt64(maximum)))
        }
    }

    // MARK: Tracks

    private mutating func addTrack(_ track: Box) {
        guard let table = track.child("mdia")?.child("minf")?.child("stbl"), let list = table.child("stsc")?.content,
            let runCount = list.number(4, 4), let offsets = (table.child("co64") ?? table.child("stco"))?.content,
            let chunkCount = offsets.number(4, 4)
        else { return }
        let runs = Self.numbers(list, from: 8, width: 4, count: 3 * runCount)
        let chunks = Self.numbers(offsets, from: 8, width: table.child("co64") == nil ? 4 : 8, count: chunkCount)
        let sizes = sizes(table)
        // Some tools count the offsets from the beginning of the file.
        let isOfFile =
            film.start > 0
            && chunks.count { film.data(at: $0 - film.start) != nil } > chunks.count { film.data(at: $0) != nil }
        var (run, perChunk, sample) = (0, 0, 0)
        for (index, offset) in chunks.enumerated() {
            while 3 * run + 2 < runs.count, runs[3 * run] <= index + 1 || run == 0 {
                perChunk = runs[3 * run + 1]
                run += 1
            }
            var size = min(perChunk, 1 << 24) * sizes.uniform
            if sizes.uniform == 1, let sound = Self.sound(table) { size = min(perChunk, 1 << 24) / sound.samples * sound.bytes }
            if sizes.uniform == 0 {
                let end = min(sizes.each.count, sample + perChunk)
                size = sizes.each[sample..<end].reduce(0, +)
                sample = end
            }
            add(offset - (isOfFile ? film.start : 0), size)
        }
    }

    /// Reads the description of the sound, and returns the number of samples and the number of bytes of one frame. The tables of
    /// QuickTime count a sample of sound as one byte.
    private static func sound(_ table: Box) -> (samples: Int, bytes: Int)? {
        guard let list = table.child("stsd")?.content, let entry = Box.all(in: list, from: 8).first?.content,
            let version = entry.number(8, 2)
        else { return nil }
        if version == 1, let samples = entry.number(28, 4), let bytes = entry.number(36, 4), samples > 0 {
            return (samples, bytes)
        }
        guard let channels = entry.number(16, 2), let bits = entry.number(18, 2), channels * bits >= 8 else { return nil }
        return (1, channels * bits / 8)
    }

    /// Returns the size of all samples if their sizes are equal. If the sizes differ, returns 0 and the size of each sample.
    private func sizes(_ table: Box) -> (uniform: Int, each: [Int]) {
        if let list = table.child("stsz")?.content, let uniform = list.number(4, 4), let count = list.number(8, 4) {
            return (uniform, uniform > 0 ? [] : Self.numbers(list, from: 12, width: 4, count: count))
        }
        guard let list = table.child("stz2")?.content, let width = list.number(7, 1), let count = list.number(8, 4) else {
            return (0, [])
        }
        switch width {
        case 4: return (0, Self.numbers(list, from: 12, width: 1, count: (count + 1) / 2).flatMap { [$0 >> 4, $0 & 15] })
        case 8, 16: return (0, Self.numbers(list, from: 12, width: width / 8, count: count))
        default: return (0, [])
        }
    }

    // MARK: Fragments

    private mutating func addFragment(_ fragment: Box, _ defaults: [Box]) {
        var end: Int?
        for part in fragment.children where part.type == "traf" {
            guard let header = part.child("tfhd")?.content, let flags = header.number(1, 3), let number = header.number(4, 4)
            else { continue }
            var reader = BoxReader(header, at: 8)
            let base = min(reader.number(flags & 1 != 0 ? 8 : 0) ?? 0, Self.maximum)
            _ = reader.number(flags & 2 != 0 ? 4 : 0)
            _ = reader.number(flags & 8 != 0 ? 4 : 0)
            let usual = defaults.first { $0.content.number(4, 4) == number }?.content.number(16, 4) ?? 0
            let size = flags & 0x10 != 0 ? reader.number(4) ?? 0 : usual
            var start = flags & 1 != 0 ? base : flags & 0x20000 != 0 ? fragment.start : end ?? fragment.start
            if flags & 1 != 0, film.data(at: start) == nil, start != fragment.start { start -= film.start }
            var position = start
            for run in part.children where run.type == "trun" { position = addRun(run.content, start, position, size) }
            end = flags & 1 != 0 ? nil : position
        }
    }

    /// - Returns: The position after the last sample.
    private mutating func addRun(_ run: ByteView, _ start: Int, _ position: Int, _ usual: Int) -> Int {
        guard let flags = run.number(1, 3), let count = run.number(4, 4) else { return position }
        var (position, first) = (position, 8)
        if flags & 1 != 0 {
            position = start + Int(Int32(truncatingIfNeeded: run.number(8, 4) ?? 0))
            first += 4
        }
        if flags & 4 != 0 { first += 4 }
        let width = (flags & 0xF00).nonzeroBitCount
        var total = min(count, 1 << 24) * usual
        if flags & 0x200 != 0 {
            let values = Self.numbers(run, from: first, width: 4, count: count * width)
            let offset = flags & 0x100 != 0 ? 1 : 0
            total = stride(from: offset, to: values.count, by: width).reduce(0) { $0 + values[$1] }
        }
        add(position, total)
        return min(position + total, Self.maximum)
    }
}
