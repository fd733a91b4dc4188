import Testing

@testable import PhotoLocations

/// Returns the bytes of test files in every format.
enum Samples {
    static let (latitude, longitude) = (47.370094, 8.549106)
    static let iso = "+47.370094+008.549106+408.000/"

    static func big(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
    }
    static func little(_ number: Int, _ size: Int) -> [UInt8] { big(number, size).reversed() }
    static func double(_ value: Double) -> [UInt8] { little(Int(bitPattern: UInt(value.bitPattern)), 8) }

    // MARK: TIFF

    struct Entry {
        var tag: Int
        var type: Int
        var count: Int
        var value: [UInt8]
    }

    static func text(_ tag: Int, _ text: String) -> Entry {
        Entry(tag: tag, type: 2, count: text.utf8.count + 1, value: Array(text.utf8) + [0])
    }

    /// Returns a TIFF directory at an offset. The values of its entries follow the directory.
    static func directory(_ entries: [Entry], at offset: Int, next: Int = 0, isLittle: Bool = true) -> [UInt8] {
        let number = isLittle ? little : big
        var (result, values) = (number(entries.count, 2), [UInt8]())
        let behind = offset + 2 + 12 * entries.count + 4
        for entry in entries {
            result += number(entry.tag, 2) + number(entry.type, 2) + number(entry.count, 4)
            if entry.value.count > 4 {
                result += number(behind + values.count, 4)
                values += entry.value + [UInt8](repeating: 0, count: entry.value.count % 2)
            } else {
                result += entry.value + [UInt8](repeating: 0, count: 4 - entry.value.count)
            }
        }
        return result + number(next, 4) + values
    }

    /// Returns GPS entries with degrees, minutes and seconds.
    static func gps(isLittle: Bool = true) -> [Entry] {
        let number = isLittle ? little : big
        func angle(_ degrees: Int, _ minutes: Int, _ seconds: Int) -> [UInt8] {
            [degrees, 1, minutes, 1, seconds, 10_000].flatMap { number($0, 4) }
        }
        return [
            Entry(tag: 0, type: 1, count: 4, value: [2, 3, 0, 0]), text(1, "N"),
            Entry(tag: 2, type: 5, count: 3, value: angle(47, 22, 123_384)),
            text(3, "E"), Entry(tag: 4, type: 5, count: 3, value: angle(8, 32, 567_816)), text(28, "Zurich Bellevue"),
        ]
    }

    /// Returns a TIFF structure with a maker, other entries, and a GPS directory.
    static func tiff(_ others: [Entry] = [], isLittle: Bool = true, hasGPS: Bool = true) -> [UInt8] {
        let number = isLittle ? little : big
        var entries = [text(0x10F, "Maker of cameras")] + others
        let header = (isLittle ? [0x49, 0x49] : [0x4D, 0x4D]) + number(42, 2) + number(8, 4)
        guard hasGPS else { return header + directory(entries.sorted { $0.tag < $1.tag }, at: 8, isLittle: isLittle) }
        entries.append(Entry(tag: 0x8825, type: 4, count: 1, value: number(0, 4)))
        entries.sort { $0.tag < $1.tag }
        let size = directory(entries, at: 8, isLittle: isLittle).count
        let index = entries.firstIndex { $0.tag == 0x8825 }!
        entries[index].value = number(8 + size, 4)
        return header + directory(entries, at: 8, isLittle: isLittle)
            + directory(gps(isLittle: isLittle), at: 8 + size, isLittle: isLittle)
    }

    // MARK: Text

    static func packet(_ content: String, _ attributes: String = "") -> String {
        """
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
        <rdf:Description rdf:about="" \(attributes)>\(content)</rdf:Description></rdf:RDF></x:xmpmeta>
        """
    }

    static let xmp = packet(
        """
        <dc:title>Hail</dc:title><exif:GPSLatitude>47,22.20564N</exif:GPSLatitude><exif:GPSLongitude>8,32.94636E</exif:GPSLongitude>\
        <photoshop:City>Zurich</photoshop:City><Iptc4xmpExt:LocationShown><rdf:Bag><rdf:li Iptc4xmpExt:City="Zurich"/></rdf:Bag></Iptc4xmpExt:LocationShown>
        """)

    static func dataset(_ number: UInt8, _ text: String) -> [UInt8] {
        [0x1C, 2, number] + big(text.utf8.count, 2) + Array(text.utf8)
    }

    static let iptc = dataset(90, "Zurich") + dataset(120, "Hail") + dataset(101, "Switzerland")

    static func resource(_ number: Int, _ content: [UInt8]) -> [UInt8] {
        Array("8BIM".utf8) + big(number, 2) + [0, 0] + big(content.count, 4) + content
            + [UInt8](repeating: 0, count: content.count % 2)
    }

    // MARK: JPEG

    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] { [0xFF, marker] + big(content.count + 2, 2) + content }

    static func exif(_ tiff: [UInt8]) -> [UInt8] { segment(0xE1, Array("Exif\0\0".utf8) + tiff) }

    static func xmp(_ text: [UInt8]) -> [UInt8] { segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + text) }

    /// Returns a JPEG file with segments and a scan without a picture.
    static func jpeg(_ segments: [UInt8]...) -> [UInt8] {
        [0xFF, 0xD8] + segments.flatMap { $0 } + segment(0xDB, [UInt8](repeating: 7, count: 65))
            + segment(0xDA, [1, 1, 0, 0, 63, 0])
            + [0x12, 0x34, 0xFF, 0x00, 0x56, 0xFF, 0xD0, 0x78, 0xFF, 0xD9]
    }

    // MARK: Chunks and boxes

    static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count, 4) + Array(type.utf8) + content + big(Int(Deflate.checksum(Array(type.utf8) + content)), 4)
    }

    static func png(_ chunks: [UInt8]...) -> [UInt8] {
        var result = PNGFile.signature
        result += chunk("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
        result += chunks.flatMap { $0 }
        result += chunk("IDAT", [0x78, 1, 1, 2, 0, 0xFD, 0xFF, 0, 0, 0, 2, 0, 1])
        return result + chunk("IEND", [])
    }

    static func riff(_ chunks: [(String, [UInt8])]) -> [UInt8] {
        var body = Array("WEBP".utf8)
        for (type, content) in chunks {
            body += Array(type.utf8) + little(content.count, 4) + content
            if content.count % 2 == 1 { body.append(0) }
        }
        return Array("RIFF".utf8) + little(body.count, 4) + body
    }

    static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8, 4) + type.unicodeScalars.map { UInt8($0.value) } + content
    }

    static let film = box("ftyp", Array("isom\0\0\u{2}\0isommp42".utf8))
}

/// The result of cleaning bytes in memory.
struct Cleaned {
    let bytes: [UInt8]
    let blocks: [String]
    let credentials: [String]
    let places: [FoundPlace]

    /// Searches a file for locations, overwrites them, and proves the result. Also checks that the size of the file and the
    /// bytes outside the overwritten ranges are unchanged.
    init(_ original: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
        let found = try PhotoLocations(searching: MemoryBytes(original))
        try found.prove()
        let result = try #require(found.cleanedBytes(0..<original.count), sourceLocation: sourceLocation)
        #expect(result.count == original.count, sourceLocation: sourceLocation)
        var covered = [Bool](repeating: false, count: original.count)
        for overwrite in found.overwrites { for index in overwrite.range { covered[index] = true } }
        let other = original.indices.first { original[$0] != result[$0] && !covered[$0] }
        #expect(other == nil, "byte \(other ?? 0) changed outside of the ranges", sourceLocation: sourceLocation)
        (bytes, blocks, credentials, places) = (result, found.blocks, found.credentials, found.places)
    }

    func contains(_ text: String) -> Bool { bytes.firstRange(of: Array(text.utf8)) != nil }
    func contains(_ pattern: [UInt8]) -> Bool { bytes.firstRange(of: pattern) != nil }
}
