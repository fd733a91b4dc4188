import Testing

@testable import PhotoLocations

/// Tests locations that follow the name of a tag. The file format stores binary numbers between the name and the location.
@Suite struct TaggedTextTests {
    private static let place = "+47.3701+008.5491/"

    private static func element(_ identifier: [UInt8], _ content: [UInt8]) -> [UInt8] {
        identifier + [0x40 | UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    private static func matroska(_ top: [UInt8], _ content: [UInt8]) -> [UInt8] {
        element([0x1A, 0x45, 0xDF, 0xA3], element([0x42, 0x82], Array("webm".utf8)))
            + element([0x18, 0x53, 0x80, 0x67], element(top, content))
    }

    private static func tag(_ name: String, _ text: [UInt8], _ identifier: [UInt8] = [0x44, 0x87]) -> [UInt8] {
        element(
            [0x73, 0x73],
            element(
                [0x67, 0xC8],
                element([0x45, 0xA3], Array(name.utf8)) + element([0x44, 0x7A], Array("eng".utf8)) + element(identifier, text)))
    }

    private static let tags: [UInt8] = [0x12, 0x54, 0xC3, 0x67]

    private func isHeld(_ bytes: [UInt8]) throws -> Bool {
        do throws(LocationFailure) {
            let found = try PhotoLocations(searching: MemoryBytes(bytes))
            return !found.overwrites.isEmpty && !found.isKnownFormat
        } catch {
            return true
        }
    }

    @Test(arguments: [
        ("LOCATION", place), ("COMMENT", place), ("Location", "48.3701, 8.5491"), ("LATITUDE", "47.370094"),
        ("COUNTRY", "Switzerland"),
        ("RECORDING_LOCATION", "Zurich"), ("location-eng", place),
    ]) func `a tag of Matroska with a location is held`(_ name: String, _ text: String) throws {
        let bytes = Self.matroska(Self.tags, Self.tag("ENCODER", Array("Lavf".utf8)) + Self.tag(name, Array(text.utf8)))
        #expect(throws: LocationFailure.unproven(block: "the tag \(name) of the film")) {
            try PhotoLocations(searching: MemoryBytes(bytes))
        }
        #expect(throws: LocationFailure.self, "behind a picture") {
            try PhotoLocations(searching: MemoryBytes(Samples.jpeg() + bytes))
        }
    }

    @Test func `a Matroska film is held only if one of its texts is a location`() throws {
        let information: [UInt8] = [0x15, 0x49, 0xA9, 0x66]
        #expect(try isHeld(Self.matroska(information, Self.element([0x7B, 0xA9], Array(Self.place.utf8)))))
        #expect(try isHeld(Self.matroska(Self.tags, Self.tag("LOCATION", Samples.double(47.37), [0x44, 0x85]))))
        #expect(try !isHeld(Self.matroska(information, Self.element([0x7B, 0xA9], Array("Hail in May".utf8)))))
        #expect(
            try !isHeld(Self.matroska(Self.tags, Self.tag("LOCATION", []) + Self.tag("DATE", Array("2026-07-01 12:00:00".utf8)))))
    }

    @Test(arguments: ["LOCATION", "location", "GPSCoordinates", "Comment", "COUNTRY"])
    func `a place of ISO 6709 behind the name of a tag in unknown bytes is found`(_ name: String) throws {
        let noise = (0..<80).map { UInt8(0x80 | $0 * 37 & 0x7F) }
        for gap in [[0x44, 0x87, 0x92], [1, 2, 3, 4, 5, 6, 7, 8], [0x9F]] as [[UInt8]] {
            let bytes = noise + Array(name.utf8) + gap + Array(Self.place.utf8) + noise
            #expect(try isHeld(bytes), "\(gap)")
            #expect(try !Cleaned(Samples.jpeg() + bytes).contains("+47."))
        }
        #expect(try !isHeld(noise + Array("abc".utf8) + [0x9F] + Array(Self.place.utf8) + [0x9F] + noise), "no name")
    }

    // MARK: Numbers

    private static func float(_ value: Double) -> [UInt8] { Samples.little(Int(Float(value).bitPattern), 4) }

    /// The two numbers of a location with their names, in the forms of several formats.
    private static let numbers: [(format: String, bytes: [UInt8])] = {
        func list(_ latitude: String, _ longitude: String, _ number: (Double) -> [UInt8]) -> [UInt8] {
            Array("x\0".utf8) + Array(latitude.utf8) + number(Samples.latitude) + [0, 9] + Array(longitude.utf8)
                + number(Samples.longitude) + [0, 9]
        }
        func big(_ value: Double) -> [UInt8] { Samples.double(value).reversed() }
        let names = ("latitude", "longitude")
        return [
            ("AMF", list(names.0, names.1) { [0] + big($0) }), ("BSON", list(names.0, names.1) { [0] + Samples.double($0) }),
            ("MessagePack", list("lat", "lon") { [0xCB] + big($0) }),
            ("CBOR", list("Latitude", "Longitude") { [0xFB] + big($0) }),
            ("MessagePack, float", list("lat", "lng") { [0xCA] + float($0).reversed() }),
            ("UBJSON", list("lat", "lon") { [0x44] + big($0) }),
            ("NetCDF", list("geospatial_latitude\0", "geospatial_longitude\0") { [0, 0, 0, 6, 0, 0, 0, 1] + big($0) }),
            ("text", list("GPSLatitude", "GPSLongitude") { [0, 3, 1] + Array("\($0)".utf8) }),
            ("OpenEXR", list("latitude\0", "longitude\0") { Array("float\0\u{4}\0\0\0".utf8) + float($0) }),
        ]
    }()

    @Test(arguments: numbers.indices) func `numbers behind the names of a latitude and a longitude are removed`(_ index: Int)
        throws
    {
        let (format, bytes) = Self.numbers[index]
        let noise = (0..<200).map { UInt8(0x80 | $0 * 37 & 0x7F) }
        #expect(try isHeld(noise + bytes + noise), "\(format)")
        let cleaned = try Cleaned(Samples.jpeg() + noise + bytes + noise)
        let place = try #require(cleaned.places.first, "\(format)")
        #expect(abs((place.latitude ?? 0) - Samples.latitude) < 1e-5 && cleaned.bytes.firstRange(of: bytes) == nil)
    }

    @Test func `names of a latitude and a longitude without numbers stay`() throws {
        for text in ["latitude\0longitude\0altitude\0", "lat\0\0\0\0lon\0\0\0\0", "latitude\u{1}\u{2}longitude\u{3}\u{4}speed"] {
            let bytes = Samples.jpeg() + Array(text.utf8) + [UInt8](repeating: 0, count: 40)
            #expect(try Cleaned(bytes).bytes == bytes)
        }
    }

    @Test func `attributes of OpenEXR and FITS are held`() throws {
        let header: [UInt8] = [0x76, 0x2F, 0x31, 1, 2, 0, 0, 0]
        let other = Array("lineOrder\0lineOrder\0\u{1}\0\0\0\0".utf8)
        for name in ["latitude", "longitude", "laTitude"] {
            let attribute = Array("\(name)\0float\0\u{4}\0\0\0".utf8)
            #expect(try isHeld(header + other + attribute + Self.float(Samples.latitude) + [0]))
            #expect(try !isHeld(header + other + attribute + [0, 0, 0, 0, 0]), "no number")
        }
        func card(_ text: String) -> [UInt8] { Array(text.utf8) + [UInt8](repeating: 0x20, count: 80 - text.utf8.count) }
        let first = card("SIMPLE  =                    T") + card("TELESCOP= 'Refractor'")
        for text in [
            "OBSGEO-B=            47.370094", "OBSGEO-L=             8.549106", "OBSGEO-X=       4278990.123456 / [m]",
            "SITELAT = '+47 22 12.3'", "SITELONG=             8.549106", "LAT-OBS =            47.370094",
            "OBS-LONG=             8.549106",
        ] {
            #expect(try isHeld(first + card(text) + card("END")), "\(text)")
        }
        #expect(try !isHeld(first + card("OBSERVER= 'A. Storm'") + card("EXPTIME =               30.000") + card("END")))
    }
}
