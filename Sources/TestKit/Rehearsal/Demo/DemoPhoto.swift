import Foundation

/// A small photo of a storm, drawn by this code: dark clouds and one flash. The metadata of the photo contains the place where
/// the photo was taken.
///
/// The photo is a real JPEG (ITU-T T.81, baseline, grey) whose blocks of 8 × 8 pixels have one brightness each. A picture with
/// such blocks needs no transform and no library. The Exif block of the photo (Exif 3.0 §4.6) contains a GPS directory.
enum DemoPhoto {
    /// The number of blocks in a row, and the number of rows.
    private static let (columns, rows) = (40, 25)

    static func bytes() -> Data {
        Data([0xFF, 0xD8]) + segment(0xE1, Array("Exif\0\0".utf8) + place) + picture + Data([0xFF, 0xD9])
    }

    /// Returns whether the photo contains the place where it was taken.
    static func isLocated(_ photo: Data) -> Bool { photo.firstRange(of: Data(latitude)) != nil }

    /// Returns the bytes of the visible picture: the JPEG tables and all data after these tables. Returns `nil` if the data is
    /// not this photo.
    static func pixels(of photo: Data) -> Data? {
        photo.firstRange(of: picture).map { photo[$0] }
    }

    private static func segment(_ mark: UInt8, _ content: [UInt8]) -> Data {
        let length = content.count + 2
        return Data([0xFF, mark, UInt8(length >> 8), UInt8(length & 0xFF)] + content)
    }

    // MARK: Location

    /// The latitude 43° 6′ 0″, as three fractions.
    private static let latitude = fractions(43, 6, 0)

    /// A TIFF structure that contains the GPS directory, and one entry that points to this directory.
    private static var place: [UInt8] {
        let directory = [
            entry(1, type: 2, count: 2, value: Array("S\0\0\0".utf8)), entry(2, type: 5, count: 3, value: little(80)),
            entry(3, type: 2, count: 2, value: Array("E\0\0\0".utf8)), entry(4, type: 5, count: 3, value: little(104)),
        ].joined()
        let first = entry(0x8825, type: 4, count: 1, value: little(26))
        return [0x49, 0x49, 0x2A, 0x00] + little(8) + [1, 0] + first + little(0) + [4, 0] + directory + little(0) + latitude
            + fractions(147, 30, 0)
    }

    private static func entry(_ tag: Int, type: UInt8, count: Int, value: [UInt8]) -> [UInt8] {
        [UInt8(tag & 0xFF), UInt8(tag >> 8), type, 0] + little(count) + value
    }

    private static func fractions(_ values: Int...) -> [UInt8] { values.flatMap { little($0) + little(1) } }

    private static func little(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 0xFF) } }

    // MARK: Picture

    private static let picture: Data = {
        let (width, height) = (columns * 8, rows * 8)
        let frame: [UInt8] = [
            8, UInt8(height >> 8), UInt8(height & 0xFF), UInt8(width >> 8), UInt8(width & 0xFF), 1, 1, 0x11, 0,
        ]
        // The number of codes of each length, and the meanings of the codes: sizes of differences (T.81, table K.3), and the end
        // of a block.
        let sizes: [UInt8] = [0x00, 0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0] + Array(0...11)
        let ends: [UInt8] = [0x10, 1] + Array(repeating: 0, count: 16)
        return segment(0xDB, [0] + Array(repeating: 8, count: 64)) + segment(0xC0, frame) + segment(0xC4, sizes)
            + segment(0xC4, ends) + segment(0xDA, [1, 1, 0x00, 0, 63, 0]) + Data(scan)
    }()

    private static var scan: [UInt8] {
        var bits: [Bool] = []
        func write(_ value: Int, _ count: Int) { for bit in (0..<count).reversed() { bits.append(value >> bit & 1 == 1) } }
        // The codes of T.81, table K.3. The codes follow from their lengths.
        let codes = [0b00, 0b010, 0b011, 0b100, 0b101, 0b110, 0b1110, 0b11110, 0b111110]
        let lengths = [2, 3, 3, 3, 3, 3, 4, 5, 6]
        var last = 0
        for row in 0..<rows {
            for column in 0..<columns {
                let level = brightness(column, row) - 128
                let difference = level - last
                last = level
                let size = Int.bitWidth - abs(difference).leadingZeroBitCount
                write(codes[size], lengths[size])
                write(difference < 0 ? difference + (1 << size) - 1 : difference, size)
                write(0, 1)
            }
        }
        while bits.count % 8 != 0 { bits.append(true) }
        let bytes = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        return bytes.flatMap { $0 == 0xFF ? [0xFF, 0x00] : [$0] }
    }

    /// Returns the brightness of a block, from 0 to 255.
    private static func brightness(_ column: Int, _ row: Int) -> Int {
        let flash = columns / 2 + [0, 1, 2, 1, 0, -1, 0, 1][row % 8]
        if column == flash, row < rows * 3 / 4 { return 250 }
        return 40 + row * 4 + (column * 7 + row * 3) % 11
    }
}
