import Foundation
import Testing

@testable import PhotoMetadata

/// On real pictures, made by ImageMagick, tagged and looked at by ExifTool: neither knows the library we clean with.
@Suite(.serialized) struct LocationRemovalTests {
    private let folder: URL

    init() throws {
        LocationRemoval.start()
        folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    @discardableResult
    private func run(_ command: String, _ arguments: [String]) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [command] + arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(command) \(arguments)")
        return text
    }

    /// A picture with a place in every way there is, turned, and with other things to keep.
    private func picture(_ name: String) throws -> String {
        let path = folder.appendingPathComponent(name).path
        try run("convert", ["-size", "320x200", "plasma:red-blue", path])
        try run(
            "exiftool",
            [
                "-q", "-m", "-overwrite_original", "-n", "-GPSLatitude=48.1", "-GPSLatitudeRef=N", "-GPSLongitude=11.5",
                "-GPSLongitudeRef=E", "-GPSAltitude=520", "-Orientation=6", "-Artist=A. Storm",
                "-DateTimeOriginal=2026:07:01 12:00:00", "-XMP-photoshop:City=Munich", "-XMP-exif:GPSLatitude=48.1",
                "-XMP-iptcExt:LocationShownCity=Munich", "-XMP-dc:Title=Hail", path,
            ])
        return path
    }

    @Test(arguments: ["a.jpg", "a.png", "a.webp", "a.tif"]) func placesGoAndTheRestStays(_ name: String) throws {
        let path = try picture(name)
        let pixels = try run("identify", ["-format", "%#", path])
        let removed = try LocationRemoval.clean(path)
        #expect(removed.contains("Exif.GPSInfo.GPSLatitude") && removed.contains("Xmp.photoshop.City"), "\(removed)")
        let tags = try run("exiftool", ["-n", "-s", "-G1", "-a", path])
        for word in ["GPS", "Munich", "48.1", "11.5"] { #expect(!tags.contains(word), "\(word) in \(tags)") }
        for kept in ["A. Storm", "Hail", "2026:07:01 12:00:00"] { #expect(tags.contains(kept), "\(kept) is gone") }
        #expect(tags.contains("Orientation                     : 6"))
        #expect(try run("identify", ["-format", "%#", path]) == pixels)
        // Once more finds nothing and touches nothing.
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(try LocationRemoval.clean(path).isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    /// gexiv2 lists the parts of a structure and not the structure, which then stays, empty, and looks like a place.
    @Test(arguments: ["LocationCreatedCity", "LocationShownCity", "LocationCreatedGPSLatitude"])
    func nothingStaysOfAStructure(_ tag: String) throws {
        let path = folder.appendingPathComponent("a.jpg").path
        try run("convert", ["-size", "32x20", "plasma:", path])
        try run("exiftool", ["-q", "-m", "-overwrite_original", "-n", "-XMP-iptcExt:\(tag)=48.1", "-XMP-dc:Title=Hail", path])
        #expect(try !LocationRemoval.clean(path).isEmpty)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(bytes.range(of: Data("Location".utf8)) == nil && bytes.range(of: Data("Hail".utf8)) != nil)
    }

    /// The oldest of the three blocks, alone and beside what people keep in it.
    @Test(arguments: ["City", "Sub-location", "Province-State", "Country-PrimaryLocationName", "ContentLocationName"])
    func placesInIPTC(_ tag: String) throws {
        let path = folder.appendingPathComponent("a.jpg").path
        try run("convert", ["-size", "32x20", "plasma:", path])
        try run("exiftool", ["-q", "-m", "-overwrite_original", "-IPTC:\(tag)=Munich", "-IPTC:Caption-Abstract=Hail", path])
        #expect(try LocationRemoval.clean(path).contains { $0.hasPrefix("Iptc.") })
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(bytes.range(of: Data("Munich".utf8)) == nil && bytes.range(of: Data("Hail".utf8)) != nil)
    }

    /// A PNG file with a chunk of text in front of its pixels.
    private func picture(_ name: String, withChunk type: String, named keyword: String, _ profile: Data) throws -> String {
        let path = folder.appendingPathComponent(name).path
        try run("convert", ["-size", "32x20", "plasma:", "-strip", path])
        let hex = profile.map { String(format: "%02x", $0) }.joined()
        let text = Data("\nprofile\n\(profile.count)\n\(hex)\n".utf8)
        let content =
            switch type {
            case "tEXt": Data("\(keyword)\0".utf8) + text
            case "iTXt": Data("\(keyword)\0\0\0\0\0".utf8) + text
            default: Data("\(keyword)\0\0".utf8) + zlibStream(of: text)
            }
        // Its checksum is not looked at here, and other programs only warn of it.
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes.insert(contentsOf: bigEndian(content.count) + Data(type.utf8) + content + bigEndian(0), at: 8 + 25)
        try bytes.write(to: URL(fileURLWithPath: path))
        return path
    }

    private func bigEndian(_ number: Int) -> Data { withUnsafeBytes(of: UInt32(number).bigEndian) { Data($0) } }

    /// One stored block (RFC 1950 and 1951).
    private func zlibStream(of text: Data) -> Data {
        let count = UInt16(text.count)
        let lengths = [count, ~count].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in text { (low, high) = ((low + UInt32(byte)) % 65_521, (high + low + UInt32(byte)) % 65_521) }
        return Data([0x78, 0x01, 0x01] + lengths) + text + bigEndian(Int(high << 16 | low))
    }

    /// TIFF with a directory of GPS, or with an artist.
    private func tiff(isLocated: Bool) -> Data {
        let head: [UInt8] = [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8, 0, 1]
        guard isLocated else { return Data(head + [0x01, 0x3B, 0, 2, 0, 0, 0, 2, 0x41, 0, 0, 0, 0, 0, 0, 0]) }
        let pointer: [UInt8] = [0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0]
        let latitude: [UInt8] = [0, 1, 0, 2, 0, 5, 0, 0, 0, 1, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0, 1]
        return Data(head + pointer + latitude)
    }

    @Test(arguments: ["tEXt", "zTXt", "iTXt"])
    func `a PNG file with a location in a profile that exiv2 ignores is not clean`(_ type: String) throws {
        let xmp = Data(
            """
            http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF \
            xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='' \
            xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/' photoshop:City='Munich'/></rdf:RDF></x:xmpmeta>
            """.utf8)
        let city = Data([0x1C, 2, 0x5A, 0, 6] + Array("Munich".utf8))
        let photoshop = Data("8BIM".utf8) + Data([4, 4, 0, 0, 0, 0, 0, 11]) + city + Data([0])
        for (name, profile) in [
            ("exif", tiff(isLocated: true)), ("APP1", tiff(isLocated: true)), ("APP1", xmp), ("8bim", photoshop),
            ("exif", Data("not metadata".utf8)),
        ] {
            let keyword = "Raw profile type \(name)"
            let path = try picture("raw.png", withChunk: type, named: keyword, profile)
            #expect(throws: LocationRemovalError.leftBehind([keyword])) { try LocationRemoval.clean(path) }
        }
    }

    @Test(arguments: ["tEXt", "zTXt", "iTXt"])
    func `a PNG file with a profile without a location is not changed`(_ type: String) throws {
        for (name, profile) in [
            ("exif", tiff(isLocated: false)), ("icc", Data("colours".utf8)), ("iptc", Data()), ("app12", Data("Ducky".utf8)),
        ] {
            let path = try picture("raw.png", withChunk: type, named: "Raw profile type \(name)", profile)
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(try LocationRemoval.clean(path).isEmpty)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        }
    }

    @Test func `a PNG file that exiv2 cannot read is not clean if a profile has a location`() throws {
        let path = try picture("cut.png", withChunk: "tEXt", named: "Raw profile type exif", tiff(isLocated: true))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try bytes.dropLast(20).write(to: URL(fileURLWithPath: path))
        #expect(throws: LocationRemovalError.leftBehind(["Raw profile type exif"])) { try LocationRemoval.clean(path) }
    }

    /// Cleaned twice from the same original, it is the same file: a photo queued twice is known again.
    @Test func theSameEveryTime() throws {
        let path = try picture("a.jpg")
        let copy = folder.appendingPathComponent("b.jpg").path
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        _ = try LocationRemoval.clean(path)
        _ = try LocationRemoval.clean(copy)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(contentsOf: URL(fileURLWithPath: copy)))
    }

    @Test func aPictureWithoutAPlaceIsNotTouched() throws {
        let path = folder.appendingPathComponent("c.jpg").path
        try run("convert", ["-size", "32x20", "plasma:", path])
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(try LocationRemoval.clean(path).isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test(arguments: ["", "hello", "\u{FF}\u{D8}\u{FF}"]) func whatIsNoPicture(_ text: String) throws {
        let path = folder.appendingPathComponent("d.jpg").path
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: LocationRemovalError.self) { try LocationRemoval.clean(path) }
    }

    @Test func `a file that cannot be opened is a fault of the system`() throws {
        let missing = try #require(throws: LocationRemovalError.self) { try LocationRemoval.clean("/nowhere.jpg") }
        #expect(missing.isFault)
        let path = folder.appendingPathComponent("d.jpg").path
        try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
        let text = try #require(throws: LocationRemovalError.self) { try LocationRemoval.clean(path) }
        #expect(!text.isFault)
    }
}
