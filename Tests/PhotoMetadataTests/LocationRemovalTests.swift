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
        #expect(throws: LocationRemovalError.self) { try LocationRemoval.clean("/nowhere.jpg") }
    }
}
