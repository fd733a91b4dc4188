/// A file of boxes: HEIC, AVIF, CR3, MP4, MOV, JPEG XL, JPEG 2000.
struct BoxFile {
    private static let first: Set<String> = [
        "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp", "moof", "PICT", "pict", "junk", "uuid", "JXL ", "jP  ",
        "jP\u{1A}\u{1A}",
    ]
    private static let tops: Set<String> = ["meta", "mfra", "sidx", "emsg", "prft", "mpvd", "jxlc", "jxlp", "jp2h", "jp2c"]
    private static let lists: Set<String> = [
        "moov", "trak", "mdia", "minf", "udta", "moof", "traf", "edts", "jp2h", "asoc", "gpmf", "ilst",
    ]
    /// The types of boxes with coded pictures or sound, and of boxes with index tables of pictures and sound.
    private static let pixels: Set<String> = [
        "jxlc", "jxlp", "stbl", "ftyp", "mvhd", "tkhd", "mdhd", "hdlr", "vmhd", "smhd", "dinf", "elst",
        "mvex", "sidx", "mfra", "trun", "tfhd", "tfdt", "mfhd", "ihdr",
    ]
    private static let xmp: [UInt8] = [
        0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
    ]
    private static let credentials: [UInt8] = [
        0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
    ]
    private static let canon: [UInt8] = [
        0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
    ]

    /// The types of boxes of 3GP and QuickTime that contain a text and a language code.
    private static let texts: Set<String> = [
        "titl", "dscp", "auth", "perf", "gnre", "cprt", "albm", "kywd", "name", "desc", "info",
    ]
    /// The types of boxes that contain only a location.
    private static let locations: Set<String> = ["©xyz", "loci", "gps ", "GPS ", "@xyz", "gps0", "gpsa", "gsea"]
    /// The identifiers of boxes with positions, from Garmin and 360Fly.
    private static let positions: Set<[UInt8]> = [
        [0x9B, 0x63, 0x0F, 0x8D, 0x63, 0x74, 0x40, 0xEC, 0x82, 0x04, 0xBC, 0x5F, 0xF5, 0x09, 0x17, 0x28],
        [0xEF, 0xE1, 0x58, 0x9A, 0xBB, 0x77, 0x49, 0xEF, 0x80, 0x95, 0x27, 0x75, 0x9E, 0xB1, 0xDC, 0x6F],
    ]

    private let film: Film
    private var view: ByteView { film.view }
    private let block: String

    /// The view contains all bytes of the file, because other films may follow the first film.
    init(_ view: ByteView, _ block: String) { self.init(film: Film(view), block) }

    private init(film: Film, _ block: String) { (self.film, self.block) = (film, block) }

    static func isPlausible(_ view: ByteView) -> Bool {
        guard let box = Box(view, at: 0) else { return false }
        // The name of the first box can be damaged, so the second box is also checked.
        return first.contains(box.type) || Box(view, at: box.size).map { first.contains($0.type) } ?? false
    }

    func clean() {
        guard view.search.begin("boxes", at: view.offset(0)) else { return }
        view.search.nest(block) {
            var start = 0
            // The offsets in an appended film are relative to the beginning of this film.
            for end in nextFilms + [view.count] where !view.search.isFinished {
                let part = view.part(start, end - start)
                if start == 0 || view.search.begin("boxes", at: part.offset(0)) {
                    BoxFile(film: Film(part), block).cleanBoxes()
                }
                start = end
            }
        }
    }

    /// The end of the top-level boxes of a film. `nil` if a top-level box is unknown.
    var knownEnd: Int? {
        var end = 0
        while let box = Box(view, at: end), Self.first.contains(box.type) || Self.tops.contains(box.type) { end += box.size }
        return end > 0 ? min(end, view.count) : nil
    }

    /// The positions of other films in the file.
    private var nextFilms: [Int] {
        var (result, hasContent) = ([Int](), false)
        for box in film.boxes {
            if box.type == "ftyp", hasContent {
                result.append(box.start)
                hasContent = false
            } else if !["ftyp", "JXL ", "jP  ", "free", "skip", "wide"].contains(box.type) {
                hasContent = true
            }
        }
        return result
    }

    private func cleanBoxes() {
        var (position, media) = (0, [Box]())
        while let box = Box(view, at: position), Self.isName(box.type) || isBox(behind: box), !view.search.isFinished {
            if box.type == "mdat" { media.append(box) }
            clean(box, depth: 0)
            position += box.size
        }
        if !media.isEmpty { cleanUnnamed(media) }
        if position < view.count { Trailer(view.from(position)).clean() }
    }

    /// Returns whether a known box follows `box`. If a known box follows, `box` is a real box with a damaged name.
    private func isBox(behind box: Box) -> Bool {
        guard let next = Box(view, at: box.start + box.size) else { return false }
        return Self.first.contains(next.type) || Self.lists.contains(next.type) || Self.pixels.contains(next.type)
            || next.type == "jp2c"
    }

    private static func isName(_ type: String) -> Bool {
        type.unicodeScalars.allSatisfy { (0x20...0x7E).contains($0.value) || $0.value == 0xA9 } || type.hasPrefix("jP")
    }

    private func clean(_ box: Box, depth: Int) {
        guard depth < 16 else { return view.search.fail(.tooExpensive(block)) }
        let name = "box \(box.type) of \(block)"
        if depth == 0 || box.type == "uuid" { box.content.recordBlock(name) }
        switch box.type {
        case "uuid": cleanUUID(box, depth, name)
        case "Exif": cleanExif(box.content, name)
        case "xml ", "XMP_": XMPText(box.content, "XMP in \(name)").clean()
        case "brob": box.free("all compressed metadata (\(box.content.name(0))) in \(name), which cannot be searched")
        case "jbrd":
            if JPEGReconstruction(box.content).holdsUnknownMarkers {
                box.free("the data that restores the old JPEG file, with compressed markers, in \(name)")
            } else if isWithoutMetadata {
                box.free("the data that restores the old JPEG file in \(name)")
            } else {
                box.content.recordPixels(0, box.content.count)
            }
        case "jumb": ContentCredentials(box.content, "content credentials (C2PA) in \(name)").register { box.free($0) }
        case "GPMF": GPMFBlock(box.content, "telemetry (GPMF) in \(name)").clean()
        case "CMT1", "CMT2", "CMT3", "CMT4":
            if var tiff = TIFFFile(box.content, "Exif in \(name)", isGPS: box.type == "CMT4") {
                tiff.clean()
                if box.type == "CMT3" { tiff.cleanMakerNote(of: "Canon") }
            }
        case "NCDT": MovieMetadata(box, name).cleanNikon()
        case "meta":
            if !holdsBoxes(box) { OpaqueBytes(box.content, name).clean() }
            MovieMetadata(box, name).cleanKeys()
            HEIFItems(box, of: film, block).clean()
            for child in box.children where !["keys", "ilst", "iinf", "iloc", "idat", "iprp"].contains(child.type) {
                clean(child, depth: depth + 1)
            }
        case "moov": cleanMovie(box, depth)
        case "free", "skip": cleanSpace(box, depth, name)
        case "cmov": cleanCompressedMovie(box, name)
        case "mdat":
            MediaSearch(box.content, name).clean()
            box.content.recordPixels(0, box.content.count)
        case "jp2c":
            let end = Codestream(box.content, "picture in \(block)").clean()
            if end > 0 { OpaqueBytes(box.content.from(end), name).clean() }
        case _ where Self.locations.contains(box.type): MovieMetadata(box, name).cleanLocation(in: film)
        case "sefd": Trailer(box.content).clean()
        default:
            if Self.lists.contains(box.type) {
                for child in box.children { clean(child, depth: depth + 1) }
            } else if Self.pixels.contains(box.type) {
                box.content.recordPixels(0, box.content.count)
            } else {
                if box.type.hasPrefix("©") || Self.texts.contains(box.type) { OpaqueBytes(box.content, name).cleanText() }
                OpaqueBytes(box.content, name).cleanAny()
            }
        }
    }

    /// Searches the media data that no index table lists. Dashcams and editors store text in such data.
    private func cleanUnnamed(_ boxes: [Box]) {
        let named = NamedMedia(film, block)
        for part in boxes.flatMap({ named.unnamed(in: $0.content) }) where part.count > 8 && !view.search.isFinished {
            // If the file has no index table, no table lists the media data. Without an index table, a long film is read to its
            // end only if its beginning contains a location.
            let beginning = part.part(0, named.isEmpty ? MediaSearch.beginning : NamedMedia.longestGap)
            OpaqueBytes(beginning, "box mdat of \(block)").clean()
            if beginning.isTouched, beginning.count < part.count {
                OpaqueBytes(part.from(beginning.count - 1_000), "box mdat of \(block)").clean()
            }
        }
    }

    /// `true` if compressed Exif or XMP is removed. The original JPEG file cannot be restored without this metadata.
    private var isWithoutMetadata: Bool {
        Box.all(in: view).contains { $0.type == "brob" && ["Exif", "xml "].contains($0.content.name(0)) }
    }

    private func cleanMovie(_ box: Box, _ depth: Int) {
        let children = box.children
        for child in children { clean(child, depth: depth + 1) }
        for track in children where track.type == "trak" { TimedMetadata(track, of: film, block).clean() }
    }

    private func holdsBoxes(_ box: Box) -> Bool {
        let children = box.children
        return children.last.map { $0.start + $0.size == box.content.count } ?? false
            && children.allSatisfy { Self.isName($0.type) }
    }

    /// Cleans free space, which may contain any data. Editors change old boxes to free space, and dashcams store boxes in free
    /// space.
    private func cleanSpace(_ box: Box, _ depth: Int, _ name: String) {
        if holdsBoxes(box) {
            for child in box.children { clean(child, depth: depth + 1) }
        } else {
            OpaqueBytes(box.content, name).cleanAny()
        }
    }

    /// Cleans a box `cmov`, which contains a deflated box `moov` of QuickTime. The size of the inflated box (four bytes) is
    /// stored before the deflated bytes.
    private func cleanCompressedMovie(_ box: Box, _ name: String) {
        guard let data = box.child("cmvd")?.content.from(4), let movie = Deflate.inflate(data.allBytes(), limit: 32 << 20) else {
            return view.search.fail(.unproven(block: name))
        }
        let directory = Box(ByteView(LocationSearch(MemoryBytes(movie))), at: 0)
        // The samples of a metadata track are in this file, but the index tables that list the samples are in the deflated box.
        // Stormy therefore cannot find the samples.
        if directory?.children.contains(where: { $0.type == "trak" && TimedMetadata.isMetadata($0) }) ?? true {
            return view.search.fail(.unproven(block: name))
        }
        view.search.clean(nested: movie, as: name) { changed in
            if let stored = Deflate.deflate(changed, into: data.count) {
                data.overwrite(0, with: stored, name)
            } else {
                view.search.fail(.unproven(block: name))
            }
        }
    }

    /// Cleans a content that consists of the offset of the TIFF header and a TIFF structure.
    private func cleanExif(_ content: ByteView, _ name: String) {
        let start = 4 + (content.number(0, 4) ?? 0)
        if var tiff = TIFFFile(content.from(start), "Exif in \(name)") {
            tiff.clean()
        } else {
            OpaqueBytes(content, name).clean()
        }
    }

    private func cleanUUID(_ box: Box, _ depth: Int, _ name: String) {
        let content = box.content.from(16)
        switch box.content.bytes(0, 16) {
        case Self.xmp: XMPText(content, "XMP in \(name)").clean()
        case Self.credentials: ContentCredentials(content, "content credentials (C2PA) in \(name)").register { box.free($0) }
        case Self.canon: for child in Box.all(in: content) { clean(child, depth: depth + 1) }
        case let identifier? where Self.positions.contains(identifier): box.free(name)
        default:
            if box.content.has("JpgTiffExif->JP2", at: 0), var tiff = TIFFFile(content, "Exif in \(name)") {
                tiff.clean()
            } else {
                OpaqueBytes(content, name).cleanAny()
            }
        }
    }
}
