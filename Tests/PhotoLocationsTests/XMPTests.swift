import Testing

@testable import PhotoLocations

@Suite struct XMPTests {
    private func cleaned(_ text: String) throws -> String {
        String(decoding: try Cleaned(Samples.jpeg(Samples.xmp(Array(text.utf8)))).bytes, as: UTF8.self)
    }

    @Test(arguments: ["exif", "e", "gps-x", "ns1", "a.b"]) func `the prefix of a namespace does not matter`(_ prefix: String)
        throws
    {
        let text = try cleaned(
            Samples.packet("<\(prefix):GPSLatitude>47,22.20564N</\(prefix):GPSLatitude><dc:title>Hail</dc:title>"))
        #expect(!text.contains("47,22") && !text.contains("GPSLatitude") && text.contains("<dc:title>Hail</dc:title>"))
    }

    @Test(arguments: ["'", "\""]) func `attributes with either kind of quotes are removed`(_ quote: String) throws {
        let text = try cleaned(
            Samples.packet(
                "", "dc:a=\(quote)kept\(quote) exif:GPSLatitude = \(quote)47,22.20564N\(quote) dc:b=\(quote)kept too\(quote)"))
        #expect(!text.contains("47,22") && text.contains("kept\(quote)") && text.contains("dc:b=\(quote)kept too\(quote)"))
    }

    @Test func `a place in the W3C vocabulary is removed under any prefix`() throws {
        let space = "xmlns:w=\"http://www.w3.org/2003/01/geo/wgs84_pos#\""
        let text = try cleaned(Samples.packet("<w:lat \(space)>47.370094</w:lat><w:long>8.549106</w:long>", space))
        #expect(!text.contains("47.37") && !text.contains("8.549"))
    }

    @Test(arguments: [
        "drone-dji:GpsLongtitude", "photoshop:City", "Iptc4xmpCore:Location", "Iptc4xmpCore:CountryCode", "dwc:decimalLatitude",
        "photoshop:State",
    ])
    func `properties of cameras and press agencies for places are removed`(_ name: String) throws {
        #expect(try !cleaned(Samples.packet("<\(name)>Secret place</\(name)>")).contains("Secret"))
    }

    @Test(arguments: [
        ("q:Längengrad", "151.215297"), ("q:La\u{308}ngengrad", "151.215297"), ("q:Współrzędne", "-33.856784, 151.215297"),
        ("q:Широта", "-33.856784"), ("q:経度", "151.215297"), ("q:Coordonnées", "-33.856784, 151.215297"),
        ("q:geohash", "r3gx2ux9gpvd"), ("q:GeoHash", "r3gx2ux9gpvd"), ("q:MGRS", "56HLH3489852286"),
        ("q:UTM", "56H 334898 6252286"),
        ("q:Locator", "QF56od54"),
    ])
    func `properties with location names in other languages or of codes are removed`(_ name: String, _ value: String) throws {
        #expect(try !cleaned(Samples.packet("<\(name)>\(value)</\(name)>")).contains(value))
        #expect(try !cleaned(Samples.packet("", "\(name)=\"\(value)\"")).contains(value))
    }

    /// Each of these XML marks is opened but not closed. ExifTool still reads the properties that follow an unclosed XML mark.
    @Test(arguments: ["<?rdf:Alt>", "<!--", "<![CDATA["])
    func `a mark without an end does not hide a place`(_ mark: String) throws {
        let text = try cleaned(Samples.packet("<dc:title>Hail\(mark)<photoshop:City>Secret place</photoshop:City>"))
        #expect(!text.contains("Secret") && text.contains("Hail"))
    }

    @Test(arguments: [
        "exif:SubjectLocation", "xmp:Opacity", "crs:Velocity", "dc:description", "exif:SubjectArea", "plus:LicensorCity",
        "Iptc4xmpCore:CreatorCity", "Iptc4xmpCore:CiAdrCity", "plus:LicensorCountry",
    ])
    func `properties that are not about the world stay`(_ name: String) throws {
        #expect(try cleaned(Samples.packet("<\(name)>Kept value</\(name)>")).contains("Kept value"))
    }

    @Test(arguments: [(2, 0), (2, 1), (4, 0), (4, 3)])
    func `XMP in UTF-16 and UTF-32 is cleaned in both byte orders`(_ width: Int, _ place: Int) throws {
        let wide = Samples.xmp.utf8.flatMap { letter in (0..<width).map { $0 == place ? letter : 0 } }
        func wideText(_ text: String) -> [UInt8] { text.utf8.flatMap { letter in (0..<width).map { $0 == place ? letter : 0 } } }
        let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(wide)))
        #expect(!cleaned.contains(wideText("Zurich")) && cleaned.contains(wideText("Hail")))
    }

    @Test func `a picture in base64 is cleaned inside its text`() throws {
        let inner = Samples.jpeg(Samples.exif(Samples.tiff()))
        var (digits, bits, count) = ("", 0, 0)
        for byte in inner + [UInt8](repeating: 0, count: (3 - inner.count % 3) % 3) {
            (bits, count) = (bits << 8 | Int(byte), count + 8)
            while count >= 6 {
                count -= 6
                digits.unicodeScalars.append(Unicode.Scalar(Base64.digit(UInt8(bits >> count & 63))))
            }
            bits &= 0xFFFF
        }
        let packet = Samples.packet("<GImage:Data>\(digits)</GImage:Data>")
        let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(packet.utf8))))
        #expect(cleaned.blocks == ["XMP of JPEG"] && cleaned.places.count > 0, "\(cleaned.blocks)")
        #expect(try Cleaned(cleaned.bytes).blocks.isEmpty)
    }

    @Test func `an element without an end is blank to the end`() throws {
        let text = try cleaned("<x:xmpmeta><rdf:Description><exif:GPSLatitude>47,22.20564N<b:c>Zurich</b:c>")
        #expect(!text.contains("47,22") && !text.contains("Zurich"))
    }

    @Test(arguments: [
        "<rdf:li a:Name=\"GPSLatitude\" a:Value=\"47.370094\"/><rdf:li a:Name=\"GPSLongitude\" a:Value=\"8.549106\"/>",
        "<a:key>latitude</a:key><a:value>47.370094</a:value><a:key>longitude</a:key><a:value>8.549106</a:value>",
        "<a:i name=\"latitude\">47.370094</a:i><a:i name=\"longitude\">8.549106</a:i>",
        "<a:i key=\"City\" value=\"370094\"/><a:i key=\"Country\">549106</a:i>",
    ])
    func `a property whose location name is in a value is removed`(_ content: String) throws {
        let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(Samples.packet(content + "<dc:title>Hail</dc:title>").utf8))))
        #expect(!cleaned.contains("370094") && !cleaned.contains("549106"))
        #expect(cleaned.contains("<dc:title>Hail</dc:title>") && cleaned.contains("</rdf:RDF>"))
    }

    @Test(arguments: [
        "<a:i name=\"Lens\" value=\"24-70\"/>", "<a:key>long</a:key><a:value>2</a:value>",
        "<a:name>At this location</a:name><a:b>7</a:b>",
        "<a:i name=\"lat\" value=\"Latin\"/>",
    ])
    func `a property with another name in a value stays`(_ content: String) throws {
        let jpeg = Samples.jpeg(Samples.xmp(Array(Samples.packet(content).utf8)))
        #expect(try Cleaned(jpeg).bytes == jpeg)
    }
}
