import CZlib
import Testing

@testable import PhotoLocations

/// Tests DNG files that contain the original raw file of the camera.
@Suite struct EmbeddedRawTests {
    private func deflate(_ bytes: ArraySlice<UInt8>, level: Int32 = 6) -> [UInt8] {
        var size = compressBound(UInt(bytes.count))
        var deflated = [UInt8](repeating: 0, count: Int(size))
        compress2(&deflated, &size, Array(bytes), UInt(bytes.count), level)
        return Array(deflated[..<Int(size)])
    }

    private func inflate(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [UInt8]? {
        var size = UInt(count)
        var inflated = [UInt8](repeating: 0, count: count)
        // Zeros after the stream do not count as an error.
        return uncompress(&inflated, &size, Array(bytes), UInt(bytes.count)) == Z_OK && size == count ? inflated : nil
    }

    /// Returns a fork, which is a part of an embedded raw file. A fork consists of the size, the offset of each block, the offset
    /// of the end, and the blocks.
    private func fork(_ bytes: [UInt8], level: Int32 = 6) -> [UInt8] {
        let starts = stride(from: 0, to: bytes.count, by: 65_536)
        let blocks = starts.map { deflate(bytes[$0..<min(bytes.count, $0 + 65_536)], level: level) }
        var (table, offset) = (Samples.big(bytes.count, 4), 4 * (blocks.count + 2))
        for block in blocks + [[]] {
            table += Samples.big(offset, 4)
            offset += block.count
        }
        return table + blocks.flatMap { $0 }
    }

    /// Returns the inflated blocks of the first fork. Returns `nil` if a block cannot be inflated.
    private func unfold(_ data: ArraySlice<UInt8>) -> [UInt8]? {
        let data = Array(data)
        func number(_ start: Int) -> Int { data[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
        var result: [UInt8] = []
        for index in 0..<(number(0) + 65_535) / 65_536 {
            let count = min(65_536, number(0) - result.count)
            guard let block = inflate(data[number(4 + 4 * index)..<number(8 + 4 * index)], count) else { return nil }
            result += block
        }
        return result
    }

    private func dng(_ data: [UInt8], digest: [UInt8]? = nil) -> [UInt8] {
        Samples.tiff(
            [Samples.Entry(tag: 0xC68C, type: 7, count: data.count, value: data)]
                + (digest.map { [Samples.Entry(tag: 0xC71D, type: 1, count: 16, value: $0)] } ?? []), hasGPS: false)
    }

    /// A raw file of three blocks. The brightness values of the file are between the location and the preview, which has another
    /// location.
    private let raw =
        Samples.tiff([Samples.text(0x010F, "Maker")]) + (0..<140_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
        + Samples.jpeg(Samples.exif(Samples.tiff()))

    @Test(arguments: [1, 6, 9] as [Int32], [true, false])
    func `the location is removed, and the other bytes inflate to what they were`(_ level: Int32, _ hasResource: Bool) throws {
        // The data contains the following for two files: a data fork, a resource fork, the type and the creator.
        let second = Array("TIFFADBE".utf8) + fork(Samples.jpeg(Samples.exif(Samples.tiff())), level: level)
        let data = fork(raw, level: level) + (hasResource ? fork([1, 2, 3], level: level) : [0, 0, 0, 0]) + second
        let original = dng(data, digest: MD5.digest(of: data))
        let cleaned = try Cleaned(original)
        #expect(cleaned.blocks == ["embedded raw file of TIFF"])
        let start = try #require(original.firstRange(of: data))
        let new = cleaned.bytes[start..<start + data.count]
        let unfolded = try #require(unfold(new))
        let wanted = try Cleaned(raw).bytes
        #expect(unfolded == wanted && unfolded != raw)
        #expect(cleaned.contains(MD5.digest(of: Array(new))) && !cleaned.contains(MD5.digest(of: data)))
        #expect(abs(cleaned.places[0].latitude! - Samples.latitude) < 1e-6)
        #expect(try Cleaned(cleaned.bytes).blocks.isEmpty, "a second run finds nothing")
    }

    @Test func `blocks without a location are unchanged`() throws {
        let data = fork(raw)
        let original = dng(data)
        let start = try #require(original.firstRange(of: data))
        let cleaned = try Cleaned(original)
        func number(_ offset: Int) -> Int { original[start + offset..<start + offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let middle = start + number(8)..<start + number(12)
        #expect(cleaned.bytes[middle] == original[middle])
    }

    @Test func `a digest of other bytes is not changed`() throws {
        let digest = [UInt8](1...16)
        #expect(try Cleaned(dng(fork(raw), digest: digest)).contains(digest))
    }

    @Test func `an embedded raw file without a location is not changed`() throws {
        let original = dng(fork(Samples.tiff(hasGPS: false)))
        #expect(try Cleaned(original).bytes == original)
    }

    /// Deflated properties need few bytes if they repeat a comment. After the location is removed from the properties, they no
    /// longer repeat the comment and need more bytes.
    @Test func `a block that becomes longer is held and named`() {
        var state: UInt32 = 7
        let properties = (0..<30).map { index in
            let noise = (0..<12).map { _ in
                state = state &* 1_664_525 &+ 1_013_904_223
                return UInt8(ascii: "A") + UInt8(state >> 24) % 26
            }
            return "<a:City>\(index)</a:City><dc:title>\(String(decoding: noise, as: UTF8.self))</dc:title>"
        }.joined()
        let packet = Samples.packet("<!--\(properties)-->\(properties)")
        #expect(throws: LocationFailure.unproven(block: "embedded raw file of TIFF")) {
            try PhotoLocations(searching: MemoryBytes(dng(fork(Samples.jpeg(Samples.xmp(Array(packet.utf8))), level: 9))))
        }
    }

    @Test func `a damaged embedded raw file is held or cleaned`() throws {
        let data = fork(Samples.tiff())
        for position in data.indices {
            for value in [0x00, 0xFF, 0x7F] as [UInt8] {
                var damaged = data
                damaged[position] = value
                do {
                    _ = try Cleaned(dng(damaged))
                } catch let failure as LocationFailure {
                    #expect(failure != .unreadable, "byte \(position)")
                }
            }
        }
    }

    @Test(arguments: [0xFFFF_FFFF, 0x7FFF_FFFF, 0x0100_0000]) func `a size that is not possible is held`(_ size: Int) {
        #expect(throws: LocationFailure.unproven(block: "embedded raw file of TIFF")) {
            try PhotoLocations(searching: MemoryBytes(dng(Samples.big(size, 4) + fork(raw).dropFirst(4))))
        }
    }
}
