import Glibc

/// A JPEG file, or one of the JPEG pictures in a file. The type reads the segments, the scans, and the data after the scans.
struct JPEGFile {
    private let view: ByteView
    private let block: String

    /// - Parameter view: The bytes from the start marker (SOI) to the end.
    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private struct Segment {
        var marker: UInt8
        var content: ByteView
    }

    /// - Returns: The end of the picture in the view, after the last marker.
    @discardableResult
    func clean() -> Int {
        guard view.has([0xFF, 0xD8], at: 0), view.search.begin("JPEG", at: view.offset(0)) else { return 0 }
        let (segments, end) = readSegments()
        view.search.nest(block) {
            cleanExif(segments)
            cleanXMP(segments)
            cleanPhotoshop(segments)
            cleanJoined(segments)
        }
        return end
    }

    // MARK: Structure

    private func readSegments() -> ([Segment], end: Int) {
        var (position, segments) = (2, [Segment]())
        while let byte = view.number(position, 1), !view.search.isFinished {
            guard byte == 0xFF, let marker = view.number(position + 1, 1) else {
                // Bytes between segments are skipped, because readers of JPEG also skip such bytes.
                position = nextMarker(from: position)
                continue
            }
            switch marker {
            case 0xFF: position += 1
            case 0xD9:
                view.recordPixels(position, 2)
                return (segments, position + 2)
            case 0x00, 0x01, 0xD0...0xD8: position += 2
            default:
                guard let size = view.number(position + 2, 2) else { return (segments, view.count) }
                let content = view.part(position + 4, size - 2)
                if marker >= 0xE0 || segments.count < 100_000 {
                    segments.append(Segment(marker: UInt8(marker), content: content))
                }
                if (0xC0..<0xE0).contains(marker) { view.recordPixels(position, 2 + size) }
                position += 2 + max(2, size)
                if marker == 0xDA {
                    let end = nextMarker(from: position)
                    view.recordPixels(position, end - position)
                    position = end
                }
            }
        }
        return (segments, view.count)
    }

    /// Returns the next marker after the coded pixels. Stuffed zeros and restart markers are skipped. Returns the end of the view
    /// if there is no such marker.
    private func nextMarker(from start: Int) -> Int {
        var position = start
        while position < view.count {
            guard let piece = view.bytes(position, min(1 << 18, view.count - position)) else { break }
            var index = 0
            while let found = piece.firstRange(of: [0xFF], from: index) {
                guard found + 1 < piece.count else { break }
                let marker = piece[found + 1]
                if marker != 0, marker != 0xFF, !(0xD0...0xD7).contains(marker) { return position + found }
                index = found + (marker == 0xFF ? 1 : 2)
            }
            // If the last of the read bytes is 0xFF, this byte is read again together with the next byte.
            if piece.count < 2 { break }
            position += piece.last == 0xFF ? piece.count - 1 : piece.count
            if position == view.count - 1 { break }
        }
        return view.count
    }

    // MARK: Metadata

    private func isJoined(_ segment: Segment) -> Bool {
        segment.marker == 0xE1 && (segment.content.has(Self.xmp, at: 0) || segment.content.has(Self.extended, at: 0))
            || segment.marker == 0xE1 && segment.content.has("FLIR\0", at: 0)
            || segment.marker == 0xED && segment.content.has(Self.photoshop, at: 0)
            || segment.marker == 0xEB && segment.content.has("JP", at: 0)
    }

    private func cleanExif(_ segments: [Segment]) {
        // Markers below 0xC0 are reserved. Readers skip segments with these markers, so these segments may contain any data.
        for segment in segments where !(0xC0..<0xE0).contains(segment.marker) && segment.content.count > 4 && !isJoined(segment) {
            let number = segment.marker < 0xC0 ? "segment \(segment.marker)" : "APP\(segment.marker & 15)"
            let name = "\(segment.marker == 0xFE ? "comment" : number) of \(block)"
            segment.content.recordBlock(name)
            if segment.marker == 0xE2, segment.content.has("ICC_PROFILE\0", at: 0) { continue }
            if segment.marker == 0xE1, segment.content.has("Exif\0", at: 0) {
                segment.content.recordBlock("Exif of \(block)")
                if var tiff = TIFFFile(segment.content.from(6), "Exif of \(block)") {
                    tiff.clean()
                    continue
                }
            }
            if segment.marker == 0xFE { continue }
            if segment.content.has("GoPro\0", at: 0) { GPMFBlock(segment.content.from(6), "telemetry (GPMF) in \(name)").clean() }
            OpaqueBytes(segment.content, name).clean()
        }
        cleanSplitExif(segments)
        // A long comment may be split into several segments at any letter, so the comments are searched as one text.
        let comments = segments.filter { $0.marker == 0xFE }.map(\.content)
        let joined = ByteView(joining: comments, in: view.search)
        OpaqueBytes(joined, "comment of \(block)").cleanText()
        for comment in comments { OpaqueBytes(comment, "comment of \(block)").clean() }
    }

    /// Cleans Exif in several segments. Each segment begins with "Exif". In the first segment, the TIFF header follows.
    private func cleanSplitExif(_ segments: [Segment]) {
        let parts = segments.filter { $0.marker == 0xE1 && $0.content.has("Exif\0\0", at: 0) }.map { $0.content.from(6) }
        guard parts.count > 1, parts.dropFirst().contains(where: { TIFFFile($0, "")?.hasKnownVersion != true }) else { return }
        let joined = ByteView(joining: parts, in: view.search)
        if var tiff = TIFFFile(joined, "Exif in several segments of \(block)"), view.search.begin("joined", at: joined.offset(0))
        {
            tiff.clean(again: true)
        }
    }

    private static let xmp = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
    private static let extended = Array("http://ns.adobe.com/xmp/extension/\0".utf8)
    private static let photoshop = Array("Photoshop 3.0\0".utf8)

    private func cleanXMP(_ segments: [Segment]) {
        let mains = segments.filter { $0.marker == 0xE1 && $0.content.has(Self.xmp, at: 0) }.map {
            $0.content.from(Self.xmp.count)
        }
        for main in mains { XMPText(main, "XMP of \(block)").clean() }
        // Each part of extended XMP contains the digest, the complete size, and the offset of the part.
        var parts: [[UInt8]: [(offset: Int, part: ByteView)]] = [:]
        let start = Self.extended.count
        for segment in segments where segment.marker == 0xE1 && segment.content.has(Self.extended, at: 0) {
            guard let digest = segment.content.bytes(start, 32), let offset = segment.content.number(start + 36, 4) else {
                continue
            }
            parts[digest, default: []].append((offset, segment.content))
        }
        for (digest, list) in parts {
            let list = list.sorted { $0.offset < $1.offset }
            let joined = ByteView(joining: list.map { $0.part.from(start + 40) }, in: view.search)
            let name = "extended XMP of \(block)"
            let isDigest = digest == MD5.hexadecimal(MD5.digest(of: joined.allBytes()))
            XMPText(joined, name).clean()
            guard joined.isTouched, isDigest else { continue }
            let new = MD5.hexadecimal(MD5.digest(of: joined.allBytes()))
            for (_, part) in list { part.overwrite(start, with: new, name) }
            for main in mains {
                var from = 0
                while let place = main.find(digest, from: from) {
                    main.overwrite(place, with: new, name)
                    from = place + 32
                }
            }
        }
    }

    /// Cleans Photoshop segments. Consecutive segments together contain one list of resources.
    private func cleanPhotoshop(_ segments: [Segment]) {
        var run: [ByteView] = []
        func flush() {
            if !run.isEmpty {
                PhotoshopResources(ByteView(joining: run, in: view.search), "Photoshop resources of \(block)").clean()
            }
            run = []
        }
        for segment in segments {
            if segment.marker == 0xED, segment.content.has(Self.photoshop, at: 0) {
                let part = segment.content.from(Self.photoshop.count)
                // A segment that begins with the signature 8BIM may begin another list of resources.
                if part.has("8BIM", at: 0), let last = run.last, !last.has("8BIM", at: 0) || last.count < 65_000 { flush() }
                run.append(part)
            } else {
                flush()
            }
        }
        flush()
    }

    /// Cleans blocks that are longer than one segment: thermal data and content credentials.
    private func cleanJoined(_ segments: [Segment]) {
        // The bytes after the signature are a byte 1, the number of the part, and the number of the last part.
        let thermal = segments.filter { $0.marker == 0xE1 && $0.content.has("FLIR\0", at: 0) && $0.content.count > 8 }
        if !thermal.isEmpty {
            let joined = ByteView(joining: thermal.map { $0.content.from(8) }, in: view.search)
            FLIRFile(joined, "thermal data (FLIR) of \(block)").clean()
        }
        // The bytes after the signature are the number of the box (2 bytes) and the number of the packet (4 bytes).
        let boxes = segments.filter { $0.marker == 0xEB && $0.content.has("JP", at: 0) && $0.content.count > 8 }
        guard !boxes.isEmpty else { return }
        for (_, list) in Dictionary(grouping: boxes, by: { $0.content.number(2, 2) ?? 0 }) {
            let joined = ByteView(joining: list.map { $0.content.from(8) }, in: view.search)
            ContentCredentials(joined, "content credentials (C2PA) of \(block)").register { name in
                for segment in list { segment.content.fill(0, segment.content.count, name) }
            }
        }
    }
}
