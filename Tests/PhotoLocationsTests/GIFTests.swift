import Testing

@testable import PhotoLocations

@Suite struct GIFTests {
    /// Returns a text in sub-blocks. The length of a sub-block is stored in front of the sub-block.
    private static func subBlocks(_ text: some Collection<UInt8>, _ size: Int = 255) -> [UInt8] {
        var (result, rest) = ([UInt8](), Array(text))
        while !rest.isEmpty {
            result += [UInt8(min(size, rest.count))] + rest.prefix(size)
            rest.removeFirst(min(size, rest.count))
        }
        return result + [0]
    }

    private static func comment(_ text: String, _ size: Int = 255) -> [UInt8] { [0x21, 0xFE] + subBlocks(text.utf8, size) }

    /// A picture of one pixel, with colour tables.
    private static let picture: [UInt8] =
        [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0x80] + [UInt8](repeating: 5, count: 6) + [2] + subBlocks(Array("lat=47.5".utf8))

    private static func gif(_ blocks: [UInt8]..., trailer: [UInt8] = [0x3B]) -> [UInt8] {
        Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0] + [UInt8](repeating: 9, count: 6) + blocks.joined() + trailer
    }

    /// Checks that the lengths of the sub-blocks and the letters around the place are unchanged.
    private func check(_ file: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
        let cleaned = try Cleaned(file)
        #expect(cleaned.blocks == ["comment of GIF"], sourceLocation: sourceLocation)
        let changed = file.indices.filter { cleaned.bytes[$0] != file[$0] }.map { file[$0] }
        #expect(
            changed.allSatisfy { (48...57).contains($0) || "+-.,NE° ".utf8.contains($0) }, sourceLocation: sourceLocation)
        let digits = { (bytes: [UInt8]) in bytes.filter { (49...57).contains($0) }.count }
        #expect(digits(cleaned.bytes) < digits(file) - 8, sourceLocation: sourceLocation)
        #expect(try Cleaned(cleaned.bytes).bytes == cleaned.bytes, sourceLocation: sourceLocation)
    }

    @Test(arguments: 1...20) func `a location that a length divides is overwritten`(_ shift: Int) throws {
        let text = String(repeating: "x", count: 255 - shift) + " lat=47.370094 lon=8.549106 end"
        try check(Self.gif(Self.picture, Self.comment(text)))
    }

    @Test(arguments: [1, 2, 3, 5, 50]) func `a location in short sub-blocks is overwritten`(_ size: Int) throws {
        try check(Self.gif(Self.comment("Before N47.370094 E8.549106 behind", size), Self.picture))
    }

    @Test func `a comment without a location and the picture stay`() throws {
        let file = Self.gif(Self.comment("Made with a tool, version 1.25"), Self.picture)
        #expect(try Cleaned(file).bytes == file)
        #expect(try PhotoLocations(searching: MemoryBytes(file)).isKnownFormat)
    }

    @Test func `XMP and bytes behind the end are cleaned`() throws {
        // In a GIF file, XMP is not divided into sub-blocks. At its end, 258 bytes lead a reader of sub-blocks to the end of the
        // XMP block.
        let magic = [1] + (0...255).reversed().map { UInt8($0) } + [0]
        let xmp = [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8) + Array(Samples.xmp.utf8) + magic
        let cleaned = try Cleaned(Self.gif(xmp, Self.picture, trailer: [0x3B] + Array("lat=47.370094".utf8)))
        #expect(!cleaned.contains("Zurich") && !cleaned.contains("47,22") && !cleaned.contains("370094"))
        #expect(cleaned.contains("<dc:title>Hail</dc:title>"))
    }

    @Test func `a GIF file without an end is not a known format`() throws {
        let file = Self.gif(Self.comment("Before N47.370094 E8.549106 behind", 5), Self.picture, trailer: [])
        let found = try PhotoLocations(searching: MemoryBytes(file))
        #expect(!found.isKnownFormat && found.blocks.first == "comment of GIF")
    }
}
