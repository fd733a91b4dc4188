import Testing

@testable import PhotoLocations

@Suite struct CodestreamTests {
    private static func comment(_ text: [UInt8], kind: UInt8 = 0x64, registration: Int = 1) -> [UInt8] {
        [0xFF, kind] + Samples.big(text.count + 4, 2) + Samples.big(registration, 2) + text
    }

    /// Coded image data in which some bytes look like text. The search must not read this text.
    private static let coded = Array("geo:12.345678,98.765432".utf8) + [0xFF, 0x12, 0x80]

    /// Returns a codestream with segments in the main header, and with segments in the header of one tile part.
    static func codestream(_ main: [UInt8] = [], tile: [UInt8] = [], hasLength: Bool = true) -> [UInt8] {
        let size = [0xFF, 0x51] + Samples.big(41, 2) + [UInt8](repeating: 0, count: 35) + [1, 7, 1, 1]
        let length = hasLength ? 12 + tile.count + 2 + coded.count : 0
        let part = [0xFF, 0x90] + Samples.big(10, 2) + [0, 0] + Samples.big(length, 4) + [0, 1]
        return [0xFF, 0x4F] + size + main + part + tile + [0xFF, 0x93] + coded + [0xFF, 0xD9]
    }

    private static func file(_ codestream: [UInt8]) -> [UInt8] {
        Samples.box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]) + Samples.box("ftyp", Array("jp2 \0\0\0\0jp2 ".utf8))
            + Samples.box("jp2h", Samples.box("ihdr", [UInt8](repeating: 0, count: 14))) + Samples.box("jp2c", codestream)
    }

    static let texts = [
        "Latitude: 47.370094 Longitude: 8.549106", "geo:47.370094,8.549106", "+47.370094+008.549106/",
        "https://maps.google.com/?q=47.370094,8.549106",
    ]

    @Test(arguments: texts) func `a location in a comment of JPEG 2000 is removed`(_ text: String) throws {
        let comment = Self.comment(Array(text.utf8)), other = Self.comment(Array("A storm".utf8))
        for codestream in [Self.codestream(other + comment), Self.codestream(tile: comment + other, hasLength: false)] {
            let film = TimedMetadataTests.film("mjp2", handler: "vide", samples: [codestream, codestream])
            for bytes in [codestream, Self.file(codestream), Samples.jpeg() + codestream, film] {
                let cleaned = try Cleaned(bytes)
                #expect(cleaned.contains("A storm") && cleaned.contains(Self.coded) && !cleaned.blocks.isEmpty)
                #expect(cleaned.bytes.firstRange(of: Array(text.utf8)) == nil)
            }
        }
    }

    @Test func `a location in a binary comment, a split comment or an unknown segment is removed`() throws {
        let text = Array("latitude: 47.370094, longitude: 8.549106".utf8)
        for segments in [
            Self.comment(text, registration: 0), Self.comment(Array(text[..<14])) + Self.comment(Array(text[14...])),
            Self.comment(text, kind: 0x6F),
        ] {
            let cleaned = try Cleaned(Self.file(Self.codestream(segments)))
            #expect(!cleaned.contains("370094, ") && !cleaned.contains("longitude: 8") && cleaned.contains(Self.coded))
        }
    }

    @Test func `data behind the last marker are searched, and a codestream without a location stays`() throws {
        let plain = Self.codestream(Self.comment(Array("Created by OpenJPEG version 2.5.0".utf8)))
        for bytes in [plain, Self.file(plain)] { #expect(try Cleaned(bytes).bytes == bytes) }
        let text = Array("<p>latitude=47.370094, longitude=8.549106</p>".utf8)
        for bytes in [plain + text, Self.file(plain + text), Self.file(plain) + text] {
            let cleaned = try Cleaned(bytes)
            #expect(!cleaned.contains("=47.37") && cleaned.contains(plain))
        }
    }

    @Test func `a location in a picture of HEIF that is JPEG 2000 is removed`() throws {
        let picture = Self.codestream(Self.comment(Array(Samples.iso.utf8)))
        let cleaned = try Cleaned(BoxTests.heif([("j2k1", picture)]))
        #expect(!cleaned.contains(Samples.iso) && cleaned.contains(Self.coded))
    }

    @Test func `a location in a frame of Motion JPEG is removed`() throws {
        let frame = Samples.jpeg(Samples.exif(Samples.tiff()), Samples.segment(0xFE, Array("geo:47.370094,8.549106".utf8)))
        let film = TimedMetadataTests.film("jpeg", handler: "vide", samples: [frame, frame])
        let chunks = Array("movi00dc".utf8) + Samples.little(frame.count, 4) + frame
        for bytes in [film, Samples.riff([("LIST", chunks)])] {
            let cleaned = try Cleaned(bytes)
            #expect(!cleaned.contains("Zurich") && !cleaned.contains("47.37") && cleaned.contains("Maker of cameras"))
        }
    }

    @Test func `unknown chunks of a frame in an animation are searched`() throws {
        let text = Array("latitude=47.370094, longitude=8.549106 ".utf8)
        let chunks =
            Array("VP8 ".utf8) + Samples.little(4, 4) + [1, 2, 3, 4] + Array("abcd".utf8) + Samples.little(text.count, 4) + text
        let cleaned = try Cleaned(Samples.riff([("ANMF", [UInt8](repeating: 0, count: 16) + chunks)]))
        #expect(!cleaned.contains("47.37") && cleaned.contains([1, 2, 3, 4]))
    }

    @Test func `a segment of JPEG with a reserved marker is searched`() throws {
        let segment = Samples.segment(0x05, Array("latitude=47.370094, longitude=8.549106".utf8))
        let cleaned = try Cleaned(Samples.jpeg(Samples.segment(0xE5, Samples.jpeg(segment)), segment))
        #expect(!cleaned.contains("47.37") && cleaned.blocks.contains("segment 5 of JPEG"))
    }

    // MARK: JPEG XL

    /// Returns bytes that replace a codestream. A decoder could not decode these bytes.
    private static func jxl(_ count: Int = 4_000) -> [UInt8] {
        var state: UInt32 = 7
        return [0xFF, 0x0A]
            + (0..<count).map { _ in
                state = state &* 1_664_525 &+ 1_013_904_223
                return UInt8(state >> 24)
            }
    }

    @Test func `a codestream of JPEG XL with a location behind it is held`() throws {
        let exif = Array("Exif\0\0".utf8) + Samples.tiff()
        for behind in [
            Samples.jpeg(Samples.exif(Samples.tiff())), Samples.box("Exif", [0, 0, 0, 0] + Samples.tiff()), exif,
            Array(Samples.xmp.utf8), Array(" latitude=47.370094, longitude=8.549106 ".utf8),
            Samples.box("brob", Array("Exif".utf8)),
        ] {
            #expect(throws: LocationFailure.self) { try PhotoLocations(searching: MemoryBytes(Self.jxl() + behind)) }
        }
        #expect(try Cleaned(Self.jxl(300_000)).bytes == Self.jxl(300_000))
        // A block of another format can begin with the same bytes as JPEG XL.
        let text: [UInt8] = [0xFF, 0x0A] + Array("latitude=47.370094, longitude=8.549106".utf8)
        #expect(try !Cleaned(Samples.jpeg(Samples.segment(0xE9, text))).contains("47.37"))
    }
}
