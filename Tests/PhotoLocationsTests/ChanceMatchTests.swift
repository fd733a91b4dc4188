import Testing

@testable import PhotoLocations

/// Tests bytes that look like a location only by chance, in blocks that are not text. Real locations of the same forms are
/// removed.
@Suite struct ChanceMatchTests {
    /// Parts of random data and of dark sensor data. Earlier versions of Stormy took these bytes for a location and overwrote
    /// them.
    static let snippets = [
        "104947611306d869151b23fe3896124d8d805aa62a1c24054534c2b0398a33219aac2664460cda238e6f0dc4c27b4fb3ed7983aaf2b2c1cf9c53",
        "b5a34573db924fe3fbbf953ebad8637348fda968eecd66ec2532344efeea0b96f4f169210e7bd81213de3e4be34692560d919f2b35ddaf0dc042",
        "6ce4464e317848465db2c5fc085c621f7fefc63cb89aedf54e30c2b0337ddc0129f835fe4caea258e11f3155afe894b66e5c8a8407c739515690",
        "967fdc966859e8a6d3a12ad1a09de984300aee0f61d176145733c2b031718b6a7f91a1cab527c3d93b7c6a040b8ceda5265b43aee5de350292d7",
        "124a60786b9f3f7327753623b1c331235391b845bd41d4b538c2b0314eed36a18b6f1cc7fd3a6d6f8f291e41f9970135aee880dbd06b51c53e2a",
        "332c2a2e30342d38352f2f2b2a3631392d3535352d382b2d2d30302e3931393730382b3135322e30352a3434322d3835392e322c2e393130362c",
        "2c383a36382f36312f383133312e322f2e38342d32372e2b2d303033392d30373934302f2c3335302b3a2c2f35383a3731332d2c2e3a343a2c2b",
        "3132352f3533313b2f3233342f32352e322a2e322d2e36352b333433302b31333532352f362d2c2d2f3434312c312a303432333030312b322d34",
        "3022263c2b2c4240372c3b39425135394c35304d2d1e34322532345323403f39362f36463b3e30481f251e37394a463a3d2832302b30352c2f53",
        "372d2e4c1d3e333b424a463b26434130373b494b4b4241342532344e343637452c3f4c2e322d1e353a31403d59254d482f3e3932282c283b3937",
        "3f3f3d471d3149001b1d45292f4e3235435e4c4e473d2f3f374e212d00323f5c43452d494927432f37431d4e253b00373321250c3b4b1f560c29",
        "2b0001004100450041000900470045002b00450033003b00350064003700270022005700400040004000390040003d0022006a002f002d004100",
        "31003c00320036003b00320037003800310037003200400037002e0036003500320037003b00340031002c00370030003500370033003b003800",
        "3700320032003c002b0030003800340031003600340035002d0033003700310035002d00310032003800320033002f0031002d00340034002f00",
        "3b002e003800430034003c003400320033002c002c004000320035002e0034003900350035003500330034003600330039003600350033004500",
        "1d4c170a004a3f54433f003537003739373950394a472b5047473948353b312747392525003337482e3137472539233137472b39372539232f",
        "29223f3c2b4b41342c2d29223f3632333233364e3837344435273426293839383b1d30413c46272b2c231d193d35564a1d62472d2d2e273627373029",
        "2c0031003000310030002c002c0037002f002a0030002f002d00300033002e0031003400300038002d003000300030002e002000300029002e00",
    ]

    /// Constructed examples. Each begins like a location in one text format, but continues with other bytes.
    static let marks: [[UInt8]] = [
        [0x1C, 2, 90, 0, 3, 0xC1, 0x9F, 0x80, 0x1B], [0x1C, 2, 90, 2, 26, 2, 26, 2, 28, 2, 26, 2],
        [0x1C, 2, 101, 0, 2, 0x41, 0x42, 0x8F],
        Array("GPS5l".utf8) + [7, 0, 9, 1, 2, 3], Array("GPS9?".utf8) + [200, 3, 9], Array("$8N467E,".utf8),
        Array("lat=4".utf8) + [0x91], Array("geo:5,3".utf8) + [0x9D], Array("\u{1}8FVC9GXX+".utf8),
        [0x35, 0xB0, 0x38, 0x27, 0x4E],
        Array("+48.13+011.57".utf8) + [0x11], Array("!3d4.812".utf8) + [0x8E], [0x30, 0, 0xB0, 0, 0x37, 0, 0x4E, 0],
        Array("5d9'W".utf8),
        [2, 0, 5, 0, 3, 0, 0, 0, 0x9A, 1, 2, 3], Array("8BIM".utf8) + [4, 4, 0x80, 0x91, 3],
    ]

    /// Returns bytes without coordinates. The bytes are random, or are the values of dark pixels in one or two bytes each.
    private func filler(_ count: Int, like snippet: [UInt8]) -> [UInt8] {
        var state: UInt32 = 9
        let isWide = snippet.count > 9 && snippet[1] == 0 && snippet[3] == 0
        let isDark = isWide || snippet.count(where: { (0x18...0x6A).contains($0) }) * 4 > snippet.count * 3
        return (0..<count).map { index in
            state = state &* 1_664_525 &+ 1_013_904_223
            if isWide, index % 2 == 1 { return 0 }
            return isDark ? UInt8(40 + state >> 28) : UInt8(0x80 | state >> 25)
        }
    }

    private func wrapped(_ content: [UInt8]) -> [(name: String, file: [UInt8])] {
        [
            ("trailer", Samples.jpeg() + content), ("segment", Samples.jpeg(Samples.segment(0xE9, content))),
            ("chunk", Samples.png(Samples.chunk("prVt", content))), ("WebP", Samples.riff([("abcd", content)])),
            ("box", Samples.film + Samples.box("abcd", content)), ("free", Samples.film + Samples.box("free", content)),
            ("TIFF", Samples.tiff([Samples.Entry(tag: 0xC999, type: 7, count: content.count, value: content)], hasGPS: false)),
            (
                "camera",
                Samples.tiff([Samples.Entry(tag: 0x927C, type: 7, count: content.count, value: content)], hasGPS: false)
            ),
        ]
    }

    private func bytes(of digits: String) -> [UInt8] {
        let digits = Array(digits.utf8)
        return stride(from: 0, to: digits.count, by: 2).map {
            EncodedBytes.hexadecimal(digits[$0])! << 4 | EncodedBytes.hexadecimal(digits[$0 + 1])!
        }
    }

    @Test(arguments: snippets.indices) func `a chance match in random or sensor data stays`(_ index: Int) throws {
        let snippet = bytes(of: Self.snippets[index])
        for (name, file) in wrapped(filler(400, like: snippet) + snippet + filler(400, like: snippet)) {
            #expect(try Cleaned(file).bytes == file, "\(name)")
        }
    }

    @Test(arguments: marks.indices) func `a mark without its text stays`(_ index: Int) throws {
        let mark = Self.marks[index]
        for (name, file) in wrapped(filler(400, like: []) + mark + filler(400, like: [])) {
            #expect(try Cleaned(file).bytes == file, "\(name)")
        }
    }

    /// Real locations in the same text formats as the examples above. Each location is tested with text around it, and with zeros
    /// around it.
    static let locations = [
        "47°22'12.3\"N 8°32'56.8\"E", "N 47.370094 E 8.549106", "+47.370094+008.549106/", "lat=47.370094;lon=8.549106",
        "geo:47.370094,8.549106", "@47.370094,8.549106,17z", "!3d47.370094!4d8.549106", "$GPGGA,1,4722.2056,N,00832.9464,E,1",
        "8FVC9GXX+XP5", "47d22'12.3\"N 8d32'56.8\"E",
    ]

    @Test(arguments: locations) func `a location in unknown bytes is removed`(_ text: String) throws {
        let noise = filler(400, like: [])
        for around in ["Seen from the tower: \(text), with hail", "\0\0\(text)\0\0"] {
            for letters in [Array(around.utf8), text.utf8.contains(0xC2) ? [] : around.utf8.flatMap { [$0, 0] as [UInt8] }] {
                for (name, file) in wrapped(noise + letters + noise) where !letters.isEmpty {
                    let cleaned = try Cleaned(file)
                    let rest = cleaned.bytes.filter { $0 != 0 }
                    for part in ["370094", "549106", "22'12", "2056", "9GXX"] {
                        #expect(rest.firstRange(of: Array(part.utf8)) == nil, "\(name) \(around)")
                    }
                }
            }
        }
    }

    @Test func `IPTC and telemetry in unknown bytes are removed`() throws {
        let noise = filler(400, like: [])
        let telemetry =
            Array("GPS5l".utf8) + [20, 0, 1] + Samples.big(473_700_940, 4) + Samples.big(85_491_060, 4) + Samples.big(0, 12)
        for content in [
            Samples.iptc, Samples.dataset(0, "\0\u{4}") + Samples.dataset(90, "Zurich"), Samples.dataset(90, "Zurich") + [0],
        ] {
            for (name, file) in wrapped(noise + content + noise) {
                #expect(try !Cleaned(file).contains("Zurich"), "\(name)")
            }
        }
        for (name, file) in wrapped(noise + telemetry + noise) {
            #expect(try !Cleaned(file).contains(Samples.big(473_700_940, 4)), "\(name)")
        }
    }

    /// The samples of a film after a picture are not searched. The boxes after these samples are searched.
    @Test func `media data of a motion photo stay`() throws {
        let text = Array("latitude: 47.370094, longitude: 8.549106 of nothing".utf8)
        let film =
            TimedMetadataTests.film("avc1", handler: "vide", samples: [text, text])
            + Samples.box("moov", Samples.box("udta", Samples.box("abcd", text)))
        let cleaned = try PhotoLocations(searching: MemoryBytes(Samples.jpeg() + film))
        let start = Samples.jpeg().count + Samples.film.count + 8
        #expect(!cleaned.overwrites.isEmpty)
        #expect(cleaned.overwrites.allSatisfy { $0.range.lowerBound >= start + 2 * text.count })
    }
}
