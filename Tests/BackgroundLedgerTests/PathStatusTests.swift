import Foundation
import ProcessSupport
import Testing

/// Tests that a missing file is distinguished from a file system that does not respond.
@Suite struct PathStatusTests {
    @Test func `missing files, files, links and impossible names are distinguished`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("file").path
        let loop = folder.appendingPathComponent("loop").path
        try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: "loop")
        #expect(PathStatus.at(file).information?.st_size == 1)
        #expect(PathStatus.at(folder.path + "/none").isAbsent)
        // If a path uses a regular file as a folder, the path also counts as missing.
        #expect(PathStatus.at(file + "/none").isAbsent)
        guard case .unreadable(ELOOP) = PathStatus.at(loop) else {
            Issue.record("a loop of links is not an absence")
            return
        }
        #expect(PathStatus.at(loop, followingLinks: false).information != nil)
        guard case .unreadable(ENAMETOOLONG) = PathStatus.at(folder.path + "/" + String(repeating: "a", count: 300)) else {
            Issue.record("a name that is too long is not an absence")
            return
        }
    }
}
