import Foundation
import Testing

/// The house as it stands, held against the house as drawn.
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

    /// What modules are made of.
    private func sources() throws -> [SourceText] { try sources("Sources") + sources("Tests/Laboratory") }

    private func expectNone(_ findings: [String]) {
        #expect(findings.isEmpty, "\n\(findings.joined(separator: "\n"))")
    }

    @Test func theManifestFollowsTheArrows() throws {
        let manifest = try manifest()
        expectNone(checker.wrongArrows(in: manifest))
        let places = Set(try sources().compactMap { file in file.floor.map { [$0, file.target] } })
        #expect(places.count > 30)
        for place in places {
            #expect(manifest.floors.contains { $0.name == place[0] && $0.modules.contains(place[1]) }, "\(place)")
        }
    }

    @Test func everyImportIsDeclared() throws {
        let manifest = try manifest()
        let sources = try sources()
        #expect(sources.count > 100, "the sources were not found")
        expectNone(sources.flatMap { checker.wrongImports(in: $0, manifest: manifest) })
    }

    @Test func everySourceKeepsTheHouseRules() throws {
        expectNone(try sources().flatMap(checker.brokenRules))
    }

    @Test func everyFolderOfSourcesIsATarget() throws {
        let declared = Set(try manifest().targets.map(\.name))
        #expect(Set(try sources().map(\.target)).subtracting(declared) == [])
        // Real servers for the interop scripts, built as packages of their own; what only the thread sanitizer builds; GUI libraries that are
        // none, a folder each.
        #expect(Set(try sources("Tests").map(\.target)).subtracting(declared) == ["Interop", "Sanitizers", "StandIns"])
        #expect(Set(try sources("Tests/StandIns").map(\.standIn)).subtracting(declared) == [])
    }

    @Test func noDurableWriteIsSwallowed() throws { expectNone(try sources().flatMap(checker.swallowedWrites)) }

    @Test func `no program of ours ends by exit`() throws { expectNone(try sources().flatMap(checker.exits)) }

    @Test func `no path is shortened as text`() throws { expectNone(try sources().flatMap(checker.shortenedPaths)) }

    @Test func nothingIsClosedTwice() throws { expectNone(try sources().flatMap(checker.closedTwice)) }

    @Test func noTestSleeps() throws { expectNone(try sources("Tests").filter { $0.floor == nil }.flatMap(checker.sleeps)) }

    @Test func noTestEndsWhereTheMachineIsBusy() throws { expectNone(try sources("Tests").flatMap(checker.shortLimits)) }
}
