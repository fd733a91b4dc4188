import Foundation
import StormyWeather
import Testing

/// Tests areas whose shape is not a simple polygon.
@Suite struct AlertAreaTests {
    private func at(_ latitude: Double, _ longitude: Double) -> Coordinates {
        guard let place = try? Coordinates(latitude: latitude, longitude: longitude) else { preconditionFailure("no place") }
        return place
    }

    private func area(_ corners: [(Double, Double)]) -> AlertArea {
        AlertArea(name: "", polygons: [corners.map { at($0.0, $0.1) }])
    }

    /// Returns a ring of corners that turns `turns` times around a centre, at different distances.
    private func star(_ count: Int, turns: Int, around middle: (Double, Double), radius: Double = 1) -> [(Double, Double)] {
        (0..<count).map { number in
            let angle = Double(number) / Double(count) * 2 * .pi * Double(turns)
            return (middle.0 + radius * sin(angle), middle.1 + radius * cos(angle))
        }
    }

    private func wrapped(_ corners: [(Double, Double)]) -> [(Double, Double)] {
        corners.map { ($0.0, $0.1 > 180 ? $0.1 - 360 : $0.1 < -180 ? $0.1 + 360 : $0.1) }
    }

    @Test(arguments: [(47.37, 8.54), (-17, 179.9), (-17, -179.9), (0, 0), (65, -180)])
    func `an area that crosses itself contains its middle and its points`(_ middle: (Double, Double)) {
        for (count, turns) in [(5, 2), (7, 3), (7, 2), (9, 4), (11, 5)] {
            let corners = wrapped(star(count, turns: turns, around: middle))
            for ring in [corners, corners.reversed()] {
                for closed in [ring, ring + [ring[0]]] {
                    let star = area(closed)
                    #expect(star.contains(at(middle.0, wrapped([middle])[0].1)), "\(count)/\(turns) at \(middle)")
                    let tip = wrapped(self.star(count, turns: turns, around: middle, radius: 0.97))[0]
                    #expect(star.contains(at(tip.0, tip.1)))
                    #expect(!star.contains(at(middle.0 + 1.1, wrapped([middle])[0].1)))
                    #expect(!star.contains(at(middle.0 - 1.1, wrapped([middle])[0].1)))
                }
            }
        }
    }

    /// The outline of the area has the shape of the digit 8. The two halves of the area turn in opposite directions.
    @Test func `both halves of an area drawn as an eight are inside`() {
        let eight = area([(0, 0), (2, 2), (2, 0), (0, 2)])
        #expect(eight.contains(at(1, 0.5)) == false && eight.contains(at(1, 1.5)) == false)
        #expect(eight.contains(at(0.3, 1)) && eight.contains(at(1.7, 1)))
    }

    @Test func `an area whose outline is drawn twice contains what it contains once`() {
        let square = [(0.0, 0.0), (0, 2), (2, 2), (2, 0)]
        for ring in [square + square, square + [(0, 0)] + square + [(0, 0)]] {
            #expect(area(ring).contains(at(1, 1)) && !area(ring).contains(at(3, 1)) && !area(ring).contains(at(1, 3)))
        }
        // The first outline turns twice across the date line. The second outline turns twice around a pole.
        let fiji = [(-20.0, 176.0), (-20, -178), (-15, -178), (-15, 176)]
        #expect(area(fiji + fiji).contains(at(-17, 179)) && !area(fiji + fiji).contains(at(-17, 170)))
        let arctic = [(70.0, 0.0), (70, 120), (70, -120)]
        for ring in [arctic + arctic, arctic.reversed() + arctic.reversed()] {
            #expect(area(ring).contains(at(89, 45)) && !area(ring).contains(at(60, 45)) && !area(ring).contains(at(-89, 45)))
        }
    }

    @Test func `an area that overlaps itself around a pole has no gap`() {
        // The outline turns twice around the pole, and the second turn is further south.
        let ring = [(70.0, 0.0), (70, 120), (70, -120), (60, 0), (60, 120), (60, -120)]
        for ring in [ring, ring.reversed()] {
            #expect(area(ring).contains(at(80, 20)) && area(ring).contains(at(65, 60)) && area(ring).contains(at(75, 100)))
            #expect(!area(ring).contains(at(50, 20)) && !area(ring).contains(at(0, 60)) && !area(ring).contains(at(-80, 20)))
        }
    }

    @Test(arguments: [0, 1, 2, 3]) func `rings are closed wherever they begin`(_ start: Int) {
        let square = [(50.0, 9.0), (50, 11), (52, 11), (52, 9)]
        let ring = Array(square[start...] + square[..<start])
        for ring in [ring, ring.reversed(), ring + [ring[0]], [ring[0]] + ring] {
            #expect(area(ring).contains(at(51, 10)) && area(ring).contains(at(50.01, 9.01)) && !area(ring).contains(at(49, 10)))
        }
    }

    @Test func `an unclosed ring is read in every format`() throws {
        let polygon = "<polygon>50,9 50,11 52,11 52,9</polygon>"
        let alert = """
            <alert><identifier>a</identifier><sender>b</sender><sent>2026-07-01T12:00:00Z</sent><status>Actual</status>
            <msgType>Alert</msgType><info><event>Storm</event><area><areaDesc>x</areaDesc>\(polygon)</area></info></alert>
            """
        let cap = try #require(try CAPDocument.parse(Data(alert.utf8)))
        let json = """
            {"features":[{"geometry":{"type":"Polygon","coordinates":[[[9,50],[11,50],[11,52],[9,52]]]},"properties":{"id":"a",
            "event":"Gale","sent":"2026-07-01T12:00:00Z","messageType":"Alert"}}]}
            """
        let us = try #require(try AlertService.nws.read(Data(json.utf8), status: 200, now: .now).messages.first)
        for message in [cap, us] {
            #expect(message.infos[0].areas[0].contains(at(51, 10)) && !message.infos[0].areas[0].contains(at(53, 10)))
        }
    }

    @Test func `lines and points contain nothing`() {
        for ring in [[(0.0, 0.0), (0, 0), (0, 0)], [(0, 0), (1, 1), (0, 0)], [(0, 0), (2, 2), (1, 1)]] {
            for place in [at(0.5, 0.4), at(0.4, 0.5), at(-1, 0)] { #expect(!area(ring).contains(place)) }
        }
    }

    /// If corners are on the meridian of the place, they are counted once.
    @Test func `a place below or beside a corner is judged right`() {
        let diamond = [(0.0, 1.0), (1, 0), (0, -1), (-1, 0)]
        for ring in [diamond, diamond.reversed()] {
            #expect(area(ring).contains(at(0, 0)) && area(ring).contains(at(0.5, 0)) && area(ring).contains(at(-0.5, 0)))
            #expect(!area(ring).contains(at(-2, 0)) && !area(ring).contains(at(2, 0)) && !area(ring).contains(at(-2, 1)))
            #expect(!area(ring).contains(at(-2, -1)) && !area(ring).contains(at(0, 2)))
        }
    }
}
