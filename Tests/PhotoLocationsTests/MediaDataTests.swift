import Testing

@testable import PhotoLocations

/// Tests media data that no index table of the film refers to. Like free space, media data without an index table can contain any
/// bytes.
@Suite struct MediaDataTests {
    private static let coded = Array("latitude: 12.345678, longitude: 98.765432 in coded data".utf8)
    private static let sentence = Array("$GPRMC,123519,A,4722.2056,N,00832.9464,E,022.4,084.4,230394,003.1,W*64\r\n".utf8)

    /// A film whose samples contain text.
    private static let film = TimedMetadataTests.film("avc1", handler: "vide", samples: [coded, coded])

    @Test func `a box mdat that no table leads to is searched`() throws {
        for text in [Self.sentence, Array(Samples.iso.utf8) + [0], Array(Samples.xmp.utf8), Samples.exif(Samples.tiff())] {
            let cleaned = try Cleaned(Self.film + Samples.box("mdat", [0, 0] + text))
            #expect(cleaned.bytes.starts(with: Self.film) && cleaned.bytes.firstRange(of: text) == nil)
            // The film can also come after a picture in the file.
            #expect(try Cleaned(Samples.jpeg() + Self.film + Samples.box("mdat", [0, 0] + text)).contains(Self.coded))
        }
    }

    @Test func `data in front of the samples and behind them are searched`() throws {
        var bytes = Self.film
        let size = Samples.film.count
        let front = Self.sentence.count
        bytes.replaceSubrange(size + 8..<size + 8, with: Self.sentence)
        bytes.insert(contentsOf: Self.sentence, at: size + 8 + front + 2 * Self.coded.count)
        bytes.replaceSubrange(size..<size + 4, with: Samples.big(8 + 2 * front + 2 * Self.coded.count, 4))
        let table = try #require(bytes.firstRange(of: Array("stco".utf8)))
        bytes.replaceSubrange(table + 12..<table + 16, with: Samples.big(size + 8 + front, 4))
        let cleaned = try Cleaned(bytes)
        #expect(!cleaned.contains("GPRMC") && cleaned.contains(Self.coded + Self.coded))
    }

    @Test(arguments: [true, false]) func `samples of a fragment stay, and other data are searched`(_ hasSizes: Bool) throws {
        let movie = Samples.box(
            "moov",
            Samples.box(
                "mvex",
                Samples.box(
                    "trex",
                    Samples.big(0, 4) + Samples.big(7, 4) + Samples.big(0, 8) + Samples.big(Self.coded.count, 4)
                        + Samples.big(0, 4))))
        func fragment(_ offset: Int) -> [UInt8] {
            let header = Samples.box("tfhd", [0, 2, 0, 0] + Samples.big(7, 4))
            let samples = Samples.big(2, 4) + Samples.big(offset, 4)
            let sizes = hasSizes ? Samples.big(Self.coded.count, 4) + Samples.big(Self.coded.count, 4) : []
            return Samples.box(
                "moof", Samples.box("traf", header + Samples.box("trun", [0, 0, hasSizes ? 2 : 0, 1] + samples + sizes)))
        }
        let bytes =
            Samples.film + movie + fragment(fragment(0).count + 8) + Samples.box("mdat", Self.coded + Self.coded + Self.sentence)
        let cleaned = try Cleaned(bytes)
        #expect(!cleaned.contains("GPRMC") && cleaned.contains(Self.coded + Self.coded))
    }

    @Test func `items of a picture stay`() throws {
        let picture = BoxTests.heif([("hvc1", Self.coded)])
        #expect(try Cleaned(picture).bytes == picture)
    }

    @Test func `tables with impossible numbers do not lead to a crash`() throws {
        for (name, offset) in [("stsc", 8), ("stsc", 12), ("stco", 8), ("stco", 12), ("stsz", 8), ("stsz", 12), ("stsz", 16)] {
            var bytes = Self.film + Samples.box("mdat", Self.sentence)
            let table = try #require(bytes.firstRange(of: Array(name.utf8)))
            bytes.replaceSubrange(table + offset..<table + offset + 4, with: [0xFF, 0xFF, 0xFF, 0xFF])
            _ = try Cleaned(bytes)
        }
    }
}
