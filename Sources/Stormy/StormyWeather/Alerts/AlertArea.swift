import Foundation

/// The area of a warning. If an area has no polygon or circle, its codes are compared with a place. The name of an area is never
/// compared, because "Porto" is not "Porto Santo".
package struct AlertArea: Sendable, Equatable {
    package struct Circle: Sendable, Equatable, Codable {
        package var center: Coordinates
        package var kilometres: Double

        package init(center: Coordinates, kilometres: Double) { (self.center, self.kilometres) = (center, kilometres) }
    }

    /// The name of the area for the user.
    package var name: String
    /// The polygons as lists of corners. The last corner is connected to the first corner.
    package var polygons: [[Coordinates]]
    package var circles: [Circle]
    /// The codes of the area whose types are in the region table.
    package var codes: [RegionCode]
    /// `true` if a polygon or a circle could not be read. Such an area may contain more places than its readable shapes show.
    package var hasUnreadableShape = false

    package init(name: String, polygons: [[Coordinates]] = [], circles: [Circle] = [], codes: [RegionCode] = []) {
        (self.name, self.polygons, self.circles, self.codes) = (name, polygons, circles, codes)
    }

    /// `true` if the area has a polygon or a circle. A circle without a radius only marks a point, for example of an earthquake.
    /// A circle without a radius is ignored, and the codes are used.
    package var isDrawn: Bool { !polygons.isEmpty || circles.contains { $0.kilometres > 0 } }

    /// `true` if the area has a polygon or a circle, or if the region table has one of its codes. Other areas cannot be compared
    /// with a place.
    package var isPlaceable: Bool { isPlaced || !circles.isEmpty }

    /// `true` if the area is drawn on a map, or if the region table contains at least one code of the area. A circle without a
    /// radius is ignored.
    var isPlaced: Bool { isDrawn || !regions.isEmpty }

    /// `true` if the area may contain more places than its codes show. An undrawn area is incomplete if, for each type of code,
    /// the region table does not contain all codes. Codes of several types are several names of the same area. For this reason,
    /// it is enough if the table contains all codes of one type.
    var isIncomplete: Bool {
        let unknown = Set(unknownCodes.map(\.type))
        return !isDrawn && codes.allSatisfy { unknown.contains($0.type) }
    }

    /// `true` if the area is incomplete and has at least one code of a type in the region table.
    var hasUnknownPart: Bool { !codes.isEmpty && isIncomplete }

    /// The codes of the area that the region table does not contain. The array is empty if the area has a polygon or a circle,
    /// because codes are used only for areas without a shape.
    package var unknownCodes: [RegionCode] { isDrawn ? [] : codes.filter { RegionTable.europe.region($0) == nil } }

    /// The warning regions whose codes the area contains.
    package var regions: Set<WarningRegion> { codes.isEmpty ? [] : Set(codes.compactMap(RegionTable.europe.region)) }

    /// Returns whether the area contains a place. If the area has polygons or circles, its codes are not used. `nil` if the area
    /// cannot be compared with a place.
    package func holds(at place: Coordinates) -> Bool? {
        if contains(place) { return true }
        if isDrawn, !hasUnreadableShape || codes.isEmpty { return false }
        let regions = regions
        return regions.isEmpty ? nil : RegionTable.europe.isPlace(place, in: regions)
    }

    package func contains(_ place: Coordinates) -> Bool {
        polygons.contains { Self.contains($0, place) } || circles.contains { Self.distance($0.center, place) <= $0.kilometres }
    }

    // MARK: Geometry

    /// Returns the great-circle distance in kilometres, on a sphere. The error of half a percent is small compared with the
    /// inaccuracy of drawn warnings.
    static func distance(_ one: Coordinates, _ other: Coordinates) -> Double {
        let (north, south) = (one.latitude * .pi / 180, other.latitude * .pi / 180)
        let (high, wide) = (north - south, (one.longitude - other.longitude) * .pi / 180)
        let half = sin(high / 2) * sin(high / 2) + cos(north) * cos(south) * sin(wide / 2) * sin(wide / 2)
        return 2 * 6371 * asin(min(1, half.squareRoot()))
    }

    /// The width of a line in degrees, which is 1 cm on the ground. A corner that is closer to a line than this width counts as a
    /// corner on the line.
    private static let lineWidth = 1e-7

    /// Returns `false` if all corners of a ring are on one line, or at one point. A ring without an area contains no place. A
    /// ring that crosses its own line has an area. A ring that turns around the Earth also has an area.
    static func hasArea(_ ring: [Coordinates]) -> Bool {
        guard let first = ring.first else { return false }
        var (points, last, longitude): ([(Double, Double)], Coordinates, Double) = ([], first, first.longitude)
        for corner in ring + [first] {
            longitude += east(corner, of: last)
            points.append((longitude, corner.latitude))
            last = corner
        }
        if abs(longitude - first.longitude) > 180 || !isLine(points) { return true }
        return isAmbiguous(ring) && !isLine(ring.map { ($0.longitude, $0.latitude) })
    }

    private static func isLine(_ points: [(east: Double, north: Double)]) -> Bool {
        guard let first = points.first else { return true }
        let steps = points.map { (east: $0.east - first.east, north: $0.north - first.north) }
        let longest = steps.max { hypot($0.east, $0.north) < hypot($1.east, $1.north) } ?? (0, 0)
        let length = hypot(longest.east, longest.north)
        return length < lineWidth
            || steps.allSatisfy { abs($0.east * longest.north - $0.north * longest.east) < lineWidth * length }
    }

    /// Returns whether a ring turns around a place (non-zero winding rule). If a ring crosses its own line, a part that the ring
    /// encloses twice is also inside. A ring is closed even if the last corner differs from the first corner.
    ///
    /// An edge takes the short way around the Earth, so a ring over the date line does not have to be divided. A ring around the
    /// Earth contains the North Pole if the mean latitude of its corners is at least 0. If the mean latitude is below 0, the ring
    /// contains the South Pole. An ambiguous ring (``isAmbiguous(_:)``) also contains the places that are inside the ring on a
    /// flat map. The time is proportional to the number of corners.
    static func contains(_ ring: [Coordinates], _ place: Coordinates) -> Bool {
        guard ring.count >= 3, var last = ring.last else { return false }
        // The ring turns around the place once for each crossing of the place's meridian toward the east. Only crossings between
        // the place and a pole outside of the ring are counted.
        var (north, all) = (0, 0)
        var lastEast = east(last, of: place)
        for corner in ring {
            let here = east(corner, of: place)
            let step = here - lastEast
            // A step of more than 180 degrees crosses the meridian on the other side of the Earth.
            if abs(step) <= 180, (lastEast > 0) != (here > 0) {
                let direction = step > 0 ? 1 : -1
                all += direction
                if last.latitude - lastEast / step * (corner.latitude - last.latitude) > place.latitude { north += direction }
            }
            (last, lastEast) = (corner, here)
        }
        let isRoundNorthPole = all != 0 && ring.reduce(0) { $0 + $1.latitude } >= 0
        let isInside = isRoundNorthPole ? north != all : north != 0
        return isInside || isAmbiguous(ring) && isOnFlatMap(ring, place)
    }

    /// An edge with a width in this range (degrees of longitude) has an unclear direction around the Earth. If an edge is wider,
    /// the short way over the date line has at most 120 degrees, so the direction is clear.
    private static let unclearWidth = 180.0...240.0

    /// Returns `true` if the ring has an edge that can go around the Earth in two directions. Also returns `true` if all corners
    /// are on the date line, because such a ring has an area only on a flat map. A ring around a pole is not ambiguous.
    static func isAmbiguous(_ ring: [Coordinates]) -> Bool {
        guard ring.count >= 3, var last = ring.last else { return false }
        if ring.allSatisfy({ abs($0.longitude) == 180 }) { return true }
        var (isUnclear, turn) = (false, 0.0)
        for corner in ring {
            let step = corner.longitude - last.longitude
            isUnclear = isUnclear || unclearWidth.contains(abs(step))
            turn += step > 180 ? step - 360 : step < -180 ? step + 360 : step
            last = corner
        }
        return isUnclear && abs(turn) < 1
    }

    /// Returns whether a ring turns around a place on a map from 180 degrees west to 180 degrees east.
    private static func isOnFlatMap(_ ring: [Coordinates], _ place: Coordinates) -> Bool {
        guard var last = ring.last else { return false }
        var turns = 0
        for corner in ring {
            let (isEast, wasEast) = (corner.longitude > place.longitude, last.longitude > place.longitude)
            if isEast != wasEast {
                let share = (place.longitude - last.longitude) / (corner.longitude - last.longitude)
                if last.latitude + share * (corner.latitude - last.latitude) > place.latitude { turns += isEast ? 1 : -1 }
            }
            last = corner
        }
        return turns != 0
    }

    /// Returns the degrees from the place's meridian to the corner, to the east, in the range -180..<180.
    private static func east(_ corner: Coordinates, of place: Coordinates) -> Double {
        let turned = corner.longitude - place.longitude
        return turned >= 180 ? turned - 360 : turned < -180 ? turned + 360 : turned
    }
}

/// A polygon is stored as one text, because the JSON decoder needs almost a second for a list of 50,000 corners.
extension AlertArea: Codable {
    private enum CodingKeys: String, CodingKey { case name, polygons, circles, codes, hasUnreadableShape }

    /// The number of steps per degree in which corners are stored. One step is 11 cm. Up to six decimals are stored exactly.
    private static let stepsPerDegree = 1e6

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        name = try values.decode(String.self, forKey: .name)
        circles = try values.decode([Circle].self, forKey: .circles)
        // Rows of earlier versions have no codes.
        codes = try values.decodeIfPresent([RegionCode].self, forKey: .codes) ?? []
        hasUnreadableShape = try values.decodeIfPresent(Bool.self, forKey: .hasUnreadableShape) ?? false
        if let rings = try? values.decode([String].self, forKey: .polygons) {
            polygons = try rings.map(Self.unpacked)
        } else {
            // Rows of earlier versions list the corners.
            polygons = try values.decode([[Coordinates]].self, forKey: .polygons)
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(name, forKey: .name)
        try values.encode(polygons.map(Self.packed), forKey: .polygons)
        try values.encode(circles, forKey: .circles)
        if !codes.isEmpty { try values.encode(codes, forKey: .codes) }
        if hasUnreadableShape { try values.encode(true, forKey: .hasUnreadableShape) }
    }

    /// Returns the latitude and longitude of each corner in steps, as 32-bit numbers in base64.
    private static func packed(_ ring: [Coordinates]) -> String {
        var numbers: [Int32] = []
        numbers.reserveCapacity(2 * ring.count)
        for corner in ring {
            numbers.append(Int32((corner.latitude * stepsPerDegree).rounded()).littleEndian)
            numbers.append(Int32((corner.longitude * stepsPerDegree).rounded()).littleEndian)
        }
        return numbers.withUnsafeBytes { Data($0) }.base64EncodedString()
    }

    /// - Throws: ``CoordinateError`` if a corner is not on Earth.
    private static func unpacked(_ text: String) throws -> [Coordinates] {
        let data = Data(base64Encoded: text) ?? Data()
        return try data.withUnsafeBytes { bytes -> [Coordinates] in
            func degrees(_ offset: Int) -> Double {
                Double(Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))) / stepsPerDegree
            }
            var ring: [Coordinates] = []
            ring.reserveCapacity(bytes.count / 8)
            for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
                ring.append(try Coordinates(latitude: degrees(offset), longitude: degrees(offset + 4)))
            }
            return ring
        }
    }
}
