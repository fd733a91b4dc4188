import Foundation
import Testing

@testable import Stormy

@Suite struct PhotoFormatTests {
    /// Opening a named pipe must not block, because no writer may ever open the pipe.
    @Test func `a named pipe is not a photo and does not block`() {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("pipe-" + UUID().uuidString)
        mkfifo(file.path, 0o600)
        defer { unlink(file.path) }
        #expect(PhotoFormat(of: file) == nil)
        #expect(PhotoFormat.contentType(of: file) == "application/octet-stream")
    }
}
