import CZlib
import Testing

@testable import PhotoLocations

@Suite struct PNGTests {
    private func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var size = compressBound(UInt(bytes.count))
        var result = [UInt8](repeating: 0, count: Int(size))
        compress(&result, &size, bytes, UInt(bytes.count))
        return Array(result[..<Int(size)])
    }

    /// Returns the chunks of a file, and whether the checksum of each chunk is right.
    private func chunks(_ png: [UInt8]) -> [(type: String, isRight: Bool)] {
        var (position, result) = (8, [(String, Bool)]())
        while position + 12 <= png.count {
            let size = png[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let body = Array(png[position + 4..<position + 8 + size])
            result.append(
                (
                    String(decoding: body.prefix(4), as: UTF8.self),
                    Samples.big(Int(Deflate.checksum(body)), 4) == Array(png[position + 8 + size..<position + 12 + size])
                ))
            position += 12 + size
        }
        return result
    }

    private func check(_ chunk: [UInt8], becomes type: String, sourceLocation: SourceLocation = #_sourceLocation) throws
        -> Cleaned
    {
        let cleaned = try Cleaned(Samples.png(chunk))
        let found = chunks(cleaned.bytes)
        #expect(
            found.map(\.type) == ["IHDR", type, "IDAT", "IEND"] && found.allSatisfy(\.isRight), "\(found)",
            sourceLocation: sourceLocation)
        #expect(!cleaned.blocks.isEmpty && !cleaned.contains("Zurich"), sourceLocation: sourceLocation)
        #expect(try Cleaned(cleaned.bytes).blocks.isEmpty, sourceLocation: sourceLocation)
        return cleaned
    }

    @Test func `the checksum of eXIf is written again`() throws {
        _ = try check(Samples.chunk("eXIf", Samples.tiff()), becomes: "eXIf")
    }

    @Test func `XMP in plain text is cleaned`() throws {
        let cleaned = try check(Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(Samples.xmp)".utf8)), becomes: "iTXt")
        #expect(cleaned.contains("<dc:title>Hail</dc:title>"))
    }

    /// Returns the content of the first chunk of a kind.
    private func content(_ type: String, _ png: [UInt8]) throws -> [UInt8] {
        let place = try #require(png.firstRange(of: Array(type.utf8)))
        return Array(png[(place + 4)...].prefix(png[place - 4..<place].reduce(0) { $0 << 8 | Int($1) }))
    }

    @Test func `deflated XMP loses its location and keeps the rest`() throws {
        let header = Array("XML:com.adobe.xmp\0\u{1}\0\0\0".utf8)
        let cleaned = try check(Samples.chunk("iTXt", header + deflated(Array(Samples.xmp.utf8))), becomes: "iTXt")
        let text = try #require(
            Deflate.inflate(Array(try content("iTXt", cleaned.bytes).dropFirst(header.count)), limit: 1 << 20))
        #expect(text.count == Samples.xmp.utf8.count && text.firstRange(of: Array("<dc:title>Hail</dc:title>".utf8)) != nil)
        #expect(cleaned.blocks == ["XMP in chunk iTXt of PNG"])
    }

    @Test(arguments: ["zTXt", "zxIf"]) func `deflated Exif keeps orientation, date and copyright`(_ type: String) throws {
        let others = [
            Samples.Entry(tag: 0x0112, type: 3, count: 1, value: Samples.little(6, 2)),
            Samples.text(0x0132, "2024:05:01 12:00:00"),
            Samples.text(0x8298, "Copyright of a person"),
        ]
        let exif = Samples.tiff(others)
        let digits = exif.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let (header, plain): ([UInt8], [UInt8]) =
            type == "zTXt"
            ? (Array("Raw profile type exif\0\0".utf8), Array("\nexif\n  \(exif.count)\n\(digits)\n".utf8))
            : ([0] + Samples.big(exif.count, 4), exif)
        let cleaned = try check(Samples.chunk(type, header + deflated(plain)), becomes: type)
        let text = try #require(Deflate.inflate(Array(try content(type, cleaned.bytes).dropFirst(header.count)), limit: 1 << 20))
        let hexadecimal = { (bytes: [UInt8]) in bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
        for kept in [
            Array("2024:05:01".utf8), Array("Copyright of a person".utf8), Samples.little(0x0112, 2) + [3, 0, 1, 0, 0, 0, 6],
        ] {
            #expect(text.firstRange(of: type == "zTXt" ? Array(hexadecimal(kept).utf8) : kept) != nil)
        }
        #expect(text.count == plain.count)
        #expect(cleaned.blocks.allSatisfy { $0.contains("in chunk \(type) of PNG") }, "\(cleaned.blocks)")
    }

    @Test func `deflated text that is longer without its location is named as a loss`() throws {
        // The deflated stream refers back to the first number, which is not a location. If spaces replace the second number, the
        // stream becomes longer.
        let text = Array("number 147.370094, lat=47.370094".utf8)
        let cleaned = try check(Samples.chunk("zTXt", Array("Comment\0\0".utf8) + deflated(text)), becomes: "tEXt")
        #expect(cleaned.blocks == ["all of chunk zTXt of PNG (Comment)"])
    }

    @Test func `a text is deflated to each possible length`() throws {
        let text = Array("A text without a location, a text without a location.".utf8)
        let shortest = deflated(text).count
        for length in shortest..<shortest + 60 {
            let stream = try #require(Deflate.deflate(text, into: length))
            #expect(stream.count == length && Deflate.inflate(stream, limit: 1 << 16) == text, "\(length)")
        }
        #expect(Deflate.deflate(text, into: 10) == nil)
    }

    @Test(arguments: ["exif", "APP1", "iptc", "xmp", "8bim"])
    func `ImageMagick profiles are cleaned, plain and deflated`(_ kind: String) throws {
        let content: [UInt8]
        switch kind {
        case "exif", "APP1": content = Array("Exif\0\0".utf8) + Samples.tiff()
        case "iptc": content = Samples.iptc
        case "8bim": content = Samples.resource(0x0404, Samples.iptc)
        default: content = Array(Samples.xmp.utf8)
        }
        let digits = content.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let text = "\n\(kind)\n      \(content.count)\n\(digits)\n"
        let plain = try check(Samples.chunk("tEXt", Array("Raw profile type \(kind)\0\(text)".utf8)), becomes: "tEXt")
        let zurich = "Zurich".utf8.map { String($0, radix: 16) }.joined()
        #expect(!plain.contains(zurich) && plain.contains("Raw profile type"))
        let compressed = try check(
            Samples.chunk("zTXt", Array("Raw profile type \(kind)\0\0".utf8) + deflated(Array(text.utf8))), becomes: "zTXt")
        #expect(compressed.contains("Raw profile type \(kind)"))
    }

    @Test(arguments: ["Location", "exif:GPSLatitude", "City"])
    func `the text of a location keyword is removed`(_ keyword: String) throws {
        _ = try check(Samples.chunk("tEXt", Array("\(keyword)\0Zurich".utf8)), becomes: "tEXt")
    }

    @Test(arguments: [
        ("lat", "47.370094"), ("Coordinates", "47.370094, 8.549106"), ("exif:GPSLatitude", "47.370094"),
        ("geohash", "r3gx2f9tt5sn"),
        ("what3words", "filled.count.soap"), ("MGRS", "56HLH3436850948"), ("UTM", "56H 334368 6250948"),
    ])
    func `the text of a coordinate keyword is removed, plain and deflated`(_ keyword: String, _ value: String) throws {
        _ = try check(Samples.chunk("tEXt", Array("\(keyword)\0\(value)".utf8)), becomes: "tEXt")
        let compressed = try check(
            Samples.chunk("zTXt", Array("\(keyword)\0\0".utf8) + deflated(Array(value.utf8))), becomes: "tEXt")
        #expect(compressed.blocks == ["chunk zTXt of PNG (\(keyword))"])
    }

    @Test func `a deflated text without a location stays`() throws {
        let png = Samples.png(Samples.chunk("zTXt", Array("Comment\0\0".utf8) + deflated(Array("Hail".utf8))))
        #expect(try Cleaned(png).bytes == png)
    }

    @Test func `control characters in the name of a chunk are not in messages`() throws {
        let cleaned = try Cleaned(Samples.png(Samples.chunk("a\0\nb", Array("latitude: 47.370094".utf8))))
        #expect(cleaned.blocks == ["chunk a??b of PNG"])
    }

    @Test func `content credentials become text`() throws {
        let chunk = Samples.chunk("caBX", Samples.box("jumb", Array("jumdc2pa".utf8) + [UInt8](repeating: 1, count: 40)))
        let cleaned = try Cleaned(Samples.png(Samples.chunk("eXIf", Samples.tiff()), chunk))
        #expect(chunks(cleaned.bytes).map(\.type) == ["IHDR", "eXIf", "tEXt", "IDAT", "IEND"] && cleaned.credentials.count == 1)
        #expect(!chunks(cleaned.bytes).contains { !$0.isRight })
    }

    // MARK: Colours

    /// Returns a colour profile with a name and a description.
    private func colours(_ name: String, _ description: String) -> [UInt8] {
        let profile = [UInt8](repeating: 7, count: 128) + Array("desc\0\0\0\0\0\0\0\u{40}\(description)\0".utf8)
        return Samples.chunk("iCCP", Array("\(name)\0\0".utf8) + deflated(profile))
    }

    @Test func `the name of a colour profile loses its location`() throws {
        let cleaned = try check(colours("sRGB lat=47.370094 lon=8.549106", "Display P3"), becomes: "iCCP")
        #expect(cleaned.contains("sRGB lat=") && !cleaned.contains("370094") && !cleaned.contains("549106"))
        #expect(cleaned.blocks == ["colour profile in chunk iCCP of PNG"])
    }

    @Test func `the texts of a colour profile lose their location`() throws {
        let cleaned = try check(
            colours("sRGB", "Made at latitude 47.370094, longitude 8.549106. Copyright of a person"), becomes: "iCCP")
        let profile = try #require(
            Deflate.inflate(Array(try content("iCCP", cleaned.bytes).dropFirst("sRGB\0\0".utf8.count)), limit: 1 << 20))
        #expect(profile.firstRange(of: Array("370094".utf8)) == nil && profile.firstRange(of: Array("549106".utf8)) == nil)
        #expect(profile.firstRange(of: Array("Copyright of a person".utf8)) != nil)
    }

    @Test func `a colour profile that is longer without its location is held and named`() throws {
        let png = Samples.png(colours("sRGB", "number 147.370094, lat=47.370094"))
        #expect(throws: LocationFailure.unproven(block: "colour profile in chunk iCCP of PNG")) {
            try PhotoLocations(searching: MemoryBytes(png))
        }
    }

    @Test func `a colour profile without a location stays`() throws {
        let png = Samples.png(colours("Display P3", "Copyright Apple Inc., 2022"))
        #expect(try Cleaned(png).bytes == png)
    }

    @Test func `colour profiles of other formats are searched`() throws {
        let profile = [UInt8](repeating: 7, count: 128) + Array("desc\0\0 latitude 47.370094, longitude 8.549106".utf8)
        for file in [
            Samples.riff([("VP8 ", [1, 2, 3]), ("ICCP", profile)]),
            Samples.jpeg(Samples.segment(0xE2, Array("ICC_PROFILE\0\u{1}\u{1}".utf8) + profile)),
            Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("jp2h", Samples.box("colr", Array("prof".utf8) + profile)),
        ] {
            let cleaned = try Cleaned(file)
            #expect(!cleaned.contains("370094") && !cleaned.contains("549106"))
        }
    }
}
