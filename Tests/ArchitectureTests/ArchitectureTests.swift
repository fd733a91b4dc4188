import Foundation
import Testing

/// Compares the sources of the project with the designed architecture.
@Suite struct ArchitectureTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private let checker = ArchitectureChecker(house: .asDesigned)

    private func manifest() throws -> PackageManifest {
        try PackageManifest(source: String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8))
    }

    private func sources(_ folder: String) throws -> [SourceText] {
        let base = Self.root.appendingPathComponent(folder)
        let paths = try FileManager.default.subpathsOfDirectory(atPath: base.path).filter { $0.hasSuffix(".swift") }.sorted()
        return try paths.map { path in
            SourceText(
                path: "\(folder)/\(path)",
                text: try String(contentsOf: base.appendingPathComponent(path), encoding: .utf8))
        }
    }

    /// The sources of all modules, including the laboratory.
    private func sources() throws -> [SourceText] { try sources("Sources") + sources("Tests/Laboratory") }

    private func expectNone(_ findings: [String]) {
        #expect(findings.isEmpty, "\n\(findings.joined(separator: "\n"))")
    }

    @Test func `dependencies follow the layers, and each source folder is in its layer`() throws {
        let manifest = try manifest()
        expectNone(checker.wrongArrows(in: manifest))
        let places = Set(try sources().compactMap { file in file.floor.map { [$0, file.target] } })
        #expect(places.count > 30)
        for place in places {
            #expect(manifest.floors.contains { $0.name == place[0] && $0.modules.contains(place[1]) }, "\(place)")
        }
    }

    @Test func `each import is declared in the manifest and allowed in its module`() throws {
        let manifest = try manifest()
        let sources = try sources()
        #expect(sources.count > 100, "the sources were not found")
        expectNone(sources.flatMap { checker.wrongImports(in: $0, manifest: manifest) })
    }

    @Test func `each source file follows the rules of the project`() throws {
        expectNone(try sources().flatMap(checker.brokenRules))
    }

    @Test func `each source folder is a target of the manifest`() throws {
        let declared = Set(try manifest().targets.map(\.name))
        #expect(Set(try sources().map(\.target)).subtracting(declared) == [])
        // The folder Interop contains server programs, which are separate packages. The folder Sanitizers is built only with the
        // thread sanitizer. The folder StandIns contains one folder for each test double of a GUI library.
        #expect(Set(try sources("Tests").map(\.target)).subtracting(declared) == ["Interop", "Sanitizers", "StandIns"])
        #expect(Set(try sources("Tests/StandIns").map(\.stubTarget)).subtracting(declared) == [])
    }

    @Test func `no failure of a durable write is ignored`() throws { expectNone(try sources().flatMap(checker.swallowedWrites)) }

    @Test func `no program ends by a call of exit`() throws { expectNone(try sources().flatMap(checker.exits)) }

    @Test func `no path is shortened as text`() throws { expectNone(try sources().flatMap(checker.shortenedPaths)) }

    @Test func `no descriptor is closed both in init and in deinit`() throws {
        expectNone(try sources().flatMap(checker.closedTwice))
    }

    @Test func `no test sleeps`() throws { expectNone(try sources("Tests").filter { $0.floor == nil }.flatMap(checker.sleeps)) }

    @Test func `no time limit of a test is shorter than 30 minutes`() throws {
        expectNone(try sources("Tests").flatMap(checker.shortLimits))
    }
}
