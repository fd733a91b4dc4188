import TestSamples
import Testing

@testable import PhotoLocations

/// Tests files that no camera writes. The cleaner must not crash, must not take very long, and must not change bytes outside the
/// reported ranges.
@Suite struct HostileFileTests {
    static let files: [[UInt8]] = [
        Samples.jpeg(Samples.exif(Samples.tiff()), Samples.xmp(Array(Samples.xmp.utf8)))
            + Samples.jpeg(Samples.exif(Samples.tiff(isLittle: false))),
        Samples.tiff(),
        Samples.png(
            Samples.chunk("eXIf", Samples.tiff()), Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(Samples.xmp)".utf8))),
        Samples.riff([("VP8 ", [1, 2, 3]), ("EXIF", Samples.tiff()), ("XMP ", Array(Samples.xmp.utf8))]),
        Samples.film + Samples.box("moov", Samples.box("udta", Samples.box("©xyz", [0, 30, 0, 0] + Array(Samples.iso.utf8)))),
        Samples.jpeg(Samples.segment(0xE6, Array("GoPro\0".utf8) + TimedMetadataTests.telemetry)),
    ]

    private func search(_ bytes: [UInt8]) throws {
        do {
            _ = try Cleaned(bytes)
        } catch is LocationFailure {
            // An error is also a valid result. If the cleaning fails with an error, the file is not uploaded, and the reason is
            // reported.
        }
    }

    @Test(arguments: files.indices)
    func `a file that is cut at any byte is cleaned or held without a crash`(_ index: Int) throws {
        for end in 0..<Self.files[index].count { try search(Array(Self.files[index][..<end])) }
    }

    @Test(arguments: files.indices) func `a file with any damaged byte is cleaned or held without a crash`(_ index: Int) throws {
        for position in TableSample.rows(of: Self.files[index].indices, in: "\(index)") {
            for value in [0x00, 0xFF] as [UInt8] {
                var bytes = Self.files[index]
                bytes[position] = value
                try search(bytes)
            }
        }
    }

    @Test func `directories that refer to each other do not lead to an endless loop`() throws {
        let pointer = { (tag: Int, to: Int) in Samples.Entry(tag: tag, type: 4, count: 1, value: Samples.little(to, 4)) }
        let first = Samples.directory([pointer(0x014A, 50), pointer(0x8769, 8), pointer(0x8825, 50)], at: 8, next: 50)
        let second = Samples.directory([pointer(0x014A, 8), pointer(0x8825, 8)], at: 50, next: 8)
        try search(
            [0x49, 0x49, 42, 0] + Samples.little(8, 4) + first + [UInt8](repeating: 0, count: 50 - 8 - first.count) + second)
    }

    @Test(arguments: [0xFFFF_FFFF, 0x7FFF_FFFF, 0xFFFF_FFF0, 8])
    func `offsets beyond the end do not lead to a crash`(_ offset: Int) throws {
        for tag in [0x8825, 0x8769, 0x014A, 0x02BC, 0x83BB, 0x8649, 0x927C, 0xC634, 33922, 34735] {
            for type in [1, 4, 12] {
                let entry = Samples.Entry(tag: tag, type: type, count: 0xFFFF_FFFF, value: Samples.little(offset, 4))
                try search(Samples.tiff([entry]))
            }
        }
    }

    @Test func `a file with a hundred thousand items is cleaned or held without a crash`() throws {
        let properties = String(repeating: "<exif:GPSLatitude>1,2.5N</exif:GPSLatitude>", count: 100_000)
        try search(Array(properties.utf8))
        let boxes = [UInt8](repeating: 0, count: 0) + (0..<100_000).flatMap { _ in Samples.box("free", []) }
        try search(Samples.film + Samples.box("moov", boxes))
        try search([0xFF, 0xD8] + (0..<100_000).flatMap { _ in Samples.segment(0xE5, [1, 2]) })
        // Each TIFF directory points to the next TIFF directory.
        let pages = (0..<100_000).flatMap {
            Samples.directory([], at: 0, next: 0).prefix(2) + Samples.little(8 + 6 * ($0 + 1), 4)
        }
        try search([0x49, 0x49, 42, 0] + Samples.little(8, 4) + pages)
        try search((0..<30_000).flatMap { _ in [0x49, 0x49, 42, 0, 8, 0, 0, 0] as [UInt8] })
    }

    @Test func `a GPS value over pixels leaves the pixels`() throws {
        // The value of the latitude overlaps the strip.
        let strip = [
            Samples.Entry(tag: 0x111, type: 4, count: 1, value: Samples.little(300, 4)),
            Samples.Entry(tag: 0x117, type: 4, count: 1, value: Samples.little(64, 4)),
            Samples.Entry(tag: 0x8825, type: 4, count: 1, value: Samples.little(200, 4)),
        ]
        var tiff: [UInt8] = [0x49, 0x49, 42, 0] + Samples.little(8, 4) + Samples.directory(strip, at: 8)
        tiff += [UInt8](repeating: 0, count: 200 - tiff.count)
        var gps = Samples.directory([Samples.Entry(tag: 2, type: 5, count: 3, value: [UInt8](repeating: 0, count: 24))], at: 200)
        gps.replaceSubrange(10..<14, with: Samples.little(310, 4))
        tiff += gps + [UInt8](repeating: 0, count: 300 - 200 - gps.count) + (0..<64).map { UInt8($0) }
        let found = try PhotoLocations(searching: MemoryBytes(tiff))
        #expect(found.overwrites.allSatisfy { $0.range.upperBound <= 300 } && !found.overwrites.isEmpty)
    }

    @Test func `a file that becomes shorter is held`() {
        final class Shrinking: PhotoBytes {
            let count = 1 << 20
            func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
                guard offset + buffer.count < 1 << 17 else { return false }
                buffer.initializeMemory(as: UInt8.self, repeating: 0)
                return true
            }
        }
        #expect(throws: LocationFailure.unreadable) { try PhotoLocations(searching: Shrinking()) }
    }
}
