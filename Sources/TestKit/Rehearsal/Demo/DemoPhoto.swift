import Foundation

/// A small picture of a storm, drawn here: dark clouds, one flash. BMP, because it needs no library.
enum DemoPhoto {
    static func bytes(width: Int = 320, height: Int = 200) -> Data {
        var data = Data("BM".utf8)
        func append(_ value: UInt32) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
        func append(_ value: UInt16) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
        let size = width * height * 4
        append(UInt32(54 + size))
        append(UInt32(0))
        append(UInt32(54))
        append(UInt32(40))
        append(UInt32(width))
        append(UInt32(height))
        append(UInt16(1))
        append(UInt16(32))
        for _ in 0..<6 { append(UInt32(0)) }
        for row in 0..<height {
            for column in 0..<width {
                let cloud = UInt8(40 + row * 90 / height)
                let flash = abs(column - width / 2 - (row % 50 < 25 ? row % 25 : 25 - row % 25)) < 2 && row < height * 3 / 4
                data.append(contentsOf: flash ? [200, 250, 255, 255] : [cloud, cloud, cloud / 2, 255])
            }
        }
        return data
    }
}
