import Testing

@testable import PhotoLocations

@Suite struct JPEGTests {
    private static let extended = Array("http://ns.adobe.com/xmp/extension/\0".utf8)

    @Test func `Exif, XMP and IPTC lose the location and nothing else`() throws {
        let photoshop = Samples.segment(0xED, Array("Photoshop 3.0\0".utf8) + Samples.resource(0x0404, Samples.iptc))
        let jpeg = Samples.jpeg(Samples.exif(Samples.tiff()), Samples.xmp(Array(Samples.xmp.utf8)), photoshop)
        let cleaned = try Cleaned(jpeg)
        #expect(!cleaned.contains("Zurich") && !cleaned.contains("Switzerland") && !cleaned.contains("47,22"))
        #expect(cleaned.contains("Hail") && cleaned.contains("Maker of cameras"))
        #expect(cleaned.bytes.suffix(80).elementsEqual(jpeg.suffix(80)), "tables and scan")
    }

    @Test func `a photo without a location is not touched`() throws {
        let cleaned = try Cleaned(
            Samples.jpeg(
                Samples.exif(Samples.tiff(hasGPS: false)), Samples.xmp(Array(Samples.packet("<dc:title>Hail</dc:title>").utf8))))
        #expect(cleaned.blocks.isEmpty)
    }

    @Test func `extended XMP is one text, and its digest is written again`() throws {
        let text = Array(Samples.xmp.utf8)
        let digest = MD5.hexadecimal(MD5.digest(of: text))
        // The text is divided into two parts, and the border is in the middle of a name.
        let half = try #require(text.firstRange(of: Array("itude>47".utf8)))
        func part(_ offset: Int, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
            Samples.segment(0xE1, Self.extended + digest + Samples.big(text.count, 4) + Samples.big(offset, 4) + Array(bytes))
        }
        let main = Samples.packet("<rdf:li/>", "xmpNote:HasExtendedXMP=\"\(String(decoding: digest, as: UTF8.self))\"")
        let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(main.utf8)), part(half, text[half...]), part(0, text[..<half])))
        #expect(!cleaned.contains("Zurich") && cleaned.contains("Hail") && !cleaned.contains(digest))
        let place = try #require(cleaned.bytes.firstRange(of: Array("HasExtendedXMP=\"".utf8)))
        let new = Array(cleaned.bytes[place + 16..<place + 48])
        #expect(cleaned.bytes.firstRange(of: Self.extended + new) != nil)
    }

    @Test(arguments: [0xE2, 0xE3, 0xE5, 0xE8, 0xEF, 0xFE] as [UInt8]) func `a TIFF structure in any segment is found`(
        _ marker: UInt8
    ) throws {
        let cleaned = try Cleaned(
            Samples.jpeg(Samples.segment(marker, Array("MAKER\0\0\0".utf8) + Samples.tiff(isLittle: false))))
        #expect(!cleaned.contains("Zurich"))
    }

    @Test func `every IPTC block is cleaned, and its digest is written again`() throws {
        let resources = Samples.resource(0x0404, Samples.iptc) + Samples.resource(0x0425, MD5.digest(of: Samples.iptc))
        let segment = Samples.segment(0xED, Array("Photoshop 3.0\0".utf8) + resources)
        let cleaned = try Cleaned(Samples.jpeg(segment, segment))
        #expect(!cleaned.contains("Zurich") && !cleaned.contains(MD5.digest(of: Samples.iptc)))
        let start = try #require(cleaned.bytes.firstRange(of: Array("8BIM\u{4}\u{4}".utf8)))
        let block = Array(cleaned.bytes[start + 12..<start + 12 + Samples.iptc.count])
        #expect(cleaned.contains(MD5.digest(of: block)))
    }

    @Test func `pictures behind the first one are cleaned, as MPF and gain maps have them`() throws {
        let second = Samples.jpeg(Samples.exif(Samples.tiff()), Samples.xmp(Array(Samples.xmp.utf8)))
        let cleaned = try Cleaned(Samples.jpeg(Samples.segment(0xE2, Array("MPF\0".utf8) + Samples.tiff(hasGPS: false))) + second)
        #expect(
            !cleaned.contains("Zurich") && cleaned.blocks.contains("GPS directory of Exif of picture in data after the picture"),
            "\(cleaned.blocks)")
    }

    @Test func `the location in FLIR thermal data of several segments is removed`() throws {
        var record = [UInt8](repeating: 0, count: 96)
        record.replaceSubrange(0..<12, with: [1, 0, 0, 0, 0, 0, 2, 2] + Array("N\0E\0".utf8))
        record.replaceSubrange(16..<32, with: Samples.double(Samples.latitude) + Samples.double(Samples.longitude))
        let list =
            Samples.big(0x2B, 2) + [UInt8](repeating: 0, count: 10) + Samples.big(96, 4) + Samples.big(96, 4)
            + [UInt8](repeating: 0, count: 12)
        let file =
            Array("FFF\0CAMERA".utf8) + [UInt8](repeating: 0, count: 10) + Samples.big(101, 4) + Samples.big(64, 4)
            + Samples.big(1, 4)
            + [UInt8](repeating: 0, count: 32) + list + record
        let mark = Array("FLIR\0\u{1}".utf8)
        let cleaned = try Cleaned(
            Samples.jpeg(
                Samples.segment(0xE1, mark + [0, 1] + file[..<100]), Samples.segment(0xE1, mark + [1, 1] + file[100...])))
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.blocks == ["thermal data (FLIR) of JPEG"])
        #expect(abs(cleaned.places[0].latitude! - Samples.latitude) < 1e-9)
    }

    @Test func `positions in GoPro telemetry in APP6 become free values`() throws {
        let cleaned = try Cleaned(Samples.jpeg(Samples.segment(0xE6, Array("GoPro\0".utf8) + TimedMetadataTests.telemetry)))
        #expect(cleaned.contains("FREE") && !cleaned.contains("GPS5") && cleaned.contains("SCAL"))
    }

    @Test func `positions in telemetry with a damaged device list are removed`() throws {
        var telemetry = TimedMetadataTests.telemetry
        telemetry[10] = 9
        #expect(try !Cleaned(Samples.jpeg(Samples.segment(0xE6, Array("GoPro\0".utf8) + telemetry))).contains("GPS5"))
        #expect(try !Cleaned(Samples.jpeg() + telemetry).contains("GPS5"))
    }

    @Test func `content credentials go with the location, and stay without one`() throws {
        let box = Samples.box("jumb", Samples.box("jumd", Array("c2pa".utf8) + [UInt8](repeating: 7, count: 60)))
        let segment = Samples.segment(0xEB, Array("JP\0\u{1}\0\0\0\u{1}".utf8) + box)
        let removed = try Cleaned(Samples.jpeg(Samples.exif(Samples.tiff()), segment))
        #expect(removed.credentials == ["content credentials (C2PA) of JPEG"] && !removed.contains("c2pa"))
        let kept = try Cleaned(Samples.jpeg(Samples.exif(Samples.tiff(hasGPS: false)), segment))
        #expect(kept.credentials.isEmpty && kept.contains("c2pa"))
    }

    /// The statements of content credentials are CBOR maps, in which numbers are binary.
    @Test(arguments: [("coordinates", true), ("geo", true), ("location", true), ("title", false), ("relationship", false)])
    func `content credentials with a location in CBOR are removed`(_ key: String, _ isLocation: Bool) throws {
        let map = [0xA1, 0x60 | UInt8(key.utf8.count)] + Array(key.utf8) + [0x82, 0xFB] + Samples.double(2.2945).reversed()
        let label = Samples.box("jumd", Array("c2pa".utf8) + [UInt8](repeating: 7, count: 20))
        let box = Samples.box("jumb", label + Samples.box("cbor", map))
        let file = Samples.jpeg(Samples.segment(0xEB, Array("JP\0\u{1}\0\0\0\u{1}".utf8) + box))
        let cleaned = try Cleaned(file)
        #expect(cleaned.credentials.isEmpty != isLocation && cleaned.contains("c2pa") != isLocation)
    }

    @Test(arguments: [
        "{\"latitude\": 47.370094, \"longitude\": 8.549106}", "Latitude=47.370094; Longitude=8.549106",
        "at +47.370094+008.549106/",
    ])
    func `numbers of a location in a comment become spaces`(_ text: String) throws {
        let cleaned = try Cleaned(Samples.jpeg(Samples.segment(0xFE, Array(text.utf8))))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("8.549"))
    }
}
