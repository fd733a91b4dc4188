import Foundation
import Testing

@testable import BackgroundTransfer

/// Where an ordinary download collects.
@Suite struct PartFileTests {
    private func part(of bytes: [UInt8]) throws -> PartFile {
        let part = try PartFile()
        #expect(bytes.withUnsafeBytes { part.write($0) })
        return part
    }

    @Test func whatWasKeptIsTakenUp() throws {
        let kept = try part(of: [1, 2, 3, 4])
        defer { kept.remove() }
        let again = try #require(PartFile(token: kept.token, holding: 3))
        #expect(again.count == 3)
        #expect([UInt8]([9]).withUnsafeBytes { again.write($0) })
        #expect(try Data(contentsOf: kept.url) == Data([1, 2, 3, 9]))
    }

    /// After a power cut, or somebody who tidied up: going on would leave a hole.
    @Test func oneThatIsShorterThanItWasIsNotTakenUp() throws {
        let kept = try part(of: [1, 2, 3, 4])
        defer { kept.remove() }
        #expect(truncate(kept.url.path, 2) == 0)
        #expect(PartFile(token: kept.token, holding: 3) == nil)
        #expect(PartFile(token: kept.token, holding: 2) != nil)
    }

    /// Resume data that nobody uses: its part goes after a week, and nothing else does.
    @Test func oneThatNobodyCameBackForIsRemoved() throws {
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

    @Test(arguments: ["", "../../etc/passwd", "x"]) func aTokenLeadsNowhereElse(_ token: String) {
        #expect(PartFile(token: token, holding: 0) == nil)
    }
}
