import Foundation
import Testing

@testable import Stormy

/// Tests the choosers zenity and kdialog, which print one path in each line.
@Suite struct FileChooserTests {
    @Test func `a chosen path with a line feed is not read as two paths`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("chooser-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder + "/x\n/etc", withIntermediateDirectories: true)
        for name in ["x\n/etc/passwd", "one.jpg", "two.jpg", "a\nb\nc"] {
            try Data("photo".utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
        }
        let one = folder + "/one.jpg"
        #expect(FileChooser.containsPathOfSeveralLines([one, folder + "/x", "/etc/passwd"]))
        #expect(FileChooser.containsPathOfSeveralLines([folder + "/a", "b", "c", one]))
        #expect(!FileChooser.containsPathOfSeveralLines([one, folder + "/two.jpg", folder + "/missing.jpg"]))
        #expect(!FileChooser.containsPathOfSeveralLines([one]))
    }
}
