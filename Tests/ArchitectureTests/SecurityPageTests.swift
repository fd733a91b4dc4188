import Foundation
import Testing

/// Tests that each promise of SECURITY.md names its tests.
@Suite struct SecurityPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static let tests: Set<String> = {
        let folder = root.appendingPathComponent("Tests")
        var names: Set<String> = []
        for path in FileManager.default.enumerator(atPath: folder.path)?.compactMap({ $0 as? String }) ?? []
        where path.hasSuffix(".swift") {
            guard let text = try? String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8) else { continue }
            for match in text.matches(of: /func (?:(\w+)|`([^`]+)`)\(/) { names.insert(String(match.1 ?? match.2!)) }
        }
        return names
    }()

    private static func promises(_ text: String) -> [String] {
        text.matches(of: /^- .*?(?=\n- |\n\n|\n?\z)/.anchorsMatchLineEndings().dotMatchesNewlines()).map { String($0.0) }
    }

    /// Returns the tests after the dash of a promise. The list is empty if the promise has no dash.
    private static func tests(of promise: String) -> [String] {
        guard let dash = promise.range(of: "—", options: .backwards) else { return [] }
        return promise[dash.upperBound...].matches(of: /`([^`]+)`/).map { match in
            match.1.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
    }

    @Test func `each promise names tests that exist`() throws {
        let promises = Self.promises(try String(contentsOf: Self.root.appendingPathComponent("SECURITY.md"), encoding: .utf8))
        #expect(promises.count > 20)
        for promise in promises {
            let names = Self.tests(of: promise)
            #expect(!names.isEmpty, "\(promise)")
            for name in names { #expect(Self.tests.contains(name), "\(name): \(promise)") }
        }
    }

    @Test func `a promise without a test is found`() {
        #expect(Self.tests(of: "- Nothing listens.") == [])
        #expect(Self.promises("- a\n  b\n- c — `d`\n\nend") == ["- a\n  b", "- c — `d`"])
    }
}
