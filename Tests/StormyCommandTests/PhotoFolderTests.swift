import Foundation
import ServerScripts
import Testing

@testable import Stormy

/// Tests the key `path` of a destination: photos are stored in folders with their dates.
@Suite(.timeLimit(.minutes(30))) struct PhotoFolderTests {
    /// Returns a TIFF structure with an original date in its Exif directory.
    private func exif(_ date: String, isLittleEndian: Bool = true) -> Data {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] {
            let little = (0..<bytes).map { UInt8(value >> (8 * $0) & 0xFF) }
            return isLittleEndian ? little : little.reversed()
        }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
            number(tag, 2) + number(type, 2) + number(count, 4) + number(value, 4)
        }
        let header: [UInt8] = (isLittleEndian ? [0x49, 0x49] : [0x4D, 0x4D]) + number(42, 2) + number(8, 4)
        let first = number(1, 2) + entry(0x8769, 4, 1, 26) + number(0, 4)
        let second = number(1, 2) + entry(0x9003, 2, 20, 44) + number(0, 4)
        return Data(header + first + second) + Data(date.utf8) + Data([0])
    }

    @Test(arguments: [true, false]) func `the day is the original date in the Exif data`(_ isLittleEndian: Bool) {
        let data = Data(repeating: 7, count: 100) + exif("2026:07:14 23:59:59", isLittleEndian: isLittleEndian)
        let date = PhotoDate.inExif(data)
        #expect(date?.year == 2026 && date?.month == 7 && date?.day == 14 && date?.source == .exifWithoutOffset)
        for text in ["0000:00:00 00:00:00", "2026:13:01 00:00:00", "    :  :     :  :  ", "2026/07/14 23:59:59"] {
            #expect(PhotoDate.inExif(exif(text)) == nil, "\(text)")
        }
        for count in 0..<data.count { _ = PhotoDate.inExif(data.prefix(count)) }
    }

    @Test func `photos are stored in the folders of their dates`() async throws {
        try await PhotoHome.play(PhotoHome.destination() + "path = \"{year}/{month}/\"\n") { home, store in
            let segment = Data("Exif\0\0".utf8) + exif("2025:12:31 23:30:00")
            let taken = Data([0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(segment.count + 2)]) + segment + JPEG.picture("x").dropFirst(2)
            let dated = try home.write(taken, to: "camera/dated.jpg")
            let undated = try home.picture("undated.jpg")
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_784_030_400)], ofItemAtPath: undated.path)
            #expect(try await home.stormy("upload", "--wait", dated.path, undated.path).status == 0)
            #expect(Set(store.arrived) == ["2025/12/dated.jpg", "2026/07/undated.jpg"], "\(store.arrived)")
            let audit = try await home.stormy("audit", "--verify", home.camera.path)
            #expect(audit.status == 0, "\(audit)")
        }
    }
}
