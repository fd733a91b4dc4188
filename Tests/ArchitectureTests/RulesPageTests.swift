import Foundation
import Testing

/// Tests that the pages of rules name only existing tests. The test fails if a page names a test that was renamed or removed.
@Suite struct RulesPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test(arguments: [
        ("Sources/API/BackgroundTasks/BackgroundTasks.docc/Rules.md", 40),
        ("Sources/API/BackgroundTransfer/BackgroundTransfer.docc/Sessions.md", 20),
        ("Sources/API/UserNotifications/UserNotifications.docc/Rules.md", 40),
    ])
    func `each test that the page names exists, and each rule has a test or a reason`(_ path: String, _ least: Int) throws {
        let page = Self.root.appendingPathComponent(path)
        // The tests after this heading belong to another package.
        let text = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n## Beside ")[0]
        let links = text.matches(of: /\[([^\[\]]+)\]\(\.\.\/\.\.\/\.\.\/\.\.\/([\w\/]+\.swift)\)/)
        #expect(links.count > least)
        for link in links {
            let file = Self.root.appendingPathComponent(String(link.2))
            let source = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
            let isThere = source.contains("func \(link.1)(") || source.contains("func `\(link.1)`(")
            #expect(isThere, "\(link.2) has no test \(link.1)")
        }
        // Each rule names a test, or a reason why no test is possible.
        for row in text.split(separator: "\n")
        where row.hasPrefix("| ") && !row.hasPrefix("| ---") && !row.hasPrefix("| Apple's rule") {
            #expect(row.contains("](") || row.contains("(none: "), "\(row)")
        }
    }
}
