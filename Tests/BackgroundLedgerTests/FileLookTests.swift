import Foundation
import ProcessSupport
import Testing

/// Tests of the difference between a missing file and a file system that does not answer.
@Suite struct FileLookTests {
    @Test func `missing files, files, links and impossible names are distinguished`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("file").path
        let loop = folder.appendingPathComponent("loop").path
        try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: "loop")
        #expect(FileLook.at(file).information?.st_size == 1)
        #expect(FileLook.at(folder.path + "/none").isAbsent)
        // A path through a file is an absence as well.
        #expect(FileLook.at(file + "/none").isAbsent)
        guard case .unreadable(ELOOP) = FileLook.at(loop) else {
            Issue.record("a loop of links is not an absence")
            return
        }
        #expect(FileLook.at(loop, followingLinks: false).information != nil)
        guard case .unreadable(ENAMETOOLONG) = FileLook.at(folder.path + "/" + String(repeating: "a", count: 300)) else {
            Issue.record("a name that is too long is not an absence")
            return
        }
    }
}
