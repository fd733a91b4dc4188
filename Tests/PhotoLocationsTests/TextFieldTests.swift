import Testing

@testable import PhotoLocations

/// Tests texts that contain a location, in fields that are not intended for locations.
@Suite struct TextFieldTests {
    private static let texts = [
        "47.370N 8.549E", "Hail at 47.370094 N, 8.549106 E", "lat 47.370094 lon 8.549106", "+47.370094+008.549106/",
    ]

    private func expectClean(_ file: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
        let letters = try Cleaned(file).bytes.filter { $0 != 0 }
        for part in ["47.370", "8.549", "370094", "549106"] {
            #expect(letters.firstRange(of: Array(part.utf8)) == nil, "\(part)", sourceLocation: sourceLocation)
        }
    }

    private func wide(_ text: String) -> [UInt8] { text.utf8.flatMap { [$0, 0] as [UInt8] } }

    @Test(arguments: texts, [0x010E, 0x0131, 0x013B, 0x8298, 0x9286, 0x9C9C, 0xA430, 0xC614])
    func `a location in a text of Exif is removed`(_ text: String, _ tag: Int) throws {
        let isWindows = tag == 0x9C9C
        let value = isWindows ? wide(text) : Array((tag == 0x9286 ? "ASCII\0\0\0" : "").utf8) + Array(text.utf8) + [0]
        let unicode = Array("UNICODE\0".utf8) + wide(text)
        for value in tag == 0x9286 ? [value, unicode] : [value] {
            let entry = Samples.Entry(tag: tag, type: tag == 0x9286 ? 7 : isWindows ? 1 : 2, count: value.count, value: value)
            let tiff = Samples.tiff([entry], hasGPS: false)
            try expectClean(tiff)
            try expectClean(Samples.jpeg(Samples.exif(tiff)))
            let png = try Cleaned(Samples.png(Samples.chunk("eXIf", tiff))).bytes
            let start = try #require(png.firstRange(of: Array("eXIf".utf8)))
            let checksum = Samples.big(Int(Deflate.checksum(Array(png[start..<start + 4 + tiff.count]))), 4)
            #expect(Array(png[start + 4 + tiff.count..<start + 8 + tiff.count]) == checksum)
            try expectClean(png)
            let exif = BoxTests.heif([("Exif", [0, 0, 0, 0] + tiff)])
            try expectClean(exif)
        }
    }

    @Test(arguments: texts) func `a location in a text of a film is removed`(_ text: String) throws {
        for letters in [Array(text.utf8), wide(text)] {
            for type in ["©cmt", "©inf", "titl", "dscp", "name"] {
                for front in [Samples.big(letters.count, 2) + [0x55, 0xC4], [0, 0, 0, 0, 0x15, 0xC7]] {
                    try expectClean(Samples.film + Samples.box("moov", Samples.box("udta", Samples.box(type, front + letters))))
                }
            }
            let data = Samples.box("data", Samples.big(1, 4) + Samples.big(0, 4) + letters)
            let handler = Samples.box("hdlr", Samples.big(0, 8) + Array("mdirappl".utf8) + Samples.big(0, 9))
            for item in [
                Samples.box("cprt", data),
                Samples.box("----", Samples.box("mean", Samples.big(0, 4)) + Samples.box("name", Samples.big(0, 4)) + data),
            ] {
                let meta = Samples.box("meta", Samples.big(0, 4) + handler + Samples.box("ilst", item))
                try expectClean(Samples.film + Samples.box("moov", Samples.box("udta", meta)))
            }
            for type in ["data", "free", "skip", "uuid", "meta", "wide"] {
                let content = [UInt8](repeating: 0x91, count: 16) + letters
                try expectClean(Samples.film + Samples.box(type, content) + Samples.box("moov", []))
            }
        }
    }

    @Test(arguments: texts) func `a location that is split over two JPEG comments is removed`(_ text: String) throws {
        let letters = Array(text.utf8)
        for cut in 1..<letters.count {
            let file = Samples.jpeg(Samples.segment(0xFE, Array(letters[..<cut])), Samples.segment(0xFE, Array(letters[cut...])))
            let digits = try Cleaned(file).bytes.filter { (49...57).contains($0) }
            #expect(digits.count < 4, "cut at \(cut)")
        }
    }

    /// The range of the strip overlaps the text or the TIFF directory.
    @Test(arguments: texts, [4_000, 100_000, 0xFFFF_FFFF]) func `a wrong size of a strip hides no text`(
        _ text: String, _ size: Int
    ) throws {
        for compression in [1, 5] {
            let numbers = [(256, 10), (257, 10), (258, 8), (259, compression), (0x111, 200), (0x117, size)]
            let entries = numbers.map { Samples.Entry(tag: $0, type: 4, count: 1, value: Samples.little($1, 4)) }
            var tiff: [UInt8] = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory(entries, at: 8)
            tiff += [UInt8](repeating: 0x90, count: 200 - tiff.count + (compression == 1 ? 100 : 70_000))
            try expectClean(tiff + [0, 0] + Array(text.utf8) + [0, 0])
        }
        let numbers = [(256, 10), (257, 10), (0x111, 8), (0x117, size)]
        let entries =
            numbers.map { Samples.Entry(tag: $0, type: 4, count: 1, value: Samples.little($1, 4)) } + [Samples.text(0x13B, text)]
        let pixels = [UInt8](repeating: 0x90, count: 100)
        try expectClean(
            [0x49, 0x49, 42, 0] + Samples.little(108, 4) + pixels + Samples.directory(entries.sorted { $0.tag < $1.tag }, at: 108)
        )
    }

    @Test(arguments: [true, false], [0, 1, 2])
    func `a GPS directory without a pointer is cleaned`(_ isLittle: Bool, _ dropped: Int) throws {
        let number = isLittle ? Samples.little : Samples.big
        let header = (isLittle ? [0x49, 0x49] : [0x4D, 0x4D]) + number(42, 2) + number(8, 4)
        let first = header + Samples.directory([Samples.text(0x10F, "Maker of cameras")], at: 8, isLittle: isLittle)
        let entries = Array(Samples.gps(isLittle: isLittle).dropFirst(dropped))
        let tiff = first + Samples.directory(entries, at: first.count, isLittle: isLittle)
        let loose = Samples.directory(entries, at: 5_000, isLittle: isLittle)
        for file in [
            tiff, Samples.jpeg(Samples.exif(tiff)), Samples.png(Samples.chunk("eXIf", tiff)),
            BoxTests.heif([("Exif", [0, 0, 0, 0] + tiff)]),
            Samples.jpeg() + [UInt8](repeating: 0x80, count: 33) + loose,
        ] {
            let cleaned = try Cleaned(file)
            #expect(!cleaned.contains(number(123_384, 4)) && !cleaned.contains("Zurich"))
            #expect(file.firstRange(of: Array("Maker".utf8)) == nil || cleaned.contains("Maker of cameras"))
        }
    }

    /// Eight bytes before the GPS directory were lost. An offset therefore points to the minutes instead of the degrees.
    @Test(arguments: [true, false]) func `a GPS directory that moved loses its numbers`(_ isLittle: Bool) throws {
        let number = isLittle ? Samples.little : Samples.big
        let header = (isLittle ? [0x49, 0x49] : [0x4D, 0x4D]) + number(42, 2) + number(8, 4)
        let first = header + Samples.directory([Samples.text(0x10F, "Maker of cameras")], at: 8, isLittle: isLittle)
        let entries = Samples.gps(isLittle: isLittle)
        let cleaned = try Cleaned(first + Samples.directory(entries, at: first.count + 8, isLittle: isLittle))
        #expect(!cleaned.contains([47, 1, 22, 1].flatMap { number($0, 4) }) && !cleaned.contains(number(123_384, 4)))
        #expect(cleaned.contains("Maker of cameras"))
    }
}
