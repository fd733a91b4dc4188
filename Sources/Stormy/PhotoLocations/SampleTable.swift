/// A film or a picture that consists of boxes. A file may contain several films or pictures, one after the other.
struct Film {
    /// The bytes from the beginning of this film to the next film.
    let view: ByteView
    /// The beginning of the film in the file. Some tools count offsets from the beginning of the file.
    let start: Int
    let boxes: [Box]
    /// The top-level boxes that may contain samples.
    let data: [Range<Int>]

    init(_ view: ByteView) {
        (self.view, start) = (view, max(0, view.offset(0)))
        boxes = Box.all(in: view)
        data = boxes.filter { !["ftyp", "moov", "moof", "meta"].contains($0.type) }.map {
            $0.start + $0.header..<max($0.start + $0.header, min($0.start + $0.size, view.count))
        }
    }

    /// Returns the data box that contains a position.
    func data(at position: Int) -> Range<Int>? {
        var (low, high) = (0, data.count)
        while low < high {
            let middle = (low + high) / 2
            if data[middle].upperBound > position { high = middle } else { low = middle + 1 }
        }
        return low < data.count && data[low].contains(position) ? data[low] : nil
    }
}

/// The samples (pictures or pieces of sound) of one track of a film. The samples are listed in the index tables of the film (ISO
/// 14496-12 §8.7) and of its fragments (§8.8).
struct SampleTable {
    private struct Position {
        var offset: Int
        var size: Int
    }

    private let track: Box
    private let table: Box
    private let film: Film
    private let name: String
    /// The stored offsets, and the offsets that are counted from the beginning of the film.
    private var (stored, relative): ([Position], [Position]) = ([], [])
    /// `false` if the tables that list the samples of this video or sound track cannot be read.
    private(set) var isReadable = true

    private static let maximumSamples = 500_000
    /// A limit above the size of any file, so that sums of offsets and sizes do not overflow.
    private static let maximumOffset = 1 << 60

    /// - Parameters:
    ///   - table: The box `stbl` of the track.
    ///   - name: The name of the track, for messages.
    init(_ track: Box, _ table: Box, of film: Film, _ name: String) {
        (self.track, self.table, self.film, self.name) = (track, table, film, name)
        readTables()
        readFragments()
    }

    /// Returns the bytes of each sample. Samples after the end of the film are left out, because the file is incomplete.
    ///
    /// If an index table lists a position outside the boxes with data, for example in the box `moov`, the search fails.
    func samples() -> [ByteView] {
        // Offsets can be counted from the beginning of the file or of the film. Stormy uses the variant in which more samples are
        // inside the data boxes.
        let isOfFile = film.start > 0 && count(from: film.start) > count(from: 0)
        let positions = stored.map { Position(offset: $0.offset - (isOfFile ? film.start : 0), size: $0.size) } + relative
        return positions.filter { $0.size > 0 }.compactMap { position in
            if position.offset >= film.view.count { return nil }
            guard let data = film.data(at: position.offset) else {
                film.view.search.fail(.unproven(block: name))
                return nil
            }
            // A sample with a damaged size must not include other boxes.
            return film.view.part(position.offset, min(position.size, data.upperBound - position.offset))
        }
    }

    private func count(from start: Int) -> Int { stored.count { film.data(at: $0.offset - start) != nil } }

    // MARK: Index tables

    private mutating func readTables() {
        guard let runs = table.child("stsc")?.content, let offsets = (table.child("co64") ?? table.child("stco"))?.content,
            let chunks = offsets.number(4, 4), let runCount = runs.number(4, 4), let (count, size) = sizes()
        else {
            isReadable = false
            return
        }
        guard count <= Self.maximumSamples else { return film.view.search.fail(.tooExpensive(name)) }
        let width = table.child("co64") == nil ? 4 : 8
        var (run, perChunk) = (0, 0)
        for chunk in 0..<min(chunks, Self.maximumSamples) {
            while run < runCount, let first = runs.number(8 + 12 * run, 4), first <= chunk + 1 || run == 0 {
                perChunk = runs.number(12 + 12 * run, 4) ?? 0
                run += 1
            }
            guard var offset = offsets.number(8 + width * chunk, width), offset < Self.maximumOffset else { return }
            for _ in 0..<perChunk {
                guard stored.count < count, let size = size(stored.count) else { return }
                stored.append(Position(offset: offset, size: size))
                offset += size
            }
        }
    }

    /// Returns the number of samples, and a function for the size of each sample. The index table contains one size for all
    /// samples, or numbers of 4 to 32 bits.
    private func sizes() -> (count: Int, size: (Int) -> Int?)? {
        if let sizes = table.child("stsz")?.content, let uniform = sizes.number(4, 4), let count = sizes.number(8, 4) {
            return (count, { uniform > 0 ? uniform : sizes.number(12 + 4 * $0, 4) })
        }
        guard let sizes = table.child("stz2")?.content, let width = sizes.number(7, 1), [4, 8, 16].contains(width),
            let count = sizes.number(8, 4)
        else { return nil }
        guard width == 4 else { return (count, { sizes.number(12 + $0 * width / 8, width / 8) }) }
        return (count, { index in sizes.number(12 + index / 2, 1).map { index % 2 == 0 ? $0 >> 4 : $0 & 15 } })
    }

    // MARK: Fragments

    private mutating func readFragments() {
        let fragments = film.boxes.filter { $0.type == "moof" }
        guard !fragments.isEmpty, let header = track.child("tkhd")?.content,
            var number = header.number(header.number(0, 1) == 1 ? 20 : 12, 4)
        else { return }
        let movie = film.boxes.filter { $0.type == "moov" }.flatMap(\.children)
        let defaults = movie.first { $0.type == "mvex" }?.children.first {
            $0.type == "trex" && $0.content.number(4, 4) == number
        }
        // If the film has only one track, a fragment with a damaged track number belongs to this track.
        if movie.count(where: { $0.type == "trak" }) == 1,
            let only = fragments[0].child("traf")?.child("tfhd")?.content.number(4, 4)
        {
            number = only
        }
        let usual = defaults?.content.number(16, 4) ?? 0
        for fragment in fragments {
            var end: Int?
            for part in fragment.children where part.type == "traf" {
                end = readFragment(part, in: fragment, behind: end, number, usual)
            }
        }
    }

    /// - Returns: The position after the data of this part. `nil` if this position is unknown.
    private mutating func readFragment(_ part: Box, in fragment: Box, behind end: Int?, _ number: Int, _ usual: Int) -> Int? {
        guard let header = part.child("tfhd")?.content, let flags = header.number(1, 3) else { return nil }
        let isTrack = header.number(4, 4) == number
        var reader = BoxReader(header, at: 8)
        let base = reader.number(flags & 1 != 0 ? 8 : 0) ?? 0
        _ = reader.number(flags & 2 != 0 ? 4 : 0)
        _ = reader.number(flags & 8 != 0 ? 4 : 0)
        let size = flags & 0x10 != 0 ? reader.number(4) ?? 0 : isTrack ? usual : 0
        guard base < Self.maximumOffset else { return nil }
        let isStored = flags & 1 != 0
        let start = isStored ? base : flags & 0x20000 != 0 ? fragment.start : end ?? fragment.start
        var position = start
        for run in part.children where run.type == "trun" {
            guard let flags = run.content.number(1, 3), let count = run.content.number(4, 4) else { break }
            var reader = BoxReader(run.content, at: 8)
            if flags & 1 != 0 { position = start + Int(Int32(truncatingIfNeeded: reader.number(4) ?? 0)) }
            _ = reader.number(flags & 4 != 0 ? 4 : 0)
            for _ in 0..<(flags & 0xF00 == 0 && !isTrack ? 0 : count) {
                guard stored.count + relative.count < Self.maximumSamples else {
                    film.view.search.fail(.tooExpensive(name))
                    return nil
                }
                guard reader.number(flags & 0x100 != 0 ? 4 : 0) != nil,
                    let size = flags & 0x200 != 0 ? reader.number(4) : size,
                    reader.number(flags & 0x400 != 0 ? 4 : 0) != nil, reader.number(flags & 0x800 != 0 ? 4 : 0) != nil,
                    position < Self.maximumOffset
                else { break }
                if isTrack {
                    let sample = Position(offset: position, size: size)
                    if isStored { stored.append(sample) } else { relative.append(sample) }
                }
                position += size
            }
        }
        return isStored ? nil : position
    }
}
