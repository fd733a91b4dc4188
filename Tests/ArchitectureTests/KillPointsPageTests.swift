import Foundation
import Testing

/// Compares the page of kill points with the kill points in the source.
@Suite struct KillPointsPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func `the page lists the kill points in the order of the source`() throws {
        let source = try text("Sources/Store/ProcessSupport/KillPoint.swift")
        let page = try text("Sources/TestKit/BackgroundTasksTesting/BackgroundTasksTesting.docc/KillPoints.md")
        let points = source.matches(of: /case \w+ = "([\w.]+)"/).map { String($0.1) }
        #expect(points.count > 20)
        #expect(page.matches(of: /\n\| `([\w.]+)` \|/).map { String($0.1) } == points)
    }
}
