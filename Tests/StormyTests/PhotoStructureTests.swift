import Foundation
import Testing

@testable import Stormy

/// Photos that the cleaner is known to damage, and positions that it does not find.
@Suite struct PhotoStructureTests {
    private static let header = Data([0x49, 0x49, 0x2A, 0])

    private static func number(_ value: Int) -> Data { withUnsafeBytes(of: UInt32(value).littleEndian) { Data($0) } }

    /// A directory of a TIFF file, with the offset of the next one. Each value is an offset.
    private static func directory(_ entries: [(tag: Int, value: Int)], next: Int = 0) -> Data {
        var bytes = Data([UInt8(entries.count), 0])
        for entry in entries {
            bytes += [UInt8(entry.tag & 0xFF), UInt8(entry.tag >> 8), 4, 0] + number(1) + number(entry.value)
        }
        return bytes + number(next)
    }

    /// A TIFF file of so many pages without pixels, each of 18 bytes.
    private static func tiff(pages: Int) -> Data {
        (0..<pages).reduce(header + number(8)) { file, page in
            file + directory([(0x0100, 1)], next: page + 1 < pages ? 8 + 18 * (page + 1) : 0)
        }
    }

    /// A JPEG file with an index that names a second picture at an offset.
    private static func jpeg(secondAt offset: Int, isThere: Bool) -> Data {
        let index = header + number(8) + directory([(0xB002, 26)]).replacingCount(with: 32)
        let entries = Data(count: 16) + Data(count: 8) + number(offset) + Data(count: 4)
        let content = Data("MPF\0".utf8) + index + entries
        let length = content.count + 2
        return Data([0xFF, 0xD8, 0xFF, 0xE2, UInt8(length >> 8), UInt8(length & 0xFF)]) + content + Data([0xFF, 0xDA])
            + (isThere ? Data([0xFF, 0xD8]) : Data([0, 0]))
    }

    // MARK: Damage

    @Test func `a TIFF file that lost a page is damaged`() {
        let (three, two) = (PhotoStructure(of: Self.tiff(pages: 3)), PhotoStructure(of: Self.tiff(pages: 2)))
        #expect(two.damage(since: three) == "it would lose a page")
        #expect(three.damage(since: three) == nil)
    }

    @Test func `a raw file counts as damaged whatever is left of it`() {
        let raw = PhotoStructure(of: Self.header + Self.number(8) + Self.directory([(0x010F, 0), (0x014A, 0)]))
        #expect(raw.damage(since: raw) == "it is a camera's raw file")
    }

    @Test func `a JPEG file whose second picture is elsewhere is damaged`() {
        // The index begins 8 bytes into the segment, whose content ends at offset 58 from there.
        let (whole, cut) = (Self.jpeg(secondAt: 60, isThere: true), Self.jpeg(secondAt: 60, isThere: false))
        let (before, after) = (PhotoStructure(of: whole), PhotoStructure(of: cut))
        #expect(after.damage(since: before)?.contains("other pictures") == true)
        #expect(before.damage(since: before) == nil)
        #expect(PhotoStructure(of: Self.tiff(pages: 1)).damage(since: PhotoStructure(of: Self.tiff(pages: 1))) == nil)
        // It was broken before it was cleaned.
        #expect(after.damage(since: after) == nil)
    }

    @Test func `a file that is cut or leads in a circle is read to its end`() {
        let circle = Self.header + Self.number(8) + Self.directory([], next: 8)
        #expect(PhotoStructure(of: circle).damage(since: PhotoStructure(of: circle)) == nil)
        for file in [Self.tiff(pages: 3), Self.jpeg(secondAt: 60, isThere: true)] {
            for length in 0...file.count { _ = PhotoStructure(of: file.prefix(length)) }
        }
    }

    // MARK: Positions

    @Test(arguments: ["FLIR\0....", "....SEFH..SEFT", "GPMF....DEVC", "8BIM\u{4}\u{4}....8BIM\u{4}\u{4}"])
    func `a block that is not read may hold a position`(_ block: String) {
        #expect(PhotoLocation.isPresent(in: Data([0xFF, 0xD8]) + Data(block.utf8)))
    }

    @Test(arguments: ["SEFT", "SEFH", "GPMF", "8BIM\u{4}\u{4}"])
    func `one mark alone says nothing`(_ mark: String) {
        #expect(!PhotoLocation.isPresent(in: Data([0xFF, 0xD8]) + Data(mark.utf8)))
    }

    @Test(arguments: ["tEXtLocation\0Zug", "iTXtGPS\0", "zTXtGPSPosition\0"])
    func `a text of a PNG file that names a place is found`(_ chunk: String) {
        #expect(PhotoLocation.isPresent(in: Data([0x89]) + Data("PNG".utf8) + Data(chunk.utf8)))
    }

    @Test(arguments: [0x8769, 0x014A]) func `a position outside of the first directory is found`(_ tag: Int) {
        let (second, third) = (8 + 18, 8 + 2 * 18)
        let start = Self.header + Self.number(8) + Self.directory([(tag, second)])
        let gps = Self.directory([(2, 0), (4, 0)])
        #expect(PhotoLocation.isPresent(in: start + Self.directory([(0x8825, third)]) + gps))
        #expect(!PhotoLocation.isPresent(in: start + Self.directory([(0x0100, third)]) + gps))
    }
}

extension Data {
    /// Changes the count of the only entry of a directory.
    fileprivate func replacingCount(with count: UInt8) -> Data {
        var changed = self
        changed[startIndex + 6] = count
        return changed
    }
}
