import Foundation

/// Where a warning holds, as far as it is drawn. An area of a name and a code alone is never matched by its name: "Porto" is not
/// "Porto Santo".
package struct AlertArea: Sendable, Equatable, Codable {
    package struct Circle: Sendable, Equatable, Codable {
        package var center: Coordinates
        package var kilometres: Double

        package init(center: Coordinates, kilometres: Double) { (self.center, self.kilometres) = (center, kilometres) }
    }

    /// For a person.
    package var name: String
    /// Rings of corners, the last one joined to the first.
    package var polygons: [[Coordinates]]
    package var circles: [Circle]

    package init(name: String, polygons: [[Coordinates]] = [], circles: [Circle] = []) {
        (self.name, self.polygons, self.circles) = (name, polygons, circles)
    }

    package var isDrawn: Bool { !polygons.isEmpty || !circles.isEmpty }

    package func contains(_ place: Coordinates) -> Bool {
        polygons.contains { Self.contains($0, place) } || circles.contains { Self.distance($0.center, place) <= $0.kilometres }
    }

    // MARK: Geometry

    /// Great-circle distance in kilometres, on a sphere: warnings are not drawn finer than its error of half a percent.
    static func distance(_ one: Coordinates, _ other: Coordinates) -> Double {
        let (north, south) = (one.latitude * .pi / 180, other.latitude * .pi / 180)
        let (high, wide) = (north - south, (one.longitude - other.longitude) * .pi / 180)
        let half = sin(high / 2) * sin(high / 2) + cos(north) * cos(south) * sin(wide / 2) * sin(wide / 2)
        return 2 * 6371 * asin(min(1, half.squareRoot()))
    }

    /// Whether a ring contains a place: how often the meridian from it to the north pole crosses the ring. Edges go the short way round
    /// the Earth, so that a ring over the date line needs no cut; one that goes all the way round contains the pole of its side.
    ///
    /// Cost: linear in the corners.
    static func contains(_ ring: [Coordinates], _ place: Coordinates) -> Bool {
        guard ring.count >= 3, var last = ring.last else { return false }
        var (isOdd, turned) = (false, 0.0)
        var lastEast = east(last, of: place)
        for corner in ring {
            let here = east(corner, of: place)
            var step = here - lastEast
            if step > 180 { step -= 360 } else if step < -180 { step += 360 }
            turned += step
            if (lastEast > 0) != (lastEast + step > 0) {
                let north = last.latitude - lastEast / step * (corner.latitude - last.latitude)
                if north > place.latitude { isOdd.toggle() }
            }
            (last, lastEast) = (corner, here)
        }
        let isRoundNorthPole = abs(turned) > 180 && ring.map(\.latitude).reduce(0, +) >= 0
        return isOdd != isRoundNorthPole
    }

    /// Degrees east of the place's meridian, -180..<180.
    private static func east(_ corner: Coordinates, of place: Coordinates) -> Double {
        let turned = (corner.longitude - place.longitude + 180).truncatingRemainder(dividingBy: 360)
        return (turned < 0 ? turned + 360 : turned) - 180
    }
}
