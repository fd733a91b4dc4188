import Foundation
import Testing

/// Tests that the pages show code that is compiled and tested.
@Suite struct PageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    private func blocks(of page: String) throws -> [String] {
        try text("Sources/API/BackgroundScenes/BackgroundScenes.docc/\(page).md").matches(
            of: /```swift\n(.*?)```/.dotMatchesNewlines()
        )
        .map { String($0.1) }
    }

    /// The page imports the real library instead of its test double. The import lines of the page are in alphabetical order.
    @Test(arguments: ["crossui-example/Bridge", "crossui-example/TideApp", "adwaita-example/Bridge", "adwaita-example/TideApp"])
    func `the page shows the code of the examples`(_ file: String) throws {
        var lines = try text("Tests/StandIns/\(file).swift").replacing("import StandIn", with: "import ").split(
            separator: "\n", omittingEmptySubsequences: false)
        let imports = lines.prefix { $0.hasPrefix("import ") }.count
        lines[..<imports].sort()
        #expect(try blocks(of: "BesideAGUI").contains(lines.joined(separator: "\n")), "\(file) is not on the page")
    }

    @Test func `the page shows the delegate of the sample`() throws {
        let sample = try text("Tests/BackgroundScenesTests/DelegateSample.swift")
        let start = try #require(sample.range(of: "final class AppDelegate"))
        let end = try #require(sample.range(of: "\n}\n", range: start.lowerBound..<sample.endIndex))
        let shown = "import BackgroundScenes\n\n@main\n" + sample[start.lowerBound..<end.upperBound]
        #expect(try blocks(of: "FromUIApplicationDelegate").contains(shown))
    }
}
