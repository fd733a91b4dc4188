import Foundation
import Testing

@testable import PhotoLocations

/// Tests pictures of ImageMagick with tags of ExifTool. ExifTool also checks the result, because ExifTool is independent of
/// Stormy's parsers.
@Suite(.serialized) struct ExifToolTests {
    private let folder: URL

    init() throws {
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

    private func clean(_ path: String) throws -> PhotoCleaning.Report {
        let descriptor = open(path, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        return try PhotoCleaning.clean(descriptor: descriptor)
    }

    @Test(arguments: ["a.jpg", "a.png", "a.webp", "a.tif", "lzw.tif"])
    func `ExifTool finds no location, and all other tags and pixels are the same`(_ name: String) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent(name).path
        try run("convert", ["-size", "64x40", "plasma:red-blue"] + (name == "lzw.tif" ? ["-compress", "LZW"] : []) + [path])
        let kept = ["-Orientation=6", "-Artist=A. Storm", "-DateTimeOriginal=2026:07:01 12:00:00", "-XMP-dc:Title=Hail"]
        let places = [
            "-GPSLatitude=48.137154", "-GPSLatitudeRef=N", "-GPSLongitude=11.576124", "-GPSLongitudeRef=E", "-GPSAltitude=520",
            "-GPSProcessingMethod=GPS", "-XMP-photoshop:City=Munich", "-XMP-exif:GPSLatitude=48.137154",
            "-XMP-iptcExt:LocationShownCity=Munich", "-IPTC:City=Munich",
        ]
        try run("exiftool", ["-q", "-m", "-overwrite_original", "-n"] + kept + places + [path])
        let pixels = try run("identify", ["-format", "%#", path])
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(try !clean(path).blocks.isEmpty)
        let tags = try run("exiftool", ["-n", "-s", "-G1", "-a", "-ee", path]).replacing(/.*GPSVersionID.*/, with: "")
        for word in ["GPS", "Munich", "City", "Location", "48.1", "11.5"] { #expect(!tags.contains(word), "\(word) in \(tags)") }
        for word in ["A. Storm", "Hail", "2026:07:01 12:00:00"] { #expect(tags.contains(word), "\(word) is missing") }
        #expect(try run("identify", ["-format", "%#", path]) == pixels)
        let after = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(after.count == before.count)
        // A second run changes nothing.
        #expect(try clean(path).blocks.isEmpty && Data(contentsOf: URL(fileURLWithPath: path)) == after)
    }

    @Test(arguments: ["", "hello", "GIF89a"]) func `a file of another format is not changed`(_ text: String) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("file").path
        for (content, failure) in [
            (text, LocationFailure.unknownFormat), (text + "latitude: 48.137154", .unproven(block: "data in the file")),
        ] {
            try Data(content.utf8).write(to: URL(fileURLWithPath: path))
            #expect(throws: failure) { try clean(path) }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == content)
        }
    }
}
