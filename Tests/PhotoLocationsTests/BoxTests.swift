import CZlib
import Testing

@testable import PhotoLocations

@Suite struct BoxTests {
    private let place = Array("\0\u{1E}\u{15}\u{C7}".unicodeScalars.map { UInt8($0.value) }) + Array(Samples.iso.utf8)

    private func movie(_ boxes: [UInt8]...) -> [UInt8] { Samples.box("moov", boxes.flatMap { $0 }) }

    @Test(arguments: [true, false]) func `a box of a location becomes free, with and without ftyp`(_ hasType: Bool) throws {
        let film =
            (hasType ? Samples.film : [])
            + movie(Samples.box("udta", Samples.box("©xyz", place) + Samples.box("©nam", Array("Hail".utf8))))
        let cleaned = try Cleaned(film)
        #expect(cleaned.contains("free") && !cleaned.contains("47.37") && cleaned.contains("Hail"))
        #expect(cleaned.places.contains { abs(($0.latitude ?? 0) - Samples.latitude) < 1e-9 })
    }

    @Test(arguments: ["mda\u{16}", "\0\0\0\0", "m\u{7F}\u{FF}\u{FF}"])
    func `boxes behind a box with a damaged name are cleaned`(_ name: String) throws {
        let cleaned = try Cleaned(
            Samples.film + Samples.box(name, [1, 2, 3, 4]) + movie(Samples.box("udta", Samples.box("©xyz", place))))
        #expect(!cleaned.contains("47.37") && cleaned.blocks == ["box ©xyz of the film or picture"])
        let first = try Cleaned(Samples.box(name, [1, 2, 3, 4]) + movie(Samples.box("udta", Samples.box("©xyz", place))))
        #expect(!first.contains("47.37") && first.blocks == cleaned.blocks)
    }

    @Test func `loci becomes free`() throws {
        let loci =
            [0, 0, 0, 0, 0x15, 0xC7] + Array("Zurich\0\0".utf8) + Samples.big(Int(Samples.longitude * 65_536), 4)
            + Samples.big(Int(Samples.latitude * 65_536), 4) + Samples.big(408 << 16, 4) + Array("earth\0\0".utf8)
        let cleaned = try Cleaned(Samples.film + movie(Samples.box("udta", Samples.box("loci", loci))))
        #expect(!cleaned.contains("Zurich") && abs(cleaned.places[0].latitude! - Samples.latitude) < 1e-4)
    }

    @Test(arguments: [true, false])
    func `the key and value of a location are removed, with and without a version of meta`(_ hasVersion: Bool) throws {
        func key(_ name: String) -> [UInt8] { Samples.big(8 + name.utf8.count, 4) + Array("mdta\(name)".utf8) }
        let keys = Samples.box(
            "keys", [0, 0, 0, 0, 0, 0, 0, 2] + key("com.apple.quicktime.make") + key("com.apple.quicktime.location.ISO6709"))
        func item(_ index: Int, _ value: String) -> [UInt8] {
            let data = Samples.box("data", [0, 0, 0, 1, 0, 0, 0, 0] + Array(value.utf8))
            return Samples.big(8 + data.count, 4) + Samples.big(index, 4) + data
        }
        let handler = Samples.box("hdlr", [UInt8](repeating: 0, count: 8) + Array("mdta".utf8) + [UInt8](repeating: 0, count: 13))
        let list = Samples.box("ilst", item(1, "Maker") + item(2, Samples.iso))
        let film = Samples.film + movie(Samples.box("meta", (hasVersion ? [0, 0, 0, 0] : []) + handler + keys + list))
        let cleaned = try Cleaned(film)
        #expect(
            !cleaned.contains("47.37") && !cleaned.contains("location") && cleaned.contains("Maker")
                && cleaned.contains("quicktime.make"))
    }

    /// The key of a value is in a list of keys, or is the name of a free-form item of iTunes.
    @Test(
        arguments: [
            ("coordinates", "47.370094, 8.549106"), ("lat", "47.370094"), ("com.example.lng", "8.549106"),
            ("geohash", "u0qj9f2wxyz1"),
            ("latlng", "47.370094,8.549106"),
        ], [1, 2])
    func `a coordinate is removed if only its key shows its meaning`(_ value: (key: String, text: String), _ type: Int) throws {
        let letters = type == 1 ? Array(value.text.utf8) : value.text.utf8.flatMap { [0, $0] }
        let data = Samples.box("data", Samples.big(type, 4) + Samples.big(0, 4) + letters)
        let handler = Samples.box("hdlr", [UInt8](repeating: 0, count: 8) + Array("mdta".utf8) + [UInt8](repeating: 0, count: 13))
        let key = Samples.big(8 + value.key.utf8.count, 4) + Array("mdta\(value.key)".utf8)
        let listed =
            handler + Samples.box("keys", [0, 0, 0, 0, 0, 0, 0, 1] + key)
            + Samples.box("ilst", Samples.big(8 + data.count, 4) + Samples.big(1, 4) + data)
        let name = Samples.box("name", Samples.big(0, 4) + Array(value.key.utf8))
        let free = handler + Samples.box("ilst", Samples.box("----", Samples.box("mean", Samples.big(0, 4)) + name + data))
        for content in [listed, free] {
            let cleaned = try Cleaned(Samples.film + movie(Samples.box("meta", [0, 0, 0, 0] + content)))
            #expect(cleaned.bytes.firstRange(of: letters) == nil && !cleaned.blocks.isEmpty)
        }
    }

    @Test func `a text of a film without a location stays`() throws {
        let key = Samples.big(8 + 5, 4) + Array("mdtatitle".utf8)
        let data = Samples.box("data", Samples.big(1, 4) + Samples.big(0, 4) + Array("Hail 47.3".utf8))
        let content =
            Samples.box("keys", [0, 0, 0, 0, 0, 0, 0, 1] + key)
            + Samples.box("ilst", Samples.big(8 + data.count, 4) + Samples.big(1, 4) + data)
        let film = Samples.film + movie(Samples.box("meta", [0, 0, 0, 0] + content))
        #expect(try Cleaned(film).bytes == film)
    }

    static func heif(_ items: [(type: String, content: [UInt8])], method: Int = 0, encoding: String = "") -> [UInt8] {
        var (entries, locations, data) = ([UInt8](), [UInt8](), [UInt8]())
        func build(_ base: Int) -> [UInt8] {
            (entries, locations, data) = ([], [], [])
            for (index, item) in items.enumerated() {
                let mime = item.type == "mime" ? Array("application/rdf+xml\0\(encoding)\0".utf8) : []
                entries += Samples.box(
                    "infe", [2, 0, 0, 0] + Samples.big(index + 1, 2) + [0, 0] + Array("\(item.type)\0".utf8) + mime)
                // The content of the item is split into two extents.
                let half = item.content.count / 2
                locations +=
                    Samples.big(index + 1, 2) + Samples.big(method, 2) + [0, 0, 0, 2]
                    + Samples.big(base + data.count, 4) + Samples.big(half, 4) + Samples.big(base + data.count + half + 3, 4)
                    + Samples.big(item.content.count - half, 4)
                data += item.content[..<half] + [9, 9, 9] + item.content[half...]
            }
            let handler = Samples.box(
                "hdlr", [UInt8](repeating: 0, count: 8) + Array("pict".utf8) + [UInt8](repeating: 0, count: 13))
            let info = Samples.box("iinf", [0, 0, 0, 0] + Samples.big(items.count, 2) + entries)
            let list = Samples.box("iloc", [1, 0, 0, 0, 0x44, 0] + Samples.big(items.count, 2) + locations)
            let inside = method == 1 ? Samples.box("idat", data) : []
            return Samples.box("ftyp", Array("heic\0\0\0\0mif1heic".utf8))
                + Samples.box("meta", [0, 0, 0, 0] + handler + info + list + inside)
        }
        let start = build(0).count + 8
        return method == 1 ? build(0) : build(start) + Samples.box("mdat", data)
    }

    @Test(arguments: [0, 1]) func `Exif and XMP items in two extents are cleaned, in the file and in idat`(_ method: Int) throws {
        let cleaned = try Cleaned(
            Self.heif(
                [("Exif", [0, 0, 0, 0] + Samples.tiff()), ("mime", Array(Samples.xmp.utf8)), ("hvc1", [1, 2, 3, 4])],
                method: method))
        #expect(!cleaned.contains("Zurich") && !cleaned.contains("47,22"))
        #expect(
            cleaned.blocks.contains { $0.hasPrefix("GPS directory of Exif") } && cleaned.blocks.contains { $0.hasPrefix("XMP") })
    }

    @Test func `a deflated XMP item keeps its other properties`() throws {
        let text = Array(Samples.xmp.utf8)
        var size = compressBound(UInt(text.count))
        var deflated = [UInt8](repeating: 0, count: Int(size))
        compress(&deflated, &size, text, UInt(text.count))
        let file = Self.heif([("mime", Array(deflated[..<Int(size)]))], encoding: "deflate")
        let cleaned = try Cleaned(file)
        let item = cleaned.bytes.suffix(Int(size) + 3)
        let half = Int(size) / 2
        let inflated = try #require(Deflate.inflate(Array(item.prefix(half) + item.dropFirst(half + 3)), limit: 1 << 16))
        let new = String(decoding: inflated, as: UTF8.self)
        #expect(new.contains("<dc:title>Hail</dc:title>") && !new.contains("Zurich") && inflated.count == text.count)
    }

    @Test func `an Exif item inside of another item is held and named`() throws {
        #expect(throws: LocationFailure.unproven(block: "item Exif of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(Self.heif([("Exif", [0, 0, 0, 0] + Samples.tiff())], method: 2)))
        }
    }

    @Test func `Exif and XMP of JPEG XL are cleaned, and compressed boxes become free`() throws {
        let signature: [UInt8] = [0, 0, 0, 12] + Array("JXL \r\n".utf8) + [0x87, 0x0A]
        let cleaned = try Cleaned(
            signature + Samples.box("ftyp", Array("jxl \0\0\0\0jxl ".utf8)) + Samples.box("Exif", [0, 0, 0, 0] + Samples.tiff())
                + Samples.box("xml ", Array(Samples.xmp.utf8)) + Samples.box("brob", Array("Exif".utf8) + [1, 2, 3, 4])
                + Samples.box("jxlc", [0xFF, 0x0A, 1, 2]))
        #expect(!cleaned.contains("Zurich") && cleaned.contains("<dc:title>Hail") && !cleaned.contains("brob"))
        #expect(cleaned.bytes.suffix(4).elementsEqual([0xFF, 0x0A, 1, 2]))
    }

    @Test(arguments: [("Exif", true), ("xml ", true), ("jumb", false)])
    func `the box for the old JPEG file is removed if it needs the removed metadata`(
        _ kind: String, _ isNeeded: Bool
    ) throws {
        // The bits mean: the picture is not gray, one marker of JFIF, the end of the picture, and the kind and size of the
        // marker.
        let bits = [0] + [0xE0, 0xD9].flatMap { marker in (0..<6).map { (marker - 0xC0) >> $0 & 1 } } + [0, 0]
        var old = [UInt8](repeating: 0, count: 12)
        for (index, bit) in bits.enumerated() { old[index / 8] |= UInt8(bit) << UInt8(index % 8) }
        let cleaned = try Cleaned(
            Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("jbrd", old)
                + Samples.box("brob", Array(kind.utf8) + [1, 2, 3, 4])
                + Samples.box("jxlc", [0xFF, 0x0A, 1, 2]))
        #expect(cleaned.contains("jbrd") != isNeeded && !cleaned.contains("brob"))
        let lost = ["the data that restores the old JPEG file in box jbrd of the film or picture"]
        #expect(
            cleaned.blocks == (isNeeded ? lost : []) + [
                "all compressed metadata (\(kind)) in box brob of the film or picture, which cannot be searched"
            ])
        #expect(cleaned.bytes.suffix(4).elementsEqual([0xFF, 0x0A, 1, 2]))
    }

    /// The box is read from its lowest bit. The first bit shows whether the picture is gray. The markers minus 0xC0 follow in 6
    /// bits each, then the end of the picture, and the kinds in 2 bits, each with a size.
    @Test(arguments: [
        ([0xE0, 0xE1], [0, 2, 0], true), ([0xE0, 0xED], [0, 0], false), ([0xE1, 0xE2], [2, 1, 1], true), ([0xFE], [], false),
    ])
    func `compressed markers of an old JPEG file become free if they are unknown`(_ markers: [Int], _ kinds: [Int], _ stays: Bool)
        throws
    {
        var bits = [0]
        for marker in markers + [0xD9] { bits += (0..<6).map { (marker - 0xC0) >> $0 & 1 } }
        // Kind 2 has the value 2 and one additional bit.
        var index = 0
        while index < kinds.count {
            bits += [kinds[index] & 1, kinds[index] >> 1]
            if kinds[index] == 2 { bits += [kinds[index + 1]] }
            bits += [Int](repeating: 0, count: 16)
            index += kinds[index] == 2 ? 2 : 1
        }
        var bytes = [UInt8](repeating: 0, count: 20)
        for (place, bit) in bits.enumerated() { bytes[place / 8] |= UInt8(bit << (place % 8)) }
        let signature: [UInt8] = [0, 0, 0, 12] + Array("JXL \r\n".utf8) + [0x87, 0x0A]
        let cleaned = try Cleaned(signature + Samples.box("jbrd", bytes) + Samples.box("jxlc", [0xFF, 0x0A]))
        #expect(cleaned.contains("jbrd") == stays && cleaned.blocks.isEmpty == stays)
    }

    @Test func `the GPS directory in a box of a Canon CR3 file is cleaned`() throws {
        let canon: [UInt8] = [0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48]
        let gps = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory(Samples.gps(), at: 8)
        let cleaned = try Cleaned(
            Samples.box("ftyp", Array("crx \0\0\0\u{1}crx isom".utf8))
                + movie(Samples.box("uuid", canon + Samples.box("CMT1", Samples.tiff(hasGPS: false)) + Samples.box("CMT4", gps))))
        #expect(!cleaned.contains("Zurich") && cleaned.contains("Maker of cameras") && cleaned.places.count > 0)
    }

    @Test func `the city of the clock in the maker note of a Canon CR3 file is removed`() throws {
        let canon: [UInt8] = [0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48]
        let clock = Samples.Entry(tag: 0x35, type: 9, count: 4, value: [16, 60, 20, 0].flatMap { Samples.little($0, 4) })
        let note = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory([clock], at: 8)
        let cleaned = try Cleaned(Samples.film + movie(Samples.box("uuid", canon + Samples.box("CMT3", note))))
        #expect(cleaned.contains([16, 60, 0, 0].flatMap { Samples.little($0, 4) }))
    }

    @Test func `Exif and XMP of WebP are cleaned, and content credentials become junk`() throws {
        let webp = Samples.riff([
            ("VP8 ", [1, 2, 3]), ("EXIF", Samples.tiff()), ("XMP ", Array(Samples.xmp.utf8)),
            ("C2PA", Array("jumbc2pa signed".utf8)),
        ])
        let cleaned = try Cleaned(webp)
        #expect(
            !cleaned.contains("Zurich") && !cleaned.contains("signed") && cleaned.contains("JUNK")
                && cleaned.credentials.count == 1)
    }

    // MARK: Free space

    @Test(arguments: ["free", "skip"]) func `free space is searched`(_ type: String) throws {
        let film = Samples.film + Samples.box("mdat", [1, 2, 3])
        let log = Array("$GNRMC,120000.00,A,4722.20564,N,00832.94636,E,0.1".utf8)
        for content in [
            place, Array(#"{"lat":47.370094,"lng":8.549106}"#.utf8), Samples.jpeg(Samples.exif(Samples.tiff())),
            Samples.box("cprt", [1, 2]) + Samples.box("gps ", log), Samples.box("udta", Samples.box("©xyz", place)),
        ] {
            let cleaned = try Cleaned(film + Samples.box(type, content))
            #expect(!cleaned.contains("47.37") && !cleaned.contains("4722.2") && !cleaned.contains("Zurich"))
        }
        let plain = film + Samples.box(type, [UInt8](repeating: 0, count: 1_000))
        #expect(try Cleaned(plain).bytes == plain)
    }

    @Test func `locations in boxes of dashcams and action cameras are removed`() throws {
        let garmin: [UInt8] = [0x9B, 0x63, 0x0F, 0x8D, 0x63, 0x74, 0x40, 0xEC, 0x82, 0x04, 0xBC, 0x5F, 0xF5, 0x09, 0x17, 0x28]
        let secret = Array("secret numbers".utf8)
        for box in [Samples.box("gps0", secret), Samples.box("uuid", garmin + secret)] {
            let cleaned = try Cleaned(Samples.film + box + Samples.box("mdat", [1]))
            #expect(!cleaned.contains("secret") && cleaned.blocks.count == 1)
        }
        let text = Array("VIDEOUUUU\u{1}20260701120000.N47222056E008329464+0058".utf8)
        #expect(try !Cleaned(Samples.film + Samples.box("udta", text)).contains("4722"))
    }

    @Test func `positions in the metadata list of Sony cameras are removed`() throws {
        let list = """
            <?xml version="1.0"?><NonRealTimeMeta><Group name="ExifGPS"><Item name="LatitudeRef" value="N"/><Item name="Latitude" \
            value="47:22:12.338"/><Item name="Longitude" value="8:32:56.782"/><Item name="Lens" value="24-70"/></Group></NonRealTimeMeta>
            """
        let handler = Samples.box(
            "hdlr", [UInt8](repeating: 0, count: 8) + Array("nrtm".utf8) + [UInt8](repeating: 0, count: 13))
        let meta = Samples.box("meta", [0, 0, 0, 0] + handler + Samples.box("xml ", [0, 0, 0, 0] + Array(list.utf8)))
        let cleaned = try Cleaned(Samples.film + meta)
        #expect(!cleaned.contains("47:22") && !cleaned.contains("8:32") && cleaned.contains("24-70"))
        // Cameras also store the list of items in a separate file.
        #expect(try !PhotoLocations(searching: MemoryBytes(Array(list.utf8))).overwrites.isEmpty)
    }

    // MARK: Deflated directory

    private func compressed(_ movie: [UInt8]) -> [UInt8] {
        var size = compressBound(UInt(movie.count))
        var deflated = [UInt8](repeating: 0, count: Int(size))
        compress(&deflated, &size, movie, UInt(movie.count))
        let content = Samples.box("cmvd", Samples.big(movie.count, 4) + deflated[..<Int(size)])
        return Samples.film + self.movie(Samples.box("cmov", Samples.box("dcom", Array("zlib".utf8)) + content))
    }

    @Test func `a deflated directory is deflated again without the location`() throws {
        let movie = movie(Samples.box("udta", Samples.box("©xyz", place) + Samples.box("©nam", Array("Hail".utf8))))
        let cleaned = try Cleaned(compressed(movie))
        let start = try #require(cleaned.bytes.firstRange(of: Array("cmvd".utf8))) + 8
        let inflated = try #require(Deflate.inflate(Array(cleaned.bytes[start...]), limit: 1 << 16))
        let text = String(decoding: inflated, as: UTF8.self)
        #expect(!text.contains("47.37") && text.contains("Hail") && inflated.count == movie.count)
        let plain = compressed(self.movie(Samples.box("udta", Samples.box("©nam", Array("Hail".utf8)))))
        #expect(try Cleaned(plain).bytes == plain)
    }

    @Test func `a deflated directory with timed metadata is held and named`() throws {
        let film = TimedMetadataTests.film("text", handler: "text", samples: [Array("47".utf8)])
        let start = try #require(film.firstRange(of: Array("moov".utf8))) - 4
        #expect(throws: LocationFailure.unproven(block: "box cmov of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(compressed(Array(film[start...]))))
        }
    }

    @Test func `items of a picture behind a film are cleaned`() throws {
        let film = Samples.film + Samples.box("mdat", [UInt8](repeating: 5, count: 3_000))
        let picture = Self.heif([("Exif", [0, 0, 0, 0] + Samples.tiff()), ("mime", Array(Samples.xmp.utf8))])
        let cleaned = try Cleaned(film + picture)
        #expect(!cleaned.contains("Zurich") && !cleaned.contains("47,22") && Array(cleaned.bytes[..<film.count]) == film)
    }
}
