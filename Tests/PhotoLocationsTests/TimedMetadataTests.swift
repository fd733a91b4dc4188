import Testing

@testable import PhotoLocations

@Suite struct TimedMetadataTests {
    static func value(_ name: String, _ type: Character, _ size: Int, _ count: Int, _ data: [UInt8]) -> [UInt8] {
        Array(name.utf8) + [type == "\0" ? 0 : type.asciiValue!, UInt8(size)] + Samples.big(count, 2) + data
            + [UInt8](repeating: 0, count: (4 - data.count % 4) % 4)
    }

    /// GPMF with a scale and one position.
    static let telemetry: [UInt8] = {
        let position =
            Samples.big(473_700_940, 4) + Samples.big(85_491_060, 4) + Samples.big(408_000, 4) + Samples.big(1, 4)
            + Samples.big(2, 4)
        let stream = value("SCAL", "l", 4, 1, Samples.big(10_000_000, 4)) + value("GPS5", "l", 20, 1, position)
        let content = value("DVID", "L", 4, 1, [0, 0, 0, 1]) + value("STRM", "\0", 1, stream.count, stream)
        return value("DEVC", "\0", 1, content.count, content)
    }()

    /// A film with one track of metadata.
    private func film(_ format: String, _ description: [UInt8] = [], handler: String = "meta", samples: [[UInt8]]) -> [UInt8] {
        let entry = Samples.box(format, [0, 0, 0, 0, 0, 0, 0, 1] + description)
        let start = Samples.film.count + 8
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
        let cleaned = try Cleaned(film("gpmd", samples: [Self.telemetry, Self.telemetry]))
        #expect(!cleaned.contains("GPS5") && cleaned.contains("SCAL") && !cleaned.contains(Samples.big(473_700_940, 4)))
        #expect(cleaned.places == [FoundPlace(latitude: 47.370094, longitude: 8.549106)])
    }

    @Test func `positions of Google's camera motion`() throws {
        let sample = [0, 0, 5, 0] + Samples.double(Samples.latitude) + Samples.double(Samples.longitude) + Samples.double(408)
        let other = [0, 0, 2, 0] + [UInt8](repeating: 1, count: 12)
        let cleaned = try Cleaned(film("camm", handler: "camm", samples: [sample, other]))
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains(other))
    }

    @Test func `a damaged size of a sample leaves what is behind it`() throws {
        let sample = [0, 0, 5, 0] + Samples.double(Samples.latitude) + Samples.double(Samples.longitude) + Samples.double(408)
        var bytes = film("camm", handler: "camm", samples: [sample, [0, 0, 2, 0] + [UInt8](repeating: 1, count: 12)])
        let sizes = try #require(bytes.firstRange(of: Array("stsz".utf8)))
        bytes.replaceSubrange(sizes + 16..<sizes + 20, with: [0x7F, 0xFF, 0xFF, 0xFF])
        let cleaned = try Cleaned(bytes)
        #expect(!cleaned.contains(Samples.double(Samples.latitude)) && cleaned.contains([UInt8](repeating: 1, count: 12)))
    }

    @Test func `Apple's samples with a key of a location`() throws {
        func key(_ id: Int, _ name: String) -> [UInt8] {
            let declaration = Samples.box("keyd", Array("mdta\(name)".utf8))
            return Samples.big(8 + declaration.count, 4) + Samples.big(id, 4) + declaration
        }
        let keys = Samples.box(
            "keys", key(1, "com.apple.quicktime.location.ISO6709") + key(2, "com.apple.quicktime.video-orientation"))
        func item(_ id: Int, _ value: [UInt8]) -> [UInt8] { Samples.big(8 + value.count, 4) + Samples.big(id, 4) + value }
        let cleaned = try Cleaned(
            film("mebx", keys, samples: [item(1, Array(Samples.iso.utf8)) + item(2, Array("upright".utf8))]))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("location") && cleaned.contains("upright"))
    }

    @Test(arguments: [
        "GPS(8.549106,47.370094,20) D 5.2m", "[latitude: 47.370094] [longitude: 8.549106]",
        "$GPRMC,120000,A,4722.20564,N,00832.94636,E",
    ])
    func `subtitles of drones`(_ text: String) throws {
        let cleaned = try Cleaned(film("tx3g", handler: "sbtl", samples: [Samples.big(text.utf8.count, 2) + Array(text.utf8)]))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("8.549") && !cleaned.contains("4722.20"))
    }

    @Test func `telemetry that cannot be read is blank`() throws {
        let cleaned = try Cleaned(film("djmd", samples: [[UInt8]("secret numbers".utf8)]))
        #expect(!cleaned.contains("secret"))
    }

    /// Parrot's drones, and dashcams.
    @Test(arguments: [
        ("mett", "P2\0\u{0D}secret numbers", true), ("mett", "E1\0\u{02}secret numbers", true),
        ("mett", "other secret numbers", false),
        ("RVMI", "gReVsecret numbers", true), ("RVMI", "sReVsecret numbers", false), ("gpmd", "FMAS\0\0\0\0secret numbers", true),
    ])
    func `samples with a position are blank`(_ format: String, _ sample: String, _ isBlank: Bool) throws {
        let cleaned = try Cleaned(film(format, samples: [Array(sample.utf8)]))
        #expect(cleaned.contains("secret") != isBlank)
    }

    @Test func `a track of sound is not touched`() throws {
        #expect(try Cleaned(film("gpmd", handler: "soun", samples: [[1, 2, 3, 4]])).blocks.isEmpty)
    }
}
