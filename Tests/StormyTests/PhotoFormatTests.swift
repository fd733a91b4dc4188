import Foundation
import Testing

@testable import Stormy

@Suite struct PhotoFormatTests {
    /// Whoever would write into it may never come.
    @Test func aNamedPipeIsNoPhotoAndIsNotWaitedFor() {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("pipe-" + UUID().uuidString)
        mkfifo(file.path, 0o600)
        defer { unlink(file.path) }
        #expect(PhotoFormat(of: file) == nil)
        #expect(PhotoFormat.contentType(of: file) == "application/octet-stream")
    }
}
