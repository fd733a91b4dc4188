import CWarningRegions
import Foundation

/// A code of an area in a warning: a CAP `<geocode>`.
package struct RegionCode: Sendable, Hashable, Codable {
    /// The type of the code in upper case, for example "EMMA_ID".
    package let type: String
    /// The value of the code in upper case, for example "FR035".
    package let value: String

    package init(type: String, value: String) {
        self.type = type.trimmingCharacters(in: .whitespacesAndNewlines).uppercased().replacing("-", with: "_")
        self.value = value.trimmingCharacters(in: .whitespacesAndNewlines).uppercased()
    }

    /// The type and the value as text, for example "EMMA_ID FR035".
    package var text: String { "\(type) \(value)".singleLine(limit: 60) }
}

/// A warning region of a European weather service.
package struct WarningRegion: Sendable, Hashable {
    /// The EMMA_ID of the region, for example "FR035". For Bulgaria, the code is the NUTS3 code.
    package let code: String
    /// The name of the region, for example "Haute Savoie".
    package let name: String

    /// `true` if the region is a sea area. The code of a sea area has a number from 801 to 899, and its country has a coast.
    /// Codes of countries without a coast are excluded, because AT801 to AT804 are districts of Vorarlberg. Source of the rule:
    /// MeteoAlarm's region list.
    package var isSea: Bool {
        let digits = code.drop { !$0.isNumber }
        return digits.count == 3 && (Int(digits).map { (801...899).contains($0) } ?? false)
            && !Self.withoutCoast.contains(String(code.prefix(2)))
    }

    private static let withoutCoast: Set<String> = ["AD", "AT", "CH", "CZ", "HU", "LI", "LU", "MD", "MK", "RS", "SK"]

    /// The name and the code as text, for example "Haute Savoie (FR035)".
    package var text: String { "\(name) (\(code))" }
}

/// The table of the warning regions of Europe. The table finds the regions of a place, and the region of a code.
///
/// Source of the data: EUMETNET (MeteoAlarm), CC BY 4.0. The outlines are simplified to about 400 m.
package struct RegionTable: Sendable {
    /// A distance in kilometres. A place belongs to every land region within this distance, because outlines are simplified.
    package static let inside = 0.5
    /// A distance in kilometres. A place outside of all regions belongs to the nearest land region within this distance, because
    /// the outlines of coasts are coarse.
    package static let nearby = 5.0

    /// The table that is built into the program.
    package static let europe: RegionTable = {
        let bytes = UnsafeBufferPointer(start: cwarningregions_bytes(), count: cwarningregions_count())
        do { return try RegionTable(Array(bytes)) } catch { fatalError("the embedded region table is damaged: \(error)") }
    }()

    private struct Record: Sendable {
        let region: WarningRegion
        let box: RegionBox
        /// The range of the table's bytes that contains the polygons of the region.
        let polygons: Range<Int>
    }

    private let bytes: [UInt8]
    private let records: [Record]
    /// The number of the region for each code. The keys are the EMMA_IDs of the regions and their other codes.
    private let numbers: [RegionCode: Int]
    /// The types of codes that the table has.
    private let types: Set<String>

    /// Reads a table and checks every corner. The time is proportional to the number of bytes.
    ///
    /// - Throws: ``RegionTableError``
    package init(_ bytes: [UInt8]) throws(RegionTableError) {
        var reader = RegionTableReader(bytes, bytes.indices)
        guard bytes.starts(with: Array("SWR1".utf8)) else { throw .unknownFormat }
        _ = try reader.skip(4)
        let counts = (regions: Int(try reader.fixed()), aliases: Int(try reader.fixed()))
        var (records, numbers): ([Record], [RegionCode: Int]) = ([], [:])
        while records.count < counts.regions {
            let start = reader.offset
            let size = Int(try reader.fixed())
            let record = try Self.record(bytes, reader.skip(size))
            guard numbers.updateValue(records.count, forKey: RegionCode(type: "EMMA_ID", value: record.region.code)) == nil
            else { throw .damaged(offset: start) }
            records.append(record)
        }
        for _ in 0..<counts.aliases {
            let start = reader.offset
            let parts = try reader.text().split(separator: "/", maxSplits: 1)
            let number = try reader.varint()
            guard parts.count == 2, number < records.count,
                numbers.updateValue(number, forKey: RegionCode(type: String(parts[0]), value: String(parts[1]))) == nil
            else { throw .damaged(offset: start) }
        }
        guard reader.isAtEnd else { throw .damaged(offset: reader.offset) }
        (self.bytes, self.records, self.numbers) = (bytes, records, numbers)
        types = Set(numbers.keys.map(\.type))
    }

    private static func record(_ bytes: [UInt8], _ range: Range<Int>) throws(RegionTableError) -> Record {
        var reader = RegionTableReader(bytes, range)
        var edges: [Int32] = []
        for _ in 0..<4 { edges.append(Int32(bitPattern: try reader.fixed())) }
        guard let box = RegionBox(west: edges[0], south: edges[1], east: edges[2], north: edges[3]) else {
            throw .damaged(offset: range.lowerBound)
        }
        let region = WarningRegion(code: try reader.text(), name: try reader.text())
        let polygons = reader.offset..<range.upperBound
        try Self.visit(&reader, box) { _, _, _ in }
        guard reader.isAtEnd else { throw .damaged(offset: reader.offset) }
        return Record(region: region, box: box, polygons: polygons)
    }

    /// Reads all corners of a region. The first ring of a polygon is its outer ring.
    private static func visit(
        _ reader: inout RegionTableReader, _ box: RegionBox, _ corner: (RingNumber, Int, Int) -> Void
    ) throws(RegionTableError) {
        for polygon in 0..<(try reader.count(ofSize: 1)) {
            for ring in 0..<(try reader.count(ofSize: 1, atLeast: 1)) {
                let number = RingNumber(polygon: polygon, ring: ring)
                try reader.ring(in: box) { corner(number, $0, $1) }
            }
        }
    }

    // MARK: Codes

    /// Returns the region of a code, or `nil` if the table does not have the code.
    package func region(_ code: RegionCode) -> WarningRegion? { numbers[code].map { records[$0].region } }

    /// Returns whether the type of a code is in the table. A code of another type is not reported as unknown. FIPS codes in the
    /// table are Irish, but most other FIPS codes are American.
    package func isEuropean(_ code: RegionCode) -> Bool {
        types.contains(code.type) && (code.type != "FIPS" || code.value.hasPrefix("EI"))
    }

    package var regions: [WarningRegion] { records.map(\.region) }

    // MARK: Places

    /// Returns the land regions of a place: all regions within ``inside`` kilometres, or else the nearest region within
    /// ``nearby`` kilometres. The result is empty if no land region is within this distance. The time is proportional to the
    /// number of corners of the regions whose frames are near the place.
    package func landRegions(at place: Coordinates) -> [WarningRegion] {
        let near = distances(from: place, limit: Self.nearby) { !$0.isSea }
        let inside = near.filter { $0.kilometres <= Self.inside }
        if !inside.isEmpty { return inside.map(\.region) }
        return near.min { $0.kilometres < $1.kilometres }.map { [$0.region] } ?? []
    }

    /// Returns the land or sea region whose outline contains the place, or `nil` if no region contains it.
    package func container(of place: Coordinates) -> WarningRegion? {
        distances(from: place, limit: 0) { _ in true }.min { ($0.region.isSea ? 1 : 0) < ($1.region.isSea ? 1 : 0) }?.region
    }

    /// Returns whether a land region of a country is within this number of kilometres of the place.
    package func hasLand(of country: MeteoAlarmCountry, within kilometres: Double, of place: Coordinates) -> Bool {
        !distances(from: place, limit: kilometres) { !$0.isSea && MeteoAlarmCountry(of: $0) == country }.isEmpty
    }

    /// Returns whether one of the regions is in ``landRegions(at:)`` of the place. The call is fast if no region is near the
    /// place.
    package func isPlace(_ place: Coordinates, in regions: Set<WarningRegion>) -> Bool {
        let margin = LocalMap.margin(Self.nearby, at: place)
        let isNear = regions.contains { region in
            guard let number = numbers[RegionCode(type: "EMMA_ID", value: region.code)] else { return false }
            return records[number].box.longitude(of: place, margin: margin) != nil
        }
        return isNear && !regions.isDisjoint(with: landRegions(at: place))
    }

    /// Returns regions at most `limit` kilometres from the place, in the order of their codes. The distance is 0 inside a region.
    private func distances(
        from place: Coordinates, limit: Double, where isMeant: (WarningRegion) -> Bool
    ) -> [(region: WarningRegion, kilometres: Double)] {
        let margin = LocalMap.margin(limit, at: place)
        return records.compactMap { record in
            guard let longitude = record.box.longitude(of: place, margin: margin), isMeant(record.region) else { return nil }
            var (map, reader) = (LocalMap(place, longitude: longitude), RegionTableReader(bytes, record.polygons))
            // This call does not fail, because the corners were checked when the table was read.
            guard (try? Self.visit(&reader, record.box, { map.add($0, $1, $2) })) != nil else { return nil }
            let kilometres = map.distance()
            return kilometres <= limit ? (record.region, kilometres) : nil
        }
    }
}

/// A ring of a region.
struct RingNumber: Equatable {
    let polygon: Int
    /// The number of the ring in its polygon: 0 for the outer ring, and higher for a hole.
    let ring: Int
}

/// A flat map in kilometres with a place at its origin. The corners of a region are added in order. The map is used for at most
/// 10 km, so the error of the map is much smaller than the error of the outlines.
private struct LocalMap {
    /// The number of kilometres in one degree, on a sphere with a radius of 6,371 km.
    private static let perDegree = 111.195

    private let longitude, latitude: Double
    private let scale: (east: Double, north: Double)
    private var number: RingNumber?
    private var first = (0.0, 0.0)
    private var last = (0.0, 0.0)
    /// `true` if the place is inside of the current ring. The next three values are about the outer ring of the current polygon,
    /// the holes of the polygon, and earlier polygons.
    private var isInRing = false
    private var isInOuter = false
    private var isInHole = false
    private var isInside = false
    private var nearestSquared = Double.infinity

    init(_ place: Coordinates, longitude: Double) {
        (self.longitude, latitude) = (longitude, place.latitude)
        scale = (Self.perDegree * Self.shrink(place), Self.perDegree)
    }

    /// Returns the degrees that correspond to a distance: from west to east, and from south to north.
    static func margin(_ kilometres: Double, at place: Coordinates) -> (east: Double, north: Double) {
        (kilometres / (perDegree * shrink(place)), kilometres / perDegree)
    }

    /// Returns the factor by which a degree of longitude is shorter at the place than at the equator. The factor is not 0 at the
    /// poles.
    private static func shrink(_ place: Coordinates) -> Double { max(0.001, cos(place.latitude * .pi / 180)) }

    mutating func add(_ number: RingNumber, _ east: Int, _ north: Int) {
        let corner = (
            (Double(east) / RegionBox.stepsPerDegree - longitude) * scale.east,
            (Double(north) / RegionBox.stepsPerDegree - latitude) * scale.north
        )
        if number != self.number {
            closeRing(isLastOfPolygon: number.polygon != self.number?.polygon)
            (self.number, first) = (number, corner)
        } else {
            addEdge(last, corner)
        }
        last = corner
    }

    /// Returns the distance in kilometres after all corners were added. The distance is 0 inside.
    mutating func distance() -> Double {
        closeRing(isLastOfPolygon: true)
        return isInside ? 0 : nearestSquared.squareRoot()
    }

    private mutating func closeRing(isLastOfPolygon: Bool) {
        guard let number else { return }
        addEdge(last, first)
        if number.ring == 0 { isInOuter = isInRing } else if isInRing { isInHole = true }
        isInRing = false
        self.number = nil
        guard isLastOfPolygon else { return }
        if isInOuter && !isInHole { isInside = true }
        (isInOuter, isInHole) = (false, false)
    }

    private mutating func addEdge(_ one: (x: Double, y: Double), _ other: (x: Double, y: Double)) {
        // The place is inside if the ray to the east crosses the ring an odd number of times.
        if (one.y > 0) != (other.y > 0), one.x - one.y * (other.x - one.x) / (other.y - one.y) > 0 { isInRing.toggle() }
        let (wide, high) = (other.x - one.x, other.y - one.y)
        let length = wide * wide + high * high
        let part = length > 0 ? min(1, max(0, -(one.x * wide + one.y * high) / length)) : 0
        let (x, y) = (one.x + part * wide, one.y + part * high)
        nearestSquared = min(nearestSquared, x * x + y * y)
    }
}
