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

    /// The chunks, with whether each checksum is right.
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

    @Test func `XMP in plain text`() throws {
        let cleaned = try check(Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(Samples.xmp)".utf8)), becomes: "iTXt")
        #expect(cleaned.contains("<dc:title>Hail</dc:title>"))
    }

    @Test func `deflated XMP becomes plain text of the same length`() throws {
        _ = try check(
            Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\u{1}\0\0\0".utf8) + deflated(Array(Samples.xmp.utf8))),
            becomes: "tEXt")
    }

    @Test(arguments: ["exif", "APP1", "iptc", "xmp", "8bim"]) func `profiles of ImageMagick, plain and deflated`(_ kind: String)
        throws
    {
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
        _ = try check(
            Samples.chunk("zTXt", Array("Raw profile type \(kind)\0\0".utf8) + deflated(Array(text.utf8))), becomes: "tEXt")
    }

    @Test(arguments: ["Location", "exif:GPSLatitude", "City"]) func `a keyword of a location`(_ keyword: String) throws {
        _ = try check(Samples.chunk("tEXt", Array("\(keyword)\0Zurich".utf8)), becomes: "tEXt")
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
}
