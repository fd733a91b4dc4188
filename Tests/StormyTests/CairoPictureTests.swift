import Foundation
import Testing

@testable import Stormy
@testable import StormyWeather

@Suite struct CairoPictureTests {
    @Test func `a picture is a PNG of twice its size`() throws {
        let shapes: [PictureShape] = [
            .rectangle(x: 0, y: 0, width: 30, height: 20, .storm),
            .line([.init(x: 0, y: 0), .init(x: 30, y: 20)], .rain, isDashed: true, width: 2),
            .text("gusts", at: .init(x: 10, y: 10), .text, size: 9, isBold: true, endsThere: false),
        ]
        let png = [UInt8](try CairoPicture.png(of: shapes, width: 30, height: 20))
        #expect(png.prefix(8) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        #expect(png[16..<24] == [0, 0, 0, 60, 0, 0, 0, 40])
    }
}
