import Foundation
import Testing

@testable import DesktopServices

/// Tests of how picture files are converted into the pixels that a notification server receives.
@Suite final class NoticePixelsTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pixels-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Draws a picture with ImageMagick.
    private func picture(_ name: String, _ arguments: String...) throws -> String {
        let path = folder.appendingPathComponent(name).path
        _ = try ChildProcess.run("convert", arguments + [path], environment: ProcessInfo.processInfo.environment)
        return path
    }

    @Test func `a small picture is not changed`() throws {
        let pixels = try #require(NoticePixels(file: picture("a.png", "-size", "3x2", "xc:rgba(255,0,128,0.5)")))
        #expect((pixels.width, pixels.height, pixels.channels) == (3, 2, 4))
        #expect(Array(pixels.bytes.prefix(3)) == [255, 0, 128])
        #expect(NoticePixels(line: pixels.line) == pixels)
    }

    @Test func `a large picture is scaled down and a photo is turned upright`() throws {
        let wide = try #require(NoticePixels(file: picture("wide.jpg", "-size", "4000x1000", "xc:blue")))
        #expect((wide.width, wide.height, wide.channels) == (256, 64, 3))
        let photo = try picture("photo.jpg", "-size", "400x200", "xc:red", "-orient", "RightTop")
        _ = try ChildProcess.run(
            "exiftool", ["-q", "-overwrite_original", "-n", "-Orientation=6", photo],
            environment: ProcessInfo.processInfo.environment)
        let upright = try #require(NoticePixels(file: photo))
        #expect((upright.width, upright.height) == (128, 256))
    }

    @Test func `a file that is not a picture, is cut off or is enormous is refused`() throws {
        let words = folder.appendingPathComponent("words.png")
        try Data("no picture".utf8).write(to: words)
        #expect(NoticePixels(file: words.path) == nil)
        #expect(NoticePixels(file: folder.appendingPathComponent("nothing.png").path) == nil)
        #expect(NoticePixels(file: folder.path) == nil)
        let whole = try Data(contentsOf: URL(fileURLWithPath: picture("whole.png", "-size", "64x64", "gradient:")))
        let cut = folder.appendingPathComponent("cut.png")
        try whole.prefix(whole.count / 2).write(to: cut)
        #expect(NoticePixels(file: cut.path) == nil)
        // The header of this picture contains a width of 100,000 pixels.
        var bomb = whole
        bomb.replaceSubrange(16..<20, with: [0x00, 0x01, 0x86, 0xA0])
        let large = folder.appendingPathComponent("bomb.png")
        try bomb.write(to: large)
        #expect(NoticePixels(file: large.path) == nil)
    }

    @Test(arguments: ["", "1 1 3", "1 1 3 !!!!", "0 1 3 AAAA", "1 1 3 AAAAAAAA", "-1 -1 3 AAAA", "9999999999 9999999999 3 AAAA"])
    func `an invalid line is not a picture`(_ line: String) { #expect(NoticePixels(line: line) == nil) }
}
