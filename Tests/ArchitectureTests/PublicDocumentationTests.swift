import Foundation
import Testing

/// Tests the documentation of the modules that app authors import.
@Suite struct PublicDocumentationTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static let modules = [
        "API/BackgroundTasks", "API/BackgroundTransfer", "API/UserNotifications", "API/BackgroundScenes",
        "API/BackgroundCommands",
        "TestKit/BackgroundTasksTesting", "TestKit/ServerScripts", "TestKit/FaultyServer",
    ]

    /// Declarations whose documentation is inherited from protocols of Swift, delegates of Apple, or commands of ArgumentParser.
    private static let inherited = [
        "var body:", "static func ==", "func hash(into", "var description", "let rawValue", "init(rawValue:", "func encode(to",
        "init(from decoder", "static var errorDomain", "var errorCode", "var errorUserInfo", "var errorDescription",
        "static let configuration", "func perform()", "func run()", "init() {}", "func urlSession",
        "func userNotificationCenter(", "var effect: CommandEffect {",
    ]

    @Test(arguments: modules) func `each public symbol is documented, including its errors`(_ module: String) throws {
        let base = Self.root.appendingPathComponent("Sources/" + module)
        let declaration =
            /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:public|open) (?!extension|import)(?:\w+(?:\(set\))? )*?(?:struct|enum|class|protocol|actor|func|var|let|init|subscript|typealias)\b/
        var count = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: base.path) where path.hasSuffix(".swift") {
            let lines = try String(contentsOf: base.appendingPathComponent(path), encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            for (index, line) in lines.enumerated() where line.contains("public ") || line.contains("open ") {
                guard line.prefixMatch(of: declaration) != nil, !line.contains("override ") else { continue }
                count += 1
                if Self.inherited.contains(where: line.contains) { continue }
                let documentation = Self.documentation(above: index, in: lines)
                #expect(!documentation.isEmpty, "\(module)/\(path):\(index + 1): \(line.trimmingCharacters(in: .whitespaces))")
                guard Self.signature(from: index, in: lines).contains(" throws") else { continue }
                #expect(documentation.contains("- Throws:"), "\(module)/\(path):\(index + 1): which errors?")
            }
        }
        #expect(count > 0, "nothing public was found")
    }

    /// Returns the documentation of a declaration. Attributes may be between the documentation and the declaration.
    private static func documentation(above index: Int, in lines: [String]) -> String {
        var place = index - 1
        func text(_ place: Int) -> String { lines[place].trimmingCharacters(in: .whitespaces) }
        while place >= 0, text(place).hasPrefix("@") || text(place).hasPrefix("nonisolated") { place -= 1 }
        var found: [String] = []
        while place >= 0, text(place).hasPrefix("///") {
            found.append(text(place))
            place -= 1
        }
        return found.joined(separator: "\n")
    }

    /// Returns the declaration without its body.
    private static func signature(from index: Int, in lines: [String]) -> String {
        var found = ""
        for line in lines[index..<min(index + 8, lines.count)] {
            found += " " + line
            if line.contains("{") || line.contains(" = ") { break }
        }
        return String(found.prefix { $0 != "{" })
    }
}
