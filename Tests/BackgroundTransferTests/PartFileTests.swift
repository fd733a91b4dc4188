import Foundation
import Testing

@testable import BackgroundTransfer

/// Tests of the partial file that collects the bytes of an ordinary download.
@Suite struct PartFileTests {
    private func part(of bytes: [UInt8]) throws -> PartFile {
        let part = try PartFile()
        #expect(bytes.withUnsafeBytes { part.write($0) })
        return part
    }

    @Test func `a kept part file is continued at the given length`() throws {
        let kept = try part(of: [1, 2, 3, 4])
        defer { kept.remove() }
        let again = try #require(PartFile(token: kept.token, holding: 3))
        #expect(again.count == 3)
        #expect([UInt8]([9]).withUnsafeBytes { again.write($0) })
        #expect(try Data(contentsOf: kept.url) == Data([1, 2, 3, 9]))
    }

    /// After a power failure or a cleanup, the file can be too short. If the download continued with this file, the file would
    /// have a hole.
    @Test func `a part file that is too short is not continued`() throws {
        let kept = try part(of: [1, 2, 3, 4])
        defer { kept.remove() }
        #expect(truncate(kept.url.path, 2) == 0)
        #expect(PartFile(token: kept.token, holding: 3) == nil)
        #expect(PartFile(token: kept.token, holding: 2) != nil)
    }

    /// Newer partial files, and files of other kinds, are not removed.
    @Test func `an unused part file is removed after a week`() throws {
        let (old, new) = (try part(of: [1]), try part(of: [2]))
        let other = old.url.deletingLastPathComponent().appendingPathComponent("download-mine.part")
        defer { for file in [old.url, new.url, other] { unlink(file.path) } }
        try Data([3]).write(to: other)
        for file in [old.url, other] {
            let week = timeval(tv_sec: Int(Date().timeIntervalSince1970) - 8 * 86_400, tv_usec: 0)
            #expect(utimes(file.path, [week, week]) == 0)
        }
        PartFile.removeOld()
        #expect([old.url, new.url, other].map { access($0.path, F_OK) == 0 } == [false, true, true])
    }

    @Test(arguments: ["", "../../etc/passwd", "x"]) func `an invalid token opens no part file`(_ token: String) {
        #expect(PartFile(token: token, holding: 0) == nil)
    }
}
