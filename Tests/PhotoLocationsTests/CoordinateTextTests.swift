import CZlib
import Testing

@testable import PhotoLocations

/// Texts with 47.370094, 8.549106, and texts that are similar and hold no location.
@Suite struct CoordinateTextTests {
    static let places = [
        "latitude: 47.370094, longitude: 8.549106", "lat=47.370094,lon=8.549106", "Lat: 47.370094 Lng: 8.549106",
        "LAT 47.370094 LON 8.549106", "lat/lon: 47.370094, 8.549106", "lat 47.370094 long=8.549106",
        "myLat=47.370094;myLng=8.549106",
        "latDeg: 47.370094; lonDeg: 8.549106", "gps: 47.370094, 8.549106", "coords: 47.370094 8.549106",
        "Koordinaten: 47.370094 / 8.549106",
        "geo:47.370094,8.549106", "geo:47.370094,8.549106,408;u=35", "geo:lat=47.370094 geo:lon=8.549106",
        "geo:lat=47.370094", "geo:long=8.549106", "location: 47.370094,8.549106", "center: 47.370094 8.549106",
        "{\"lat\":47.370094,\"lng\":8.549106}", "{\"location\":{\"lat\":\"47.370094\",\"long\":\"8.549106\"}}",
        "{\"type\":\"Point\",\"coordinates\":[8.549106,47.370094,408]}",
        "{\"type\":\"LineString\",\"coordinates\":[[8.549106,47.370094],[8.549106,47.370094]]}",
        "<georss:point>47.370094 8.549106</georss:point>", "<gml:pos srsDimension=\"2\">47.370094 8.549106</gml:pos>",
        "<coordinates>8.549106,47.370094,0 8.549106,47.370094,0</coordinates>", "<trkpt lat=\"47.370094\" lon=\"8.549106\">",
        "<Item name=\"center\" sample=\"0\">47.370094 8.549106</Item>", "<Item name=\"LATITUDE\" role=\"x\">47.370094</Item>",
        "POINT (8.549106 47.370094)", "https://maps.google.com/?q=47.370094,8.549106",
        "https://www.google.com/maps/@47.370094,8.549106,17z",
        "https://www.google.com/maps/place/47.370094,8.549106", "/data=!3d47.370094!4d8.549106",
        "https://osm.org/?mlat=47.370094&mlon=8.549106",
        "https://www.openstreetmap.org/#map=17/47.370094/8.549106", "https://maps.apple.com/?ll=47.370094,8.549106",
        "https://bing.com/maps?cp=47.370094~8.549106", "https://maps.google.com/?q=47.370094%2C8.549106",
        "Ort: 47.370094 N, 8.549106 E",
        "47.370094° N, 8.549106° E", "N47.370094° E8.549106°", "+47.370094+008.549106+408.000/",
        "$GPRMC,120000,A,4722.2056,N,00832.9463,E",
        "GPS(8.549106,47.370094,20)", "$GAGGA,1,4722.2056,N,00832.9464,E,1", "BDRMC,1,A,4722.2056,N,00832.9464,E",
        "N47.370094 E8.549106", "-N47.370094-E8.549106", "N47222056E008329464", "[N][47222056][E][008329464]",
        "+4722.20564-00832.94636/",
        "<Item name=\"LAT_OFF\" sample=\"0\">47.370094</Item>",
    ]

    static let others = [
        "f/2.8", "1/250 s at ISO 400", "2024-05-01T12:00:00+02:00", "2024:05:01 12:00:00", "12.05.2024",
        "Price: 12.50, 13.75 EUR",
        "version 1.48.1373", "v2.47.370094", "long exposure: 30 s", "long: 2.50 m", "length: 47.370094", "flat=47.370094",
        "colon: 12:30",
        "Translate=0.5, 0.25", "platform: 11.5755", "position: 3, 4", "center: 0.4737, 0.8549", "coordinates: 1024, 768",
        "coords: 1024.25, 768.75", "point 12.5 13.5", "map=1, 2", "size 47.370094 x 8.549106", "#123456", "mail@48.example.org",
        "E = 48",
        "heading 45° N", "45°", "20.5°C", "5 N 6 E", "Canon EF 24-105mm f/4", "0.1234, 0.5678", "query 12.50, 13.75",
        "location: Zurich",
        "a long 47.370094 m way", "+41 44 123 45 67", "geology: 48", "Sony ILCE-7M4 v2.01",
        "Roll-1234-56789", "SKU-1234-56789 ", "SCAN-0012-00123.jpg", "AB-1234-12345-X", "print +4144-26812", "UTC+0200-02300",
        "-1299-00100/", "part A-12.50-123.75", "N4 E5", "N12345678", "N47.37 E8.55 m", "100.25,N,200.25,E",
        "9999.25,N,00832.94,E",
    ]

    private func cleaned(_ text: String) -> String {
        var letters = Array(text.utf8)
        for find in CoordinateText(letters).all() {
            for index in find.blanks.joined() { letters[index] = 0x20 }
            for index in find.zeros { letters[index] = 0x30 }
        }
        return String(decoding: letters, as: UTF8.self)
    }

    private func holdsNumbers(_ text: String) -> Bool { ["370094", "549106", "4722", "47°"].contains { text.contains($0) } }

    /// The signs of coordinates also occur in bytes that are not text.
    @Test func `random bytes hold no location`() throws {
        var state: UInt64 = 7
        let noise = (0..<12 << 20).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        let found = try PhotoLocations(searching: MemoryBytes(noise))
        let finds = Set(found.overwrites.map { "\($0.block) at \($0.range.lowerBound / 64)" })
        #expect(finds.isEmpty)
    }

    @Test(arguments: places) func `named coordinates become spaces`(_ text: String) {
        #expect(!holdsNumbers(cleaned(text)), "\(cleaned(text))")
    }

    @Test(arguments: others) func `numbers of other kinds stay`(_ text: String) { #expect(cleaned(text) == text) }

    @Test func `angles with minutes become spaces`() {
        for text in [
            "47°22'12.3\"N 8°32'56.8\"E", "N47°22'12.3\" E008°32'56.8\"", "47 deg 22' 12.3\" N", "N 47° 22.2' E 8° 32.9'",
        ] {
            #expect(!cleaned("At \(text) at noon").contains("22"), "\(cleaned(text))")
            #expect(cleaned("At \(text) at noon").hasSuffix("at noon"))
        }
    }

    @Test(arguments: [
        "{\"lat\":47.370094,\"a\":1}", "{\"coordinates\":[8.549106,47.370094],\"a\":[1]}", "<a lat=\"47.370094\" b=\"1\"/>",
    ])
    func `marks around numbers stay`(_ text: String) {
        let marks = { (text: String) in text.filter { "{}[]\",:<>=/".contains($0) } }
        #expect(marks(cleaned(text)) == marks(text), "\(cleaned(text))")
        #expect(cleaned(text).contains("0 "))
    }

    @Test func `a date behind a place stays`() {
        #expect(cleaned("gps: 47.370094, 8.549106 2024-05-01").hasSuffix(" 2024-05-01"))
    }

    @Test func `the place is known to the proof`() {
        let places = CoordinateText(Array("geo:47.370094,8.549106".utf8)).all().flatMap(\.places)
        #expect(places.contains(FoundPlace(latitude: 47.370094, longitude: 8.549106)))
    }

    // MARK: Containers

    private static func escaped(_ text: String) -> String {
        let pairs = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")]
        return pairs.reduce(text) { $0.split(separator: $1.0, omittingEmptySubsequences: false).joined(separator: $1.1) }
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var size = compressBound(UInt(bytes.count))
        var result = [UInt8](repeating: 0, count: Int(size))
        compress(&result, &size, bytes, UInt(bytes.count))
        return Array(result[..<Int(size)])
    }

    /// The text in each block that holds text, with "Before" and "behind" around it.
    static func files(_ place: String) -> [(name: String, bytes: [UInt8])] {
        let text = "Before \(place) behind"
        let bytes = Array(text.utf8)
        let element = Samples.packet(
            "<dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\">\(escaped(text))</rdf:li></rdf:Alt></dc:description>")
        let attribute = Samples.packet("", "my:note=\"\(escaped(text))\"")
        let data = Samples.packet("<my:note><![CDATA[\(text)]]></my:note><!-- \(text) -->")
        let wide: [UInt8] = bytes.contains { $0 >= 0x80 } ? [] : bytes.flatMap { [$0, 0] as [UInt8] }
        let tiff = { (tag: Int, content: [UInt8]) in
            Samples.tiff([Samples.Entry(tag: tag, type: 7, count: content.count, value: content)], hasGPS: false)
        }
        return [
            ("comment of JPEG", Samples.jpeg(Samples.segment(0xFE, bytes))),
            ("description of Exif", Samples.jpeg(Samples.exif(tiff(0x010E, bytes + [0])))),
            ("artist of Exif", Samples.jpeg(Samples.exif(tiff(0x013B, bytes + [0])))),
            ("comment of Exif", Samples.jpeg(Samples.exif(tiff(0x9286, Array("ASCII\0\0\0".utf8) + bytes)))),
            ("UTF-16 of Exif", Samples.jpeg(Samples.exif(tiff(0x9C9C, wide + [0, 0, 0, 0, 0, 0])))),
            ("GDAL of TIFF", tiff(42112, bytes + [0])),
            (
                "caption of IPTC",
                Samples.jpeg(
                    Samples.segment(0xED, Array("Photoshop 3.0\0".utf8) + Samples.resource(0x0404, Samples.dataset(120, text))))
            ),
            ("keyword of IPTC", tiff(0x83BB, Samples.dataset(25, text) + Samples.dataset(25, "Hail"))),
            ("element of XMP", Samples.jpeg(Samples.xmp(Array(element.utf8)))),
            ("attribute of XMP", Samples.riff([("VP8 ", [1, 2, 3]), ("XMP ", Array(attribute.utf8))])),
            ("data of XMP", Samples.png(Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(data)".utf8)))),
            ("UTF-16 of XMP", Samples.jpeg(Samples.xmp(wide.isEmpty ? [] : element.utf8.flatMap { [0, $0] as [UInt8] }))),
            ("XMP of JPEG XL", Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("xml ", Array(element.utf8))),
            ("text of PNG", Samples.png(Samples.chunk("tEXt", Array("Comment\0\(text)".utf8)))),
            ("deflated text of PNG", Samples.png(Samples.chunk("zTXt", Array("Comment\0\0".utf8) + deflated(bytes)))),
            (
                "text of MP4",
                Samples.film
                    + Samples.box("moov", Samples.box("udta", Samples.box("©cmt", [0, UInt8(bytes.count), 0, 0] + bytes)))
            ),
        ]
    }

    @Test(arguments: places) func `the same text is cleaned in every block`(_ place: String) throws {
        for (name, bytes) in Self.files(place) {
            let cleaned = try Cleaned(bytes)
            #expect(!cleaned.contains("370094") && !cleaned.contains("549106"), "\(name)")
            #expect(!cleaned.contains("3\07\00\00\09\04") && !cleaned.contains("5\04\09\01\00\06"), "\(name)")
            #expect(try Cleaned(cleaned.bytes).bytes == cleaned.bytes, "\(name)")
            if !name.contains("UTF-16"), !name.contains("deflated"), !place.hasPrefix("$") {
                #expect(cleaned.contains("Before ") && cleaned.contains(" behind"), "\(name)")
            }
        }
    }

    @Test(arguments: others) func `other text stays in every block`(_ text: String) throws {
        for (name, bytes) in Self.files(text) { #expect(try Cleaned(bytes).bytes == bytes, "\(name)") }
    }

    // MARK: Names of XMP

    @Test(arguments: [
        ("my:lat", "47.370094"), ("my:Lng", "8.549106"), ("my:long", "8.549106"), ("georss:point", "47.370094 8.549106"),
        ("gml:pos", "47.370094 8.549106"), ("kml:coordinates", "8.549106,47.370094,0"), ("my:Coordinates", "47.370094, 8.549106"),
        ("my:geo", "47.370094;8.549106"), ("my:LatLng", "47.370094,8.549106"), ("my:center", "47.370094 8.549106"),
        ("dc:coverage", "Bellevue 370094"), ("g:where", "<gml:Point><gml:pos>47.370094 8.549106</gml:pos></gml:Point>"),
        ("my:coords", "<rdf:Seq><rdf:li>47.370094</rdf:li><rdf:li>8.549106</rdf:li></rdf:Seq>"),
    ])
    func `properties of coordinates by any name`(_ name: String, _ value: String) throws {
        var packets = [Samples.packet("<\(name)>\(value)</\(name)><dc:title>Hail</dc:title>")]
        if !value.contains("<") { packets.append(Samples.packet("<dc:title>Hail</dc:title>", "\(name)=\"\(value)\"")) }
        for packet in packets {
            let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(packet.utf8))))
            #expect(!cleaned.contains("370094") && !cleaned.contains("549106"))
            #expect(cleaned.contains("<dc:title>Hail</dc:title>") && cleaned.contains("</rdf:RDF>"))
        }
    }

    @Test(arguments: [
        ("my:long", "30"), ("my:center", "0.25 0.75"), ("my:position", "3"), ("my:lat", "Latin"), ("my:coordinates", "1024, 768"),
        ("my:point", "12.5 13.5"), ("crs:Exposure2012", "+0.50"), ("aux:Lens", "24-105 mm"),
    ])
    func `properties with such a name and another value stay`(_ name: String, _ value: String) throws {
        for packet in [Samples.packet("<\(name)>\(value)</\(name)>"), Samples.packet("", "\(name)=\"\(value)\"")] {
            let jpeg = Samples.jpeg(Samples.xmp(Array(packet.utf8)))
            #expect(try Cleaned(jpeg).bytes == jpeg)
        }
    }

    @Test func `too many names of coordinates without an end are held and named`() throws {
        let packet = "<x:xmpmeta>" + String(repeating: "<my:point>1 2 ", count: 25_000)
        let file = Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("xml ", Array(packet.utf8))
        #expect(throws: LocationFailure.tooExpensive("XMP in box xml  of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(file))
        }
    }
}
