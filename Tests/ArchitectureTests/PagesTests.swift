import Foundation
import Testing

/// Tests that the top-level pages name only existing files, modules, types and targets.
@Suite struct PagesTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    private func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(path).path)
    }

    /// The text of all Swift files of the package.
    private static let code: String = ["Sources", "Tests"].flatMap { folder -> [String] in
        let base = root.appendingPathComponent(folder)
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: base.path)) ?? []
        return paths.filter { $0.hasSuffix(".swift") }.compactMap {
            try? String(contentsOf: base.appendingPathComponent($0), encoding: .utf8)
        }
    }.joined()

    @Test(arguments: ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
    func `each link of a page leads to an existing file`(_ page: String) throws {
        for link in try text(page).matches(of: /\]\(([^)#]+)\)/) where !link.1.hasPrefix("http") {
            #expect(exists(String(link.1)), "\(page): \(link.1)")
        }
    }

    @Test(arguments: ["README.md", "CHANGELOG.md", "Sources/Stormy/StormyCommand/Resources/Stormy-Info.plist"])
    func `a page and the manifest name the version of the package`(_ page: String) throws {
        let version = try #require(try text("Package.swift").firstMatch(of: /let released = "([^"]+)"/)).1
        #expect(try text(page).contains(version), "\(page): \(version)")
    }

    @Test func `each link of the documentation leads to an existing file`() throws {
        let sources = Self.root.appendingPathComponent("Sources").path
        var links = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources)
        where path.contains(".docc/") && path.hasSuffix(".md") {
            let folder = URL(fileURLWithPath: "Sources/" + path).deletingLastPathComponent().relativePath
            for link in try text("Sources/" + path).matches(of: /\]\(([^)#\s]+)/) where !link.1.hasPrefix("http") {
                links += 1
                #expect(exists("\(folder)/\(link.1)"), "\(path): \(link.1)")
            }
        }
        #expect(links > 50)
    }

    @Test(arguments: ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
    func `each file and symbol that a page names exists`(_ page: String) throws {
        var names = 0
        // `Sources/tide/` belongs to the app that the reader creates. `Tests/Documentation/readme.py` tests these names.
        for name in try text(page).matches(of: /`([\w.\/+-]+)`/).map({ String($0.1) }) where !name.hasPrefix("Sources/tide/") {
            if name.contains("/"), name.hasSuffix(".swift") || name.hasPrefix("Sources/") || name.hasPrefix("Tests/") {
                #expect(
                    exists(name) || exists("Sources/" + name) || exists("Sources/Agent/BackgroundAgent/" + name),
                    "\(page): \(name)")
                names += 1
            } else if let type = name.wholeMatch(of: /([A-Z]\w+)(?:\.(\w+))?/), !name.allSatisfy({ $0.isUppercase || $0 == "_" })
            {
                let (first, second) = (String(type.1), type.2.map(String.init) ?? "")
                #expect(Self.code.contains(first) || exists("Tests/" + first), "\(page): \(name)")
                #expect(second.isEmpty || Self.code.contains(second), "\(page): \(name)")
                names += 1
            }
        }
        #expect(names > 5)
    }

    @Test func `the architecture page names each module`() throws {
        let page = try text("ARCHITECTURE.md")
        let modules = try PackageManifest(source: text("Package.swift")).targets.filter { $0.kind != .testTarget }.map(\.name)
        for module in modules where !module.hasPrefix("fuzz-") && module != "SanitizedSynchronization" {
            // If a program has only one line, the page names the module that the program starts, and not the program.
            let isThin = ["stormy"].contains(module)
            #expect(isThin || page.contains("`\(module)`"), "\(module)")
        }
    }
}
