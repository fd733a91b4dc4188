import Foundation
import Testing

/// The house as drawn, against the house as built.
@Suite struct ArchitectureTests {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    struct Source {
        let module: String
        let path: String
        let lines: [Substring]
    }

    static func sources(in folder: String) throws -> [Source] {
        let base = root.appendingPathComponent(folder).path
        let paths = try FileManager.default.subpathsOfDirectory(atPath: base).filter { $0.hasSuffix(".swift") }
        return try paths.sorted().map { path in
            let text = try String(contentsOfFile: base + "/" + path, encoding: .utf8)
            return Source(
                module: String(path.split(separator: "/")[0]), path: folder + "/" + path,
                lines: text.split(separator: "\n", omittingEmptySubsequences: false))
        }
    }

    /// "import X", "@testable import X", "@_exported import struct X.Y": X.
    static func importedModule(_ line: Substring) -> String? {
        var words = line.split(separator: " ")
        while let first = words.first, first.hasPrefix("@") || first == "public" { words.removeFirst() }
        guard words.first == "import", words.count > 1 else { return nil }
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
        let name = kinds.contains(words[1]) ? words[2] : words[1]
        return String(name.split(separator: ".")[0])
    }

    @Test func arrowsPointOneWay() throws {
        for source in try Self.sources(in: "Sources") {
            for imported in source.lines.compactMap(Self.importedModule) where imported != source.module {
                let objection = House.objection(to: imported, in: source.module)
                #expect(objection == nil, "\(source.path): \(objection ?? "")")
            }
        }
    }

    @Test func theManifestSaysTheSame() throws {
        let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
        // One piece a target: its name, and all it depends on.
        let targets = manifest.components(separatedBy: "arget(").dropFirst()
        for (module, arrows) in House.arrows {
            let target = try #require(targets.first { $0.prefix(60).contains("name: \"\(module)\"") }, "no target \(module)")
            for arrow in arrows {
                let variable = ["GRDB": "grdb", "Crypto": "crypto", "ArgumentParser": "argumentParser"][arrow] ?? "\"\(arrow)\""
                #expect(target.contains(variable), "\(module) is drawn with an arrow to \(arrow), built without")
            }
        }
    }

    /// A check that cannot fail proves nothing.
    @Test func wrongArrowsAreSeen() {
        #expect(House.objection(to: "BackgroundAgent", in: "Stormy") != nil)
        #expect(House.objection(to: "CLibcurl", in: "BackgroundAgent") != nil)
        #expect(House.objection(to: "Dispatch", in: "BackgroundScheduling") != nil)
        #expect(House.objection(to: "StormyWeather", in: "BackgroundTasks") != nil)
        #expect(House.objection(to: "BackgroundLedger", in: "BackgroundAgent") == nil)
        #expect(Self.importedModule("@_exported import struct BackgroundRuntime.AppManifest") == "BackgroundRuntime")
        #expect(Self.importedModule("// import nothing") == nil)
    }

    @Test func filesAreReadInOneGo() throws {
        for source in try Self.sources(in: "Sources") {
            #expect(source.lines.count <= 400, "\(source.path) has \(source.lines.count) lines")
        }
    }

    @Test func nothingIsLeftOpen() throws {
        // In two halves, so that this file is not a finding itself.
        let words = ["TO" + "DO", "FIX" + "ME", "try" + "!", "fatalError(\"unimpl"]
        for source in try Self.sources(in: "Sources") {
            for (number, line) in source.lines.enumerated() {
                for word in words where line.contains(word) { Issue.record("\(source.path):\(number + 1): \(word)") }
                if line.contains("@unchecked Sendable"), !line.contains("because") {
                    Issue.record("\(source.path):\(number + 1): an unchecked promise without its reason")
                }
            }
        }
    }

    @Test func theAgentNeverTouchesTheGlobalPool() throws {
        let words = ["Task.sl" + "eep", ".global()", "Task {", "Task.detached", "DispatchQueue.main"]
        for source in try Self.sources(in: "Sources") where House.agentSide.contains(source.module) {
            for (number, line) in source.lines.enumerated() {
                for word in words where line.contains(word) { Issue.record("\(source.path):\(number + 1): \(word)") }
            }
        }
    }

    @Test func testsWaitForEvents() throws {
        let words = ["Task.sl" + "eep", "usl" + "eep(", "Thread.sl" + "eep", " sl" + "eep("]
        for source in try Self.sources(in: "Tests") {
            for (number, line) in source.lines.enumerated() {
                for word in words where line.contains(word) { Issue.record("\(source.path):\(number + 1): \(word)") }
            }
        }
    }
}
