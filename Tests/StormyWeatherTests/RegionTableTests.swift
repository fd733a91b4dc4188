import Foundation
import StormyWeather
import Testing

/// Writes region tables in the format of `Packaging/warning_regions.py`.
private struct TableWriter {
    typealias Corner = (east: Int, north: Int)
    var (regionCount, aliasCount) = (0, 0)
    var regions: [UInt8] = []
    var aliases: [UInt8] = []

    static func varint(_ number: Int) -> [UInt8] {
        var (left, bytes): (Int, [UInt8]) = (number, [])
        while left > 0x7F {
            bytes.append(UInt8(left & 0x7F) | 0x80)
            left >>= 7
        }
        return bytes + [UInt8(left)]
    }

    static func signed(_ number: Int) -> [UInt8] { varint(number >= 0 ? number << 1 : (-number << 1) - 1) }

    static func fixed(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }

    static func text(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

    static func ring(_ corners: [Corner]) -> [UInt8] {
        var (bytes, before) = (varint(corners.count), Corner(0, 0))
        for corner in corners {
            bytes += signed(corner.east - before.east) + signed(corner.north - before.north)
            before = corner
        }
        return bytes
    }

    /// - Parameters:
    ///   - polygons: The rings, in thousandths of a degree.
    ///   - frame: The limits west, south, east and north, if they differ from the corners.
    mutating func add(_ code: String, _ polygons: [[[Corner]]], frame: [Int]? = nil) {
        let corners = polygons.joined().joined()
        let edges =
            frame ?? [
                corners.map(\.east).min() ?? 0, corners.map(\.north).min() ?? 0, corners.map(\.east).max() ?? 0,
                corners.map(\.north).max() ?? 0,
            ]
        let body = polygons.flatMap { Self.varint($0.count) + $0.flatMap(Self.ring) }
        let record =
            edges.flatMap(Self.fixed) + Self.text(code) + Self.text("Region \(code)") + Self.varint(polygons.count) + body
        regions += Self.fixed(record.count) + record
        regionCount += 1
    }

    mutating func addAlias(_ text: String, _ number: Int) {
        aliases += Self.text(text) + Self.varint(number)
        aliasCount += 1
    }

    var bytes: [UInt8] { Array("SWR1".utf8) + Self.fixed(regionCount) + Self.fixed(aliasCount) + regions + aliases }

    static func square(_ west: Int, _ south: Int, _ size: Int) -> [Corner] {
        [(west, south), (west + size, south), (west + size, south + size), (west, south + size)]
    }
}

private func at(_ latitude: Double, _ longitude: Double) throws -> Coordinates {
    try Coordinates(latitude: latitude, longitude: longitude)
}

@Suite struct RegionTableTests {
    private func codes(_ table: RegionTable, _ latitude: Double, _ longitude: Double) throws -> [String] {
        table.landRegions(at: try at(latitude, longitude)).map(\.code)
    }

    // MARK: Outlines

    @Test func `a hole is outside and an island in the hole is inside`() throws {
        var writer = TableWriter()
        writer.add(
            "XX001",
            [
                [TableWriter.square(0, 0, 10_000), TableWriter.square(2_000, 2_000, 6_000)],
                [TableWriter.square(4_000, 4_000, 2_000)],
            ])
        writer.add("XX002", [[TableWriter.square(2_000, 2_000, 6_000), TableWriter.square(4_000, 4_000, 2_000)]])
        let table = try RegionTable(writer.bytes)
        #expect(try codes(table, 1, 1) == ["XX001"])
        #expect(try codes(table, 9, 5) == ["XX001"])
        #expect(try codes(table, 3, 3) == ["XX002"])
        #expect(try codes(table, 5, 5) == ["XX001"])
        #expect(try codes(table, 11, 5).isEmpty)
        #expect(table.container(of: try at(3, 7))?.code == "XX002")
    }

    @Test func `two islands that touch are both inside`() throws {
        var writer = TableWriter()
        writer.add("XX001", [[TableWriter.square(0, 0, 1_000)], [TableWriter.square(900, 0, 1_000)]])
        let table = try RegionTable(writer.bytes)
        #expect(try codes(table, 0.5, 0.95) == ["XX001"])
        #expect(try codes(table, 0.5, 1.5) == ["XX001"])
    }

    @Test(arguments: [false, true]) func `a region over the antimeridian contains the places of both sides`(isWest: Bool) throws {
        var writer = TableWriter()
        writer.add("XX001", [[TableWriter.square(isWest ? -181_000 + 360_000 : 179_000, 50_000, 2_000)]])
        let table = try RegionTable(writer.bytes)
        for longitude in [179.1, 179.9, 180, -180, -179.9, -179.1] {
            #expect(try codes(table, 51, longitude) == ["XX001"], "\(longitude)")
        }
        // At this latitude, 0.05 degrees of longitude are 3.5 km.
        for longitude in [178.95, -178.95] { #expect(try codes(table, 51, longitude) == ["XX001"], "\(longitude)") }
        for longitude in [178.8, -178.8, 0] { #expect(try codes(table, 51, longitude).isEmpty, "\(longitude)") }
    }

    /// 0.001 degrees of latitude are 111 m.
    @Test func `a place belongs to all regions within 500 m or to the nearest within 5 km`() throws {
        var writer = TableWriter()
        writer.add("XX001", [[TableWriter.square(0, 0, 1_000)]])
        writer.add("XX002", [[TableWriter.square(0, 1_008, 1_000)]])
        writer.add("XX801", [[TableWriter.square(0, 1_000, 8)]])
        let table = try RegionTable(writer.bytes)
        #expect(try codes(table, 1.004, 0.5) == ["XX001", "XX002"])
        #expect(try codes(table, 0.997, 0.5) == ["XX001"])
        #expect(try codes(table, 0.9999, 0.5) == ["XX001"])
        #expect(try codes(table, 2.012, 0.5) == ["XX002"])
        #expect(try codes(table, 2.05, 0.5) == ["XX002"])
        #expect(try codes(table, 2.054, 0.5).isEmpty)
        #expect(try codes(table, -0.05, 0.5).isEmpty)
        // The nearest region is chosen, and not the first region in the table.
        writer.add("XX000", [[TableWriter.square(0, 2_050, 1_000)]])
        #expect(try RegionTable(writer.bytes).landRegions(at: at(2.035, 0.5)).map(\.code) == ["XX000"])
        #expect(try RegionTable(writer.bytes).landRegions(at: at(2.02, 0.5)).map(\.code) == ["XX002"])
    }

    @Test func `a distance is measured in kilometres at every latitude`() throws {
        for north in [0, 40_000, 60_000, 80_000] {
            var writer = TableWriter()
            writer.add("XX001", [[TableWriter.square(0, north, 2_000)]])
            let table = try RegionTable(writer.bytes)
            let degree = 111.195 * cos((Double(north) / 1000 + 1) * .pi / 180)
            #expect(try codes(table, Double(north) / 1000 + 1, -4.9 / degree) == ["XX001"], "\(north)")
            #expect(try codes(table, Double(north) / 1000 + 1, -5.1 / degree).isEmpty, "\(north)")
        }
    }

    // MARK: Codes

    @Test(arguments: [
        ("EMMA_ID", "FR035", "FR035"), ("emma_id", " fr035 ", "FR035"), ("EMMA-ID", "AT901", "AT901"),
        ("NUTS3", "BG411", "BG411"),
        ("NUTS2", "BE33", "BE008"), ("NUTS2", "BE10", "BE004"), ("CISORP", "1000", "CZ014"), ("EMMA_ID", "CZ01000", "CZ014"),
        ("NUTS3", "MK001", "MK001"), ("FIPS", "EI07", "IE012"), ("FIPS", "EI805", "EI805"),
    ])
    func `a code leads to its region`(_ type: String, _ value: String, _ region: String) {
        #expect(RegionTable.europe.region(RegionCode(type: type, value: value))?.code == region)
    }

    @Test func `codes that the table lacks are unknown`() {
        for (type, value) in [("EMMA_ID", "GB001"), ("EMMA_ID", ""), ("", "FR035"), ("WARNCELLID", "FR035"), ("FIPS", "EI99")] {
            #expect(RegionTable.europe.region(RegionCode(type: type, value: value)) == nil, "\(type) \(value)")
        }
        let european = [("NUTS3", "XX1"), ("EMMA_ID", "GB001"), ("FIPS", "EI99"), ("CISORP", "1")]
        #expect(european.allSatisfy { RegionTable.europe.isEuropean(RegionCode(type: $0.0, value: $0.1)) })
        let others = [("WARNCELLID", "803401004"), ("FIPS", "18089"), ("UGC", "INZ001"), ("", "")]
        #expect(others.allSatisfy { !RegionTable.europe.isEuropean(RegionCode(type: $0.0, value: $0.1)) })
    }

    // MARK: Damaged tables

    private var small: TableWriter {
        var writer = TableWriter()
        writer.add("XX001", [[TableWriter.square(-5_000, 40_000, 3_000), TableWriter.square(-4_000, 41_000, 500)]])
        writer.add("XX002", [[TableWriter.square(2_000, 40_000, 300)], [TableWriter.square(2_500, 40_000, 300)]])
        writer.addAlias("NUTS3/XX1", 1)
        return writer
    }

    @Test func `a table that ends early or late is refused`() throws {
        let bytes = small.bytes
        #expect(try RegionTable(bytes).regions.map(\.code) == ["XX001", "XX002"])
        for count in bytes.indices {
            #expect(throws: RegionTableError.self, "\(count)") { try RegionTable(Array(bytes[..<count])) }
        }
        #expect(throws: RegionTableError.damaged(offset: bytes.count)) { try RegionTable(bytes + [0]) }
        #expect(throws: RegionTableError.unknownFormat) { try RegionTable(Array("SWR2".utf8) + bytes.dropFirst(4)) }
    }

    @Test func `a table with any other byte is refused or read to its end`() throws {
        let bytes = small.bytes
        var refused = 0
        for (index, change) in bytes.indices.flatMap({ index in [1, 0x7F, 0x80, 0xFF].map { (index, UInt8($0)) } }) {
            var changed = bytes
            changed[index] ^= change
            guard let table = try? RegionTable(changed) else {
                refused += 1
                continue
            }
            for latitude in [40.1, 41.2, -90, 90] { _ = table.landRegions(at: try at(latitude, -4)) }
        }
        #expect(refused > bytes.count)
    }

    @Test func `a table with impossible contents is refused`() {
        var twoCorners = TableWriter()
        twoCorners.add("XX001", [[[(0, 0), (5, 5)]]])
        var outside = TableWriter()
        outside.add("XX001", [[TableWriter.square(0, 0, 1_000)]], frame: [0, 0, 999, 1_000])
        var noEarth = TableWriter()
        noEarth.add("XX001", [[TableWriter.square(0, 89_500, 1_000)]])
        var turned = TableWriter()
        turned.add("XX001", [[TableWriter.square(0, 0, 1_000)]], frame: [1_000, 0, 0, 1_000])
        var twice = small
        twice.add("XX001", [[TableWriter.square(0, 0, 1_000)]])
        var noRegion = small
        noRegion.addAlias("NUTS3/XX2", 2)
        var noType = small
        noType.addAlias("XX2", 0)
        var taken = small
        taken.addAlias("EMMA_ID/XX001", 1)
        var many = small
        many.regionCount = Int(UInt32.max)
        for writer in [twoCorners, outside, noEarth, turned, twice, noRegion, noType, taken, many] {
            #expect(throws: RegionTableError.self) { try RegionTable(writer.bytes) }
        }
    }

    // MARK: The table in the program

    @Test func `the table in the program is complete and small`() throws {
        #expect(RegionTable.europe.regions.count == 2003)
        #expect(RegionTable.europe.regions.allSatisfy { !$0.name.isEmpty && $0.name.allSatisfy { !$0.isNewline } })
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let file = try Data(contentsOf: root.appending(path: "Sources/C/CWarningRegions/regions.bin"))
        #expect(file.count <= 600_000)
        let read = try RegionTable(Array(file))
        #expect(read.regions == RegionTable.europe.regions)
    }

    @Test func `names have single spaces and a space after each comma`() {
        let center = RegionTable.europe.region(RegionCode(type: "EMMA_ID", value: "AT901"))
        #expect(center?.name == "Wien 1., Innere Stadt")
        for name in RegionTable.europe.regions.map(\.name) {
            #expect(!name.contains("  ") && !name.replacing(", ", with: "").contains(","), "\(name)")
        }
    }

    /// Reading the table takes a few milliseconds, so a look-up takes less than 1 ms. Both times are measured in the same run,
    /// because hosts have different speeds.
    @Test func `a look-up takes a small part of the time that reading the table takes`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let bytes = Array(try Data(contentsOf: root.appending(path: "Sources/C/CWarningRegions/regions.bin")))
        let table = try RegionTable(bytes)
        // The places are Paris, Oslo, Zürich, Venezia, Athens and Sydney.
        let places = try [(48.86, 2.35), (59.91, 10.75), (47.38, 8.54), (45.44, 12.32), (37.98, 23.73), (-33.87, 151.21)].map(at)
        let clock = ContinuousClock()
        let reading = (0..<3).map { _ in clock.measure { _ = try? RegionTable(bytes) } }.min() ?? .zero
        for place in places {
            let looking = (0..<5).map { _ in clock.measure { _ = RegionCoverage(of: place, in: table) } }.min() ?? .zero
            #expect(looking * 4 < reading, "\(place.text): \(looking) of \(reading)")
        }
    }
}
