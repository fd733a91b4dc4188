import Foundation
import Testing

/// Compares the tests with the list `EFFECTS` of the Makefile. `make check` runs after every change, and skips the tests in the
/// list because they need a process, a bus or a server.
@Suite struct MakefileTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Code that starts a process, a bus or a server.
    private static let effects = ["Process()", "ChildProcess(", "FaultyServer.start", "exitsWith", "ProcessLauncher("]

    @Test func `tests that need a process, a bus or a server are in the list EFFECTS`() throws {
        let makefile = try String(contentsOf: Self.root.appendingPathComponent("Makefile"), encoding: .utf8)
            .replacing("\\\n", with: " ")
        let line = try #require(makefile.split(separator: "\n").first { $0.hasPrefix("EFFECTS = ") })
        let leftOut = line.split(whereSeparator: \.isWhitespace).dropFirst(2).map { $0.split(separator: ".").map(String.init) }
        let targets = Set(leftOut.filter { $0.count == 1 }.map { $0[0] })
        var texts: [String: [String: String]] = [:]
        let tests = Self.root.appendingPathComponent("Tests")
        for path in try FileManager.default.subpathsOfDirectory(atPath: tests.path) where path.hasSuffix(".swift") {
            let target = String(path.prefix { $0 != "/" })
            guard target.hasSuffix("Tests"), target != "ArchitectureTests", !targets.contains(target) else { continue }
            texts[target, default: [:]][path] = try String(contentsOf: tests.appendingPathComponent(path), encoding: .utf8)
        }
        #expect(texts.count > 10, "the tests were not found")
        for (target, files) in texts {
            // A file may start processes, buses or servers if a suite of the list is in the file, or uses the file.
            let suites = leftOut.filter { $0.count == 2 && $0[0] == target }.map { $0[1] }
            let suiteTexts = files.values.filter { text in suites.contains { text.contains("struct \($0)") } }
            for suite in suites { #expect(suiteTexts.contains { $0.contains("struct \(suite)") }, "\(target) has no \(suite)") }
            for (path, text) in files where Self.effects.contains(where: text.contains) {
                let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
                let isLeftOut = suiteTexts.contains(text) || suiteTexts.contains { $0.contains(name) }
                #expect(isLeftOut, "\(path) is not in the Makefile's list EFFECTS")
            }
        }
    }
}
