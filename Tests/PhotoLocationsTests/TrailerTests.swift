import Testing

@testable import PhotoLocations

@Suite struct TrailerTests {
    /// The picture is damaged: the size of a marker in its scan includes the trailer.
    @Test func `a damaged picture does not protect a record of Insta360`() throws {
        let record =
            [UInt8](repeating: 7, count: 10) + Array("A".utf8) + Samples.double(Samples.latitude) + Array("N".utf8)
            + Samples.double(Samples.longitude) + Array("E".utf8) + [UInt8](repeating: 1, count: 24)
        let footer =
            Samples.little(0x700, 2) + Samples.little(53, 4) + [UInt8](repeating: 0, count: 32) + Samples.little(53 + 78, 4)
            + Samples.little(3, 4) + Array("8db42d694ccc418790edff439fe026bf".utf8)
        let picture = Array(Samples.jpeg().dropLast(2)) + [0xFF, 0x41, 0x7F, 0xFF, 0x12]
        let cleaned = try Cleaned(picture + record + footer)
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.blocks == ["location record of Insta360"])
    }

    /// The size of the record is damaged, and includes the picture.
    @Test func `a record of Insta360 with a damaged size leaves the picture`() throws {
        let record = [UInt8](repeating: 9, count: 53)
        let size = Samples.little(0x700, 2) + Samples.little(53 + 90, 4)
        let footer =
            size + [UInt8](repeating: 0, count: 32) + Samples.little(1 << 30, 4) + Samples.little(3, 4)
            + Array("8db42d694ccc418790edff439fe026bf".utf8)
        let picture = Samples.jpeg()
        let cleaned = try Cleaned(picture + record + footer)
        #expect(Array(cleaned.bytes[..<picture.count]) == picture && !cleaned.contains(record))
    }

    private func samsung(_ blocks: [(kind: Int, name: String, content: [UInt8])]) -> [UInt8] {
        var (data, starts) = ([UInt8](), [(Int, Int)]())
        for block in blocks {
            let bytes =
                [0, 0] + Samples.little(block.kind, 2) + Samples.little(block.name.utf8.count, 4) + Array(block.name.utf8)
                + block.content
            starts.append((data.count, bytes.count))
            data += bytes
        }
        var entries: [UInt8] = []
        for (block, start) in zip(blocks, starts) {
            entries += [0, 0] + Samples.little(block.kind, 2)
            entries += Samples.little(data.count - start.0, 4) + Samples.little(start.1, 4)
        }
        let list = Array("SEFH".utf8) + Samples.little(106, 4) + Samples.little(blocks.count, 4) + entries
        return data + list + Samples.little(list.count, 4) + Array("SEFT".utf8)
    }

    @Test func `the country of the network in a Samsung trailer is removed`() throws {
        let cleaned = try Cleaned(
            Samples.jpeg()
                + samsung([(0x0A01, "Image_UTC_Data", Array("1764158400000".utf8)), (0x0AA1, "MCC_Data", Array("228".utf8))]))
        #expect(!cleaned.contains("228") && !cleaned.contains("MCC") && cleaned.contains("1764158400000"))
        #expect(cleaned.blocks.contains("Samsung block MCC_Data"))
    }

    @Test func `a film and a picture in a Samsung trailer are cleaned`() throws {
        let film =
            Samples.film + Samples.box("moov", Samples.box("udta", Samples.box("©xyz", [0, 30, 0, 0] + Array(Samples.iso.utf8))))
        let picture = Samples.jpeg(Samples.exif(Samples.tiff()))
        let cleaned = try Cleaned(Samples.jpeg() + samsung([(0x0A30, "MotionPhoto_Data", film), (1, "Image", picture)]))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("Zurich"))
    }

    @Test func `a film behind a picture is cleaned`() throws {
        let film =
            Samples.film + Samples.box("moov", Samples.box("udta", Samples.box("©xyz", [0, 30, 0, 0] + Array(Samples.iso.utf8))))
        #expect(try !Cleaned(Samples.jpeg() + film).contains("47.37"))
    }

    private var insta360: [UInt8] {
        var record = Samples.little(1, 4) + Samples.little(0, 6) + [UInt8(ascii: "A")]
        record += Samples.double(Samples.latitude) + [UInt8(ascii: "N")]
        record += Samples.double(Samples.longitude) + [UInt8(ascii: "E")]
        for value in [1.0, 2, 408] { record += Samples.double(value) }
        var records = [UInt8](repeating: 5, count: 20) + Samples.little(0x300, 2) + Samples.little(20, 4)
        records += record
        records += record
        let size = records.count + 78
        records += Samples.little(0x700, 2) + Samples.little(106, 4) + [UInt8](repeating: 0, count: 32)
        records += Samples.little(size, 4) + Samples.little(3, 4)
        return records + Array("8db42d694ccc418790edff439fe026bf".utf8)
    }

    @Test func `location records of Insta360 behind pictures and films are removed`() throws {
        for file in [Samples.jpeg(), Samples.film + Samples.box("mdat", [1, 2, 3])] {
            let cleaned = try Cleaned(file + insta360)
            #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains([UInt8](repeating: 5, count: 20)))
            #expect(cleaned.places == [FoundPlace(latitude: Samples.latitude, longitude: Samples.longitude)])
        }
    }

    @Test func `a location in text behind a picture is removed`() throws {
        let cleaned = try Cleaned(Samples.jpeg() + Array("<html>latitude=47.370094, longitude=8.549106</html>".utf8))
        #expect(!cleaned.contains("47.37") && cleaned.contains("</html>"))
    }

    @Test(arguments: [0, 1 << 30])
    func `location records of Insta360 in front of an empty or damaged record are removed`(_ size: Int) throws {
        let trailer = insta360
        let location = Array(trailer[26..<26 + 106])
        let header = Samples.little(0x700, 2) + Samples.little(106, 4)
        let other = Samples.little(0x101, 2) + Samples.little(size, 4)
        let last = [UInt8](repeating: 6, count: 30) + Samples.little(0x300, 2) + Samples.little(30, 4)
        let records = location + header + other + last
        let footer =
            [UInt8](repeating: 0, count: 32) + Samples.little(records.count + 72, 4) + Samples.little(3, 4)
            + Array("8db42d694ccc418790edff439fe026bf".utf8)
        let cleaned = try Cleaned(Samples.film + Samples.box("mdat", [1, 2, 3]) + records + footer)
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains([UInt8](repeating: 6, count: 30)))
    }
}
