import Testing

@testable import PhotoLocations

@Suite struct TIFFTests {
    @Test(arguments: [true, false]) func `a GPS directory keeps its version alone`(_ isLittle: Bool) throws {
        let tiff = Samples.tiff(isLittle: isLittle)
        let cleaned = try Cleaned(tiff)
        #expect(cleaned.blocks == ["GPS directory of TIFF"])
        #expect(!cleaned.contains("Zurich") && cleaned.contains("Maker of cameras"))
        let place = try #require(cleaned.places.first)
        #expect(abs(place.latitude! - Samples.latitude) < 1e-6 && abs(place.longitude! - Samples.longitude) < 1e-6)
        // The pointer to the GPS directory is unchanged. After the cleaning, the GPS directory has only one entry, the version
        // (GPSVersionID).
        let number = isLittle ? Samples.little : Samples.big
        let directory = tiff.count - Samples.directory(Samples.gps(isLittle: isLittle), at: 0, isLittle: isLittle).count
        #expect(Array(cleaned.bytes[directory..<directory + 2]) == number(1, 2))
        #expect(Array(cleaned.bytes[directory + 10..<directory + 14]) == [2, 3, 0, 0])
        #expect(try Cleaned(cleaned.bytes).blocks.isEmpty, "a second run finds nothing")
    }

    @Test func `south and west are negative`() throws {
        var tiff = Samples.tiff()
        let start = tiff.count - Samples.directory(Samples.gps(), at: 0).count
        tiff[start + 2 + 12 + 8] = UInt8(ascii: "S")
        tiff[start + 2 + 36 + 8] = UInt8(ascii: "W")
        let place = try #require(try Cleaned(tiff).places.first)
        #expect(place.latitude! < -47 && place.longitude! < -8)
    }

    @Test func `pages and levels of other directories are unchanged`() throws {
        // The file has TIFF directories with strips. The last TIFF directory also points to a GPS directory.
        let pixels = [UInt8]((0..<200).map { UInt8($0) })
        let strip = [
            Samples.Entry(tag: 0x111, type: 4, count: 1, value: Samples.little(8, 4)),
            Samples.Entry(tag: 0x117, type: 4, count: 1, value: Samples.little(200, 4)),
        ]
        var tiff: [UInt8] = [0x49, 0x49, 42, 0] + Samples.little(208, 4) + pixels
        tiff += Samples.directory(strip, at: 208, next: 238)
        tiff += Samples.directory(strip + [Samples.Entry(tag: 0x8825, type: 4, count: 1, value: Samples.little(300, 4))], at: 238)
        tiff += [UInt8](repeating: 9, count: 300 - tiff.count) + Samples.directory(Samples.gps(), at: 300)
        let cleaned = try Cleaned(tiff)
        #expect(Array(cleaned.bytes[..<300]) == Array(tiff[..<300]) && !cleaned.contains("Zurich"))
    }

    @Test(arguments: [0x014A, 0x8769]) func `a GPS directory below another directory is found`(_ pointer: Int) throws {
        let inner = [Samples.Entry(tag: 0x8825, type: 4, count: 1, value: Samples.little(100, 4))]
        let outer = [Samples.Entry(tag: pointer, type: 4, count: 1, value: Samples.little(50, 4))]
        var tiff: [UInt8] = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory(outer, at: 8)
        tiff += [UInt8](repeating: 0, count: 50 - tiff.count) + Samples.directory(inner, at: 50)
        tiff += [UInt8](repeating: 0, count: 100 - tiff.count) + Samples.directory(Samples.gps(), at: 100)
        #expect(try !Cleaned(tiff).contains("Zurich"))
    }

    @Test func `XMP, IPTC and Photoshop resources of a TIFF file are cleaned`() throws {
        let xmp = Array(Samples.xmp.utf8)
        let resources = Samples.resource(0x0404, Samples.iptc)
        let cleaned = try Cleaned(
            Samples.tiff([
                Samples.Entry(tag: 0x02BC, type: 1, count: xmp.count, value: xmp),
                Samples.Entry(tag: 0x83BB, type: 7, count: Samples.iptc.count, value: Samples.iptc),
                Samples.Entry(tag: 0x8649, type: 7, count: resources.count, value: resources),
            ]))
        #expect(!cleaned.contains("Zurich") && !cleaned.contains("Switzerland") && cleaned.contains("<dc:title>Hail</dc:title>"))
        #expect(cleaned.blocks.count == 4, "\(cleaned.blocks)")
    }

    @Test func `GeoTIFF loses its coordinates and keeps its entries`() throws {
        let numbers = [0, 0, 0, Samples.longitude, Samples.latitude, 0].flatMap { Samples.double($0) }
        let cleaned = try Cleaned(
            Samples.tiff(
                [Samples.Entry(tag: 33922, type: 12, count: 6, value: numbers), Samples.text(34737, "WGS 84|Zurich|")],
                hasGPS: false))
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && !cleaned.contains("Zurich"))
        #expect(cleaned.contains(Samples.little(33922, 2) + Samples.little(12, 2)))
    }

    @Test func `RPC coefficients of satellites become zeros`() throws {
        let numbers = [-1, -1, 500, 500, Samples.latitude, Samples.longitude, 408].flatMap { Samples.double($0) }
        let cleaned = try Cleaned(
            Samples.tiff([Samples.Entry(tag: 50844, type: 12, count: 7, value: numbers)], hasGPS: false))
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains(Samples.little(50844, 2)))
    }

    @Test(arguments: ["PENTAX \0II", "RICOH\0II"]) func `cities in the notes of Pentax and Ricoh lose their numbers`(
        _ mark: String
    )
        throws
    {
        let cities = [0x23, 0x24].map { Samples.Entry(tag: $0, type: 3, count: 1, value: Samples.little(777, 2)) }
        let note = Array(mark.utf8) + Samples.directory(cities, at: mark.utf8.count)
        let cleaned = try Cleaned(
            Samples.tiff([Samples.Entry(tag: 0x927C, type: 7, count: note.count, value: note)], hasGPS: false))
        #expect(!cleaned.contains(Samples.little(777, 2)) && cleaned.contains(mark))
    }

    @Test func `names of places in makers' notes become zeros`() throws {
        // The offsets of Panasonic's values are counted from the header of the file.
        let head = Samples.tiff(
            [Samples.Entry(tag: 0x927C, type: 7, count: 100, value: [UInt8](repeating: 0, count: 100))], hasGPS: false)
        let start = head.count - 100
        let note =
            Array("Panasonic\0\0\0".utf8)
            + Samples.directory([Samples.text(0x6D, "Zurich"), Samples.text(0x25, "X serial")], at: start + 12)
        let cleaned = try Cleaned(Array(head[..<start]) + note + [UInt8](repeating: 0, count: 100 - note.count))
        #expect(!cleaned.contains("Zurich") && cleaned.contains("X serial"))
        #expect(cleaned.blocks == ["name of a place in maker note of TIFF"])
    }

    /// Casio stores the name of a city. Pentax stores the numbers of two cities in four bytes.
    @Test func `cities of the world clock are removed`() throws {
        let head = Samples.tiff(
            [Samples.Entry(tag: 0x927C, type: 7, count: 100, value: [UInt8](repeating: 0, count: 100))], hasGPS: false)
        let start = head.count - 100
        func cleaned(_ mark: [UInt8], _ entries: [Samples.Entry], isLittle: Bool = true) throws -> Cleaned {
            let note = mark + Samples.directory(entries, at: start + mark.count, isLittle: isLittle)
            return try Cleaned(Array(head[..<start]) + note + [UInt8](repeating: 0, count: 100 - note.count))
        }
        let kept = Samples.text(0x3007, "kept")
        for isLittle in [true, false] {
            let casio = try cleaned(Array("QVC\0\0\0".utf8), [Samples.text(0x3006, "New York"), kept], isLittle: isLittle)
            #expect(!casio.contains("New York") && casio.contains("kept"))
        }
        let numbers = [0x23, 0x6B].map { Samples.Entry(tag: $0, type: 7, count: 4, value: [0, 0, 41, 42]) }
        let pentax = try cleaned(Array("AOC\0II".utf8), numbers + [kept])
        #expect(!pentax.contains([41, 42]) && pentax.contains("kept"))
    }

    @Test func `Kodak's GPS text is removed`() throws {
        let outer = [Samples.Entry(tag: 0xFE00, type: 4, count: 1, value: Samples.little(50, 4))]
        var tiff: [UInt8] = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory(outer, at: 8)
        tiff +=
            [UInt8](repeating: 0, count: 50 - tiff.count) + Samples.directory([Samples.text(0x0402, "4722.2N 832.9E")], at: 50)
        #expect(try !Cleaned(tiff).contains("4722.2N"))
    }

    @Test(arguments: [[0x49, 0x49, 0xBF, 0], [0x49, 0x49, 0x2A, 0x80], [0x49, 0x49, 0, 0]] as [[UInt8]])
    func `a damaged version does not hide the location`(_ mark: [UInt8]) throws {
        let tiff = mark + Samples.tiff()[4...]
        let exif = Array("Exif\0\0".utf8) + tiff
        for file in [
            tiff, Samples.jpeg(Samples.segment(0xE1, exif)), Samples.png(Samples.chunk("eXIf", tiff)),
            Samples.riff([("EXIF", tiff)]), Samples.film + Samples.box("Exif", [0, 0, 0, 0] + tiff),
        ] {
            #expect(try !Cleaned(file).contains("Zurich"))
        }
    }

    @Test func `text that begins like a header is not a TIFF file`() throws {
        for text in ["II. Of storms and their places", "MM: 20 mm of rain"] {
            #expect(try !PhotoLocations(searching: MemoryBytes(Array(text.utf8))).isKnownFormat)
        }
    }

    @Test(arguments: [[0x49, 0x49, 0x52, 0x4F], [0x49, 0x49, 0x55, 0]] as [[UInt8]])
    func `raw files with a mark of their maker are read`(_ mark: [UInt8]) throws {
        #expect(try !Cleaned(mark + Samples.tiff()[4...]).contains("Zurich"))
    }

    @Test func `a raw file in no known format is searched for directories`() throws {
        let raw =
            Array("FUJIFILMCCD-RAW 0201".utf8) + [UInt8](repeating: 0, count: 100) + Samples.jpeg(Samples.exif(Samples.tiff()))
        #expect(try !Cleaned(raw).contains("Zurich"))
    }

    @Test func `a damaged pointer into the GPS directory does not protect it`() throws {
        var tiff = Samples.tiff([Samples.Entry(tag: 0x8769, type: 4, count: 1, value: Samples.little(0, 4))])
        let gps = tiff.count - Samples.directory(Samples.gps(), at: 0).count
        let pointer = try #require(tiff.firstRange(of: Samples.little(0x8769, 2)))
        tiff.replaceSubrange(pointer + 8..<pointer + 12, with: Samples.little(gps - 5, 4))
        #expect(try !Cleaned(tiff).contains("Zurich"))
    }

    /// Without these values, a decoder would show other pixels.
    @Test(arguments: [0x0102, 0x0140, 0x015B]) func `a damaged GPS entry does not remove values of the pixels`(_ tag: Int) throws
    {
        // The values are fractions with zero denominators, so they are not coordinates.
        let values = [7, 8, 9].flatMap { Samples.little($0 << 8 | 1, 4) + Samples.little(0, 4) }
        var tiff = Samples.tiff([Samples.Entry(tag: tag, type: 3, count: 12, value: values)])
        let place = try #require(tiff.firstRange(of: values))
        let latitude = try #require(tiff.firstRange(of: Samples.little(2, 2) + Samples.little(5, 2) + Samples.little(3, 4)))
        tiff.replaceSubrange(latitude + 8..<latitude + 12, with: Samples.little(place, 4))
        let cleaned = try Cleaned(tiff)
        #expect(Array(cleaned.bytes[place..<place + 24]) == values && !cleaned.contains("Zurich"))
    }

    @Test func `a GPS directory without entries is as it was`() throws {
        let pointer = Samples.Entry(tag: 0x8825, type: 4, count: 1, value: Samples.little(60, 4))
        let tiff =
            [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory([pointer], at: 8) + [UInt8](repeating: 0, count: 40)
        #expect(try Cleaned(tiff).bytes == tiff)
    }

    @Test func `a GPS pointer into another directory loses its meaning`() throws {
        var tiff = Samples.tiff(hasGPS: false)
        // The entry of the maker is changed into a pointer to the TIFF directory that contains this entry.
        tiff.replaceSubrange(
            10..<22, with: Samples.little(0x8825, 2) + Samples.little(4, 2) + Samples.little(1, 4) + Samples.little(8, 4))
        let cleaned = try Cleaned(tiff)
        #expect(Array(cleaned.bytes[10..<12]) == Samples.little(0x8826, 2))
    }
}
