import Foundation
import Testing

/// The page of rules names the tests that hold them; a test that was renamed or dropped must not stand there.
@Suite struct RulesPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test(arguments: [
        ("Sources/API/BackgroundTasks/BackgroundTasks.docc/Rules.md", 40),
        ("Sources/API/BackgroundTransfer/BackgroundTransfer.docc/Sessions.md", 20),
        ("Sources/API/UserNotifications/UserNotifications.docc/Rules.md", 40),
    ])
    func everyTestItNamesIsThere(_ path: String, _ least: Int) throws {
        let page = Self.root.appendingPathComponent(path)
        // A peer's own tests are below that heading, and not in this package.
        let text = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n## Beside ")[0]
        let links = text.matches(of: /\[([^\[\]]+)\]\(\.\.\/\.\.\/\.\.\/\.\.\/([\w\/]+\.swift)\)/)
        #expect(links.count > least)
        for link in links {
            let file = Self.root.appendingPathComponent(String(link.2))
            let source = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
            let isThere = source.contains("func \(link.1)(") || source.contains("func `\(link.1)`(")
            #expect(isThere, "\(link.2) has no test \(link.1)")
        }
        // Every rule is held by a test, or says why by none.
        for row in text.split(separator: "\n")
        where row.hasPrefix("| ") && !row.hasPrefix("| ---") && !row.hasPrefix("| Apple's rule") {
            #expect(row.contains("](") || row.contains("(none: "), "\(row)")
        }
    }
}
