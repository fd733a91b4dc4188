import Testing

@testable import PhotoLocations

@Suite struct TimedMetadataTests {
    static func value(_ name: String, _ type: Character, _ size: Int, _ count: Int, _ data: [UInt8]) -> [UInt8] {
        Array(name.utf8) + [type == "\0" ? 0 : type.asciiValue!, UInt8(size)] + Samples.big(count, 2) + data
            + [UInt8](repeating: 0, count: (4 - data.count % 4) % 4)
    }

    /// GPMF telemetry with a scale factor and one position.
    static let telemetry: [UInt8] = {
        let position =
            Samples.big(473_700_940, 4) + Samples.big(85_491_060, 4) + Samples.big(408_000, 4) + Samples.big(1, 4)
            + Samples.big(2, 4)
        let stream = value("SCAL", "l", 4, 1, Samples.big(10_000_000, 4)) + value("GPS5", "l", 20, 1, position)
        let content = value("DVID", "L", 4, 1, [0, 0, 0, 1]) + value("STRM", "\0", 1, stream.count, stream)
        return value("DEVC", "\0", 1, content.count, content)
    }()

    /// Returns a film with one track of metadata.
    ///
    /// - Parameter origin: A number that is added to the offset of the samples.
    static func film(
        _ format: String, _ description: [UInt8] = [], handler: String = "meta", samples: [[UInt8]], origin: Int = 0
    ) -> [UInt8] {
        let entry = Samples.box(format, [0, 0, 0, 0, 0, 0, 0, 1] + description)
        let start = origin + Samples.film.count + 8
        let table =
            Samples.box("stsd", [0, 0, 0, 0, 0, 0, 0, 1] + entry)
            + Samples.box(
                "stsz",
                [UInt8](repeating: 0, count: 8) + Samples.big(samples.count, 4) + samples.flatMap { Samples.big($0.count, 4) })
            + Samples.box(
                "stsc", [0, 0, 0, 0, 0, 0, 0, 1] + Samples.big(1, 4) + Samples.big(samples.count, 4) + Samples.big(1, 4))
            + Samples.box("stco", [0, 0, 0, 0, 0, 0, 0, 1] + Samples.big(start, 4))
        let media =
            Samples.box("hdlr", [UInt8](repeating: 0, count: 8) + Array(handler.utf8) + [UInt8](repeating: 0, count: 13))
            + Samples.box("minf", Samples.box("stbl", table))
        return Samples.film + Samples.box("mdat", samples.flatMap { $0 })
            + Samples.box("moov", Samples.box("trak", Samples.box("mdia", media)))
    }

    @Test func `positions of GoPro become free values`() throws {
        let cleaned = try Cleaned(Self.film("gpmd", samples: [Self.telemetry, Self.telemetry]))
        #expect(!cleaned.contains("GPS5") && cleaned.contains("SCAL") && !cleaned.contains(Samples.big(473_700_940, 4)))
        #expect(cleaned.places == [FoundPlace(latitude: 47.370094, longitude: 8.549106)])
    }

    /// A value has by chance the number of a GPS tag.
    @Test func `positions in Sony metadata are removed, and bytes of other values stay`() throws {
        let header = Samples.big(28, 2) + [UInt8](repeating: 1, count: 26)
        let other = Samples.big(0x8106, 2) + Samples.big(12, 2) + [9, 0x85, 2, 0, 4, 7, 7, 7, 7, 9, 9, 9]
        let place = Samples.big(0x8502, 2) + Samples.big(8, 2) + Samples.big(123_384, 8)
        let label: [UInt8] = [0x06, 0x0E, 0x2B, 0x34] + [UInt8](repeating: 2, count: 12)
        for sample in [header + label + other + place + other + [0, 0, 0, 0, 0, 0], header + other + place] {
            let cleaned = try Cleaned(Self.film("rtmd", samples: [sample]))
            #expect(cleaned.contains(other) && !cleaned.contains(Samples.big(123_384, 8)))
        }
        let damaged = try Cleaned(Self.film("rtmd", samples: [[0xFF, 0xFF] + header + place + other]))
        #expect(!damaged.contains(Samples.big(123_384, 8)))
    }

    @Test func `positions in Google camera motion are removed`() throws {
        let sample = [0, 0, 5, 0] + Samples.double(Samples.latitude) + Samples.double(Samples.longitude) + Samples.double(408)
        let other = [0, 0, 2, 0] + [UInt8](repeating: 1, count: 12)
        let cleaned = try Cleaned(Self.film("camm", handler: "camm", samples: [sample, other]))
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains(other))
    }

    @Test func `a sample with a damaged size is cleaned, and the data behind it stay`() throws {
        let sample = [0, 0, 5, 0] + Samples.double(Samples.latitude) + Samples.double(Samples.longitude) + Samples.double(408)
        var bytes = Self.film("camm", handler: "camm", samples: [sample, [0, 0, 2, 0] + [UInt8](repeating: 1, count: 12)])
        let sizes = try #require(bytes.firstRange(of: Array("stsz".utf8)))
        bytes.replaceSubrange(sizes + 16..<sizes + 20, with: [0x7F, 0xFF, 0xFF, 0xFF])
        let cleaned = try Cleaned(bytes)
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains([UInt8](repeating: 1, count: 12)))
    }

    @Test func `a location in samples of Apple is removed`() throws {
        func key(_ id: Int, _ name: String) -> [UInt8] {
            let declaration = Samples.box("keyd", Array("mdta\(name)".utf8))
            return Samples.big(8 + declaration.count, 4) + Samples.big(id, 4) + declaration
        }
        let keys = Samples.box(
            "keys", key(1, "com.apple.quicktime.location.ISO6709") + key(2, "com.apple.quicktime.video-orientation"))
        func item(_ id: Int, _ value: [UInt8]) -> [UInt8] { Samples.big(8 + value.count, 4) + Samples.big(id, 4) + value }
        let cleaned = try Cleaned(
            Self.film("mebx", keys, samples: [item(1, Array(Samples.iso.utf8)) + item(2, Array("upright".utf8))]))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("location") && cleaned.contains("upright"))
    }

    @Test(arguments: [
        "GPS(8.549106,47.370094,20) D 5.2m", "[latitude: 47.370094] [longitude: 8.549106]",
        "$GPRMC,120000,A,4722.20564,N,00832.94636,E",
    ])
    func `locations in subtitles of drones are removed`(_ text: String) throws {
        let cleaned = try Cleaned(
            Self.film("tx3g", handler: "sbtl", samples: [Samples.big(text.utf8.count, 2) + Array(text.utf8)]))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("8.549") && !cleaned.contains("4722.20"))
    }

    @Test func `telemetry that cannot be read is blank`() throws {
        let cleaned = try Cleaned(Self.film("djmd", samples: [[UInt8]("secret numbers".utf8)]))
        #expect(!cleaned.contains("secret"))
    }

    /// Parrot's drones and dashcams use these formats.
    @Test(arguments: [
        ("mett", "P2\0\u{0D}secret numbers", true), ("mett", "E1\0\u{02}secret numbers", true),
        ("mett", "other secret numbers", false),
        ("RVMI", "gReVsecret numbers", true), ("RVMI", "sReVsecret numbers", false), ("gpmd", "FMAS\0\0\0\0secret numbers", true),
    ])
    func `samples with a position are blank`(_ format: String, _ sample: String, _ isBlank: Bool) throws {
        let cleaned = try Cleaned(Self.film(format, samples: [Array(sample.utf8)]))
        #expect(cleaned.contains("secret") != isBlank)
    }

    @Test func `a track of sound is not touched`() throws {
        #expect(try Cleaned(Self.film("gpmd", handler: "soun", samples: [[1, 2, 3, 4]])).blocks.isEmpty)
    }

    private static let camera: [UInt8] =
        [0, 0, 5, 0] + Samples.double(Samples.latitude) + Samples.double(Samples.longitude) + Samples.double(408)

    @Test(arguments: [4, 8, 16]) func `samples with compact sizes are cleaned`(_ width: Int) throws {
        // If a size has only 4 bits, it is at most 15.
        let samples: [[UInt8]] = width == 4 ? [Array("N47222056E00".utf8), Array("secret".utf8)] : [Self.camera, Self.camera]
        var bytes = Self.film(width == 4 ? "djmd" : "camm", handler: width == 4 ? "meta" : "camm", samples: samples)
        let table = try #require(bytes.firstRange(of: Array("stsz".utf8)))
        let sizes = samples.map(\.count)
        let packed = width == 4 ? [UInt8(sizes[0] << 4 | sizes[1])] : sizes.flatMap { Samples.big($0, width / 8) }
        let content = [0, 0, 0, 0, 0, 0, 0, UInt8(width)] + Samples.big(2, 4) + packed
        bytes.replaceSubrange(
            table - 4..<table + 24, with: Samples.box("stz2", content + [UInt8](repeating: 0, count: 8 - packed.count)))
        let cleaned = try Cleaned(bytes)
        #expect(!cleaned.contains("N4722") && !cleaned.contains("secret") && !cleaned.contains(Samples.double(Samples.latitude)))
    }

    @Test func `positions are removed if the description of the samples is damaged`() throws {
        var bytes = Self.film("camm", handler: "camm", samples: [Self.camera])
        let place = try #require(bytes.firstRange(of: Array("stsd".utf8)))
        bytes[place] = 0x7C
        let cleaned = try Cleaned(bytes)
        #expect(cleaned.bytes.firstRange(of: Self.camera) == nil)
    }

    @Test(arguments: ["camm", "djmd"]) func `positions without sizes of samples are held and named`(_ format: String) throws {
        var bytes = Self.film(format, handler: format == "camm" ? format : "meta", samples: [Self.camera])
        let sizes = try #require(bytes.firstRange(of: Array("stsz".utf8)))
        bytes.replaceSubrange(sizes..<sizes + 4, with: Array("free".utf8))
        #expect(throws: LocationFailure.unproven(block: "timed metadata (\(format)) of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(bytes))
        }
    }

    // MARK: Appended films

    /// The offsets of an appended film are counted from the beginning of the film or from the beginning of the file.
    @Test(arguments: [true, false]) func `films behind another film are cleaned`(_ isOfFile: Bool) throws {
        let first = Samples.film + Samples.box("mdat", (0..<2_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let second = Self.film("djmd", samples: [Array("secret numbers".utf8)], origin: isOfFile ? first.count : 0)
        let third = Self.film("camm", handler: "camm", samples: [Self.camera], origin: isOfFile ? first.count + second.count : 0)
        let cleaned = try Cleaned(first + second + third)
        #expect(Array(cleaned.bytes[..<first.count]) == first)
        #expect(!cleaned.contains("secret") && !cleaned.contains(Samples.double(Samples.latitude)))
    }

    @Test func `a table that leads to other boxes is held, and nothing is overwritten`() throws {
        let film = Self.film("djmd", samples: [Array("secret numbers".utf8)], origin: 20)
        #expect(throws: LocationFailure.unproven(block: "timed metadata (djmd) of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(film))
        }
    }

    // MARK: Fragments

    /// Returns a film with samples in a fragment. The data offset is counted from the box `moof` or from the beginning of the
    /// file.
    private func fragmented(_ format: String, handler: String, _ samples: [[UInt8]], isOfFile: Bool, number: Int) -> [UInt8] {
        let header = Samples.box("tkhd", [UInt8](repeating: 0, count: 12) + Samples.big(1, 4) + [UInt8](repeating: 0, count: 68))
        var film = Self.film(format, handler: handler, samples: [[1, 2, 3]])
        let track = film.firstRange(of: Array("trak".utf8))! + 4
        film.insert(contentsOf: header, at: track)
        let movie = film.firstRange(of: Array("moov".utf8))! - 4
        for box in [movie, track - 8] {
            let size = film[box..<box + 4].reduce(0) { $0 << 8 | Int($1) } + header.count
            film.replaceSubrange(box..<box + 4, with: Samples.big(size, 4))
        }
        func fragment(_ size: Int) -> [UInt8] {
            let base = isOfFile ? Samples.big(film.count, 8) : []
            let run = Samples.box(
                "trun",
                [0, 0, 2, 1] + Samples.big(samples.count, 4) + Samples.big(size + 8, 4)
                    + samples.flatMap { Samples.big($0.count, 4) })
            let flags: [UInt8] = isOfFile ? [0, 0, 0, 1] : [0, 2, 0, 0]
            return Samples.box("moof", Samples.box("traf", Samples.box("tfhd", flags + Samples.big(number, 4) + base) + run))
        }
        return film + fragment(fragment(0).count) + Samples.box("mdat", samples.flatMap { $0 })
    }

    @Test(arguments: [true, false], [1, 9]) func `samples of fragments are cleaned`(_ isOfFile: Bool, _ number: Int) throws {
        let text = Array("GPS(8.549106,47.370094,20)".utf8)
        #expect(
            try !Cleaned(fragmented("text", handler: "text", [text, text], isOfFile: isOfFile, number: number)).contains("47.37"))
        let blank = fragmented("djmd", handler: "meta", [Array("secret numbers".utf8)], isOfFile: isOfFile, number: number)
        #expect(try !Cleaned(blank).contains("secret"))
        let camera = fragmented("camm", handler: "camm", [Self.camera, Self.camera], isOfFile: isOfFile, number: number)
        #expect(try !Cleaned(camera).contains(Samples.double(Samples.latitude)))
    }

    // MARK: Dashcams

    @Test(arguments: [
        "A,270526,201555.000,4722.2056,N,00832.9464,E,000.0,331.0M;",
        "gsensori,4,512,-67;GNRMC,1.00,A,4722.20564,N,00832.94636,E,6;",
        "$G:2026-07-01 12:00:00-N47.370094-E8.549106-S10", "2026.N47222056E008329464+0157000",
        "[1][N][47222056][E][008329464][+00152]",
    ])
    func `text of dashcams is cleaned, plain and with each byte XOR 0xAA`(_ text: String) throws {
        let plain = try Cleaned(Self.film("text", handler: "text", samples: [Array(text.utf8)]))
        #expect(!plain.contains("4722") && !plain.contains("47.37") && !plain.contains("8.549") && !plain.contains("8329"))
        let secret = Array(text.utf8).map { $0 ^ 0xAA }
        #expect(try !Cleaned(Self.film("text", handler: "text", samples: [secret])).contains(Array(secret[4..<20])))
    }

    @Test func `blocks of dashcams among the pictures are cleaned`() throws {
        let block = Samples.big(0x100, 4) + Array("freeGPS ".utf8) + [UInt8](repeating: 0x4E, count: 0x100 - 12)
        let pictures = [UInt8](repeating: 0x33, count: 50)
        let cleaned = try Cleaned(Samples.film + Samples.box("mdat", pictures + block + pictures))
        #expect(!cleaned.contains("freeGPS") && !cleaned.contains("NNNN") && cleaned.contains(pictures + Samples.big(0x100, 4)))
        #expect(cleaned.bytes.suffix(50).elementsEqual(pictures))
    }

    /// In H.264, two zero bytes mark the beginning of a message. The cleaning therefore adds no zero bytes, and keeps each byte 3
    /// that follows two zero bytes.
    @Test func `the location in H264 messages is removed`() throws {
        let values: [[UInt8]] = [
            [0xB0, 2, 3, 0, 0], [0xB1, 0x4E, 0, 0, 3, 0], [0xB2, 0, 47, 0, 1], [0x18, 1, 2, 3, 4],
        ]
        let message = MediaSearch.message + [4] + values.flatMap { $0 } + [0x80]
        let cleaned = try Cleaned(Samples.film + Samples.box("mdat", [0, 0, 0, 0x60, 6, 5, 0x40] + message))
        let expected: [UInt8] = [
            4, 0xB0, 0xFF, 0xFF, 0, 0, 0xB1, 0xFF, 0, 0, 3, 0, 0xB2, 0, 0xFF, 0, 0xFF, 0x18, 1, 2, 3, 4, 0x80,
        ]
        #expect(cleaned.bytes.suffix(expected.count).elementsEqual(expected), "\(cleaned.bytes.suffix(expected.count))")
    }
}
