import Foundation
import StormyWeather
import Testing

@Suite struct CoordinatesTests {
    @Test func `coordinates are read as users type them`() throws {
        let sydney = try Coordinates(latitude: -33.87, longitude: 151.21)
        for text in ["-33.87,151.21", " -33.87 , +151.21 ", "\u{2212}33.87,151.21", "-33.870000,151.21"] {
            #expect(try Coordinates(parsing: text) == sydney)
        }
        #expect(sydney.text == "-33.87,151.21")
        #expect(try Coordinates(parsing: "90,-180").text == "90,-180")
        #expect(try Coordinates(parsing: "-0,-0.00001").text == "0,0")
    }

    @Test(arguments: [
        "", ",", "1", "1,2,3", "nan,1", "inf,1", "0x10,1", "1e1,1", "1;2", "33,87 151,21", "a,b", "1,", "-,+", "--1,2",
    ])
    func `malformed coordinates are an error`(_ text: String) {
        #expect(throws: CoordinateError.malformed(text)) { try Coordinates(parsing: text) }
    }

    @Test func `coordinates out of range or in the wrong order are errors`() {
        #expect(throws: CoordinateError.swapped(latitude: 151.21, longitude: -33.87)) {
            try Coordinates(parsing: "151.21,-33.87")
        }
        #expect(throws: CoordinateError.latitudeOutOfRange(91)) { try Coordinates(latitude: 91, longitude: 100) }
        #expect(throws: CoordinateError.longitudeOutOfRange(-180.5)) { try Coordinates(latitude: 0, longitude: -180.5) }
        #expect(throws: CoordinateError.longitudeOutOfRange(.infinity)) { try Coordinates(latitude: 0, longitude: .infinity) }
        #expect(throws: CoordinateError.self) { try Coordinates(latitude: .nan, longitude: 0) }
        #expect(CoordinateError.swapped(latitude: 151.21, longitude: -33.87).message.contains("did you mean -33.87,151.21?"))
    }

    @Test func `stored coordinates are validated`() throws {
        let place = try Coordinates(latitude: 1.5, longitude: 2)
        #expect(try JSONDecoder().decode(Coordinates.self, from: JSONEncoder().encode(place)) == place)
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode(Coordinates.self, from: Data(#"{"latitude":91,"longitude":0}"#.utf8))
        }
    }

    @Test func `the text of coordinates is read back within four decimals`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let place = try Coordinates(
                latitude: .random(in: -90...90, using: &random), longitude: .random(in: -180...180, using: &random))
            let again = try Coordinates(parsing: place.text)
            #expect(abs(again.latitude - place.latitude) <= 0.000_051)
            #expect(abs(again.longitude - place.longitude) <= 0.000_051)
            #expect(again.text == place.text)
        }
    }
}
