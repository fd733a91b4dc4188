import Testing

/// Tests that the checker finds each kind of violation.
@Suite struct CheckerTests {
    private let checker = ArchitectureChecker(house: .asDesigned)

    private func manifest(_ targets: String, floors: String = "") throws -> PackageManifest {
        try PackageManifest(
            source: floors + """
                let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
                let package = Package(
                    name: "stormy",
                    products: [.library(name: "BackgroundTasks", targets: ["BackgroundTasks"])],
                    targets: [
                \(targets)
                    ]
                )
                """)
    }

    private func source(_ path: String, _ text: String) -> SourceText { SourceText(path: path, text: text) }

    @Test func `targets of each kind are read from the manifest`() throws {
        let read = try manifest(
            """
            .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
            .target(name: "CLinux"),
            // .target(name: "Ghost"),
            .target(
                name: "Stormy",  // with its own store
                dependencies: ["BackgroundTasks", grdb, .product(name: "NIOCore", package: "swift-nio")],
                swiftSettings: strict),
            .testTarget(name: "StormyTests", dependencies: ["Stormy"]),
            """)
        #expect(
            read.targets == [
                .init(kind: .systemLibrary, name: "CLibcurl", dependencies: []),
                .init(kind: .target, name: "CLinux", dependencies: []),
                .init(kind: .target, name: "Stormy", dependencies: ["BackgroundTasks", "GRDB", "NIOCore"]),
                .init(kind: .testTarget, name: "StormyTests", dependencies: ["Stormy"]),
            ])
    }

    @Test func `a dependency of an unknown form is an error`() {
        #expect(throws: PackageManifest.Unreadable.self) {
            try manifest(#".target(name: "Stormy", dependencies: [somethingElse])"#)
        }
    }

    @Test func `a dependency on a higher layer or on a restricted library is found`() throws {
        let floors = """
            let layers: [(name: String, modules: [String])] = [
                ("Core", ["BackgroundScheduling"]),
                (
                    "Store", [
                        "BackgroundLedger", "Spool",
                    ]
                ),
            ]

            """
        func findings(_ targets: String) throws -> [String] {
            checker.wrongArrows(in: try manifest(targets, floors: floors))
        }
        #expect(
            try findings(#".target(name: "BackgroundScheduling", dependencies: ["BackgroundLedger"]),"#) == [
                "Package.swift: BackgroundScheduling → BackgroundLedger leads upwards"
            ])
        #expect(try findings(#".target(name: "BackgroundLedger", dependencies: ["BackgroundScheduling", "Spool", grdb]),"#) == [])
        #expect(
            try findings(#".target(name: "BackgroundRuntime", dependencies: [grdb]),"#) == [
                "Package.swift: BackgroundRuntime → GRDB is a wrong arrow"
            ])
    }

    @Test func `an import of a module that is not a declared dependency is found`() throws {
        let drawn = try manifest(
            """
            .target(name: "BackgroundAgent", dependencies: ["BackgroundLedger"]),
            .target(name: "BackgroundLedger", dependencies: ["BackgroundScheduling", grdb]),
            .target(name: "BackgroundScheduling"),
            """)
        func findings(_ text: String) -> [String] {
            checker.wrongImports(in: source("Sources/Agent/BackgroundAgent/A.swift", text), manifest: drawn)
        }
        #expect(
            findings("import Foundation\nimport CurlTransport\n")
                == ["Sources/Agent/BackgroundAgent/A.swift:2: import CurlTransport is not declared in Package.swift"])
        #expect(findings("@preconcurrency import GRDB").count == 1)
        #expect(findings("@_exported import struct Stormy.Place").count == 1)
        #expect(findings("import BackgroundLedger") == [])
        #expect(findings("import BackgroundScheduling").count == 1, "not declared, only reached")
        #expect(findings("  internal import Mystery").count == 1)
    }

    @Test(arguments: ["Glibc", "CLinux", "Dispatch", "FoundationNetworking", "FoundationXML", "BackgroundLedger"])
    func `an impure import in a pure module is found`(_ module: String) throws {
        let found = checker.wrongImports(
            in: source("Sources/Core/TransferMachines/M.swift", "import \(module)"), manifest: try manifest(""))
        #expect(
            found == [
                "Sources/Core/TransferMachines/M.swift:1: import \(module): a pure module imports Foundation and pure modules only"
            ])
    }

    @Test func `files that are too long and forbidden code are found`() {
        func count(_ path: String, _ text: String) -> Int { checker.brokenRules(in: source(path, text)).count }
        let agent = "Sources/Agent/BackgroundAgent/A.swift"
        #expect(count(agent, String(repeating: "\n", count: 400)) == 0)
        #expect(count(agent, String(repeating: "\n", count: 401)) == 1)
        #expect(count("Sources/Agent/BackgroundAgentTool/T.swift", String(repeating: "\n", count: 121)) == 1)
        #expect(count(agent, "// TO" + "DO: later") == 1)
        #expect(count(agent, "FileHandle.standardError.write(Data(text.utf8))") == 1)
        #expect(count(agent, "try? FileHandle.standardError.write(contentsOf: Data(text.utf8))") == 0)
        #expect(count(agent, "let x = try" + "! y()") == 1)
        #expect(count(agent, "let x = try" + "! y()  // because the pattern is a constant") == 0)
        #expect(count(agent, "final class A: @unchecked" + " Sendable {}") == 1)
        #expect(count(agent, "// because a lock guards it\nfinal class A: @unchecked" + " Sendable {}") == 0)
        #expect(count(agent, "DispatchQueue.global().async {}") == 1)
        #expect(count(agent, "// never DispatchQueue.global()") == 0)
        #expect(count("Sources/API/BackgroundTasks/A.swift", "DispatchQueue.global().async {}") == 0)
        #expect(count("Sources/Core/BackgroundScheduling/A.swift", "let now = Date()") == 1)
        #expect(count("Sources/Core/BackgroundScheduling/A.swift", "let then = Date(timeIntervalSince1970: 0)") == 0)
    }

    @Test func `a durable write whose failure is ignored is found`() {
        func count(_ text: String) -> Int {
            checker.swallowedWrites(in: source("Sources/API/BackgroundTasks/A.swift", text)).count
        }
        #expect(count("_ = try" + "? runtime.commit { $0.x() }") == 1)
        #expect(count("try" + "? AppRuntime.shared.ledger()\n    .write { $0.x() }") == 1)
        #expect(count("let rows = try" + "? ledger.read { $0.x() }") == 0)
        #expect(count("try ledger.write { $0.x() }") == 0)
    }

    @Test(arguments: [
        ("exit(0)", 1), ("Foundation.exit(code)", 1), ("guard let role else { exit(code) }", 1), ("_exit(code)", 0),
        ("process.exit(.exited(0))", 0), ("// exit(0)", 0),
    ])
    func `a call of exit is found`(_ line: String, _ count: Int) {
        #expect(checker.exits(in: source("Sources/API/BackgroundTasks/A.swift", line)).count == count)
        #expect(checker.exits(in: source("Tests/Laboratory/simulate/main.swift", line)).isEmpty)
    }

    @Test(arguments: ["", "let ", "var "])
    func `a property that is closed in init and in deinit is found unless a local value hides it`(_ declaration: String) {
        let text = """
            struct A: ~Copyable {
                private let one: Int32
                init?(_ path: String) {
                    \(declaration)one = open(path, 0)
                    guard one >= 0 else {
                        close(one)
                        return nil
                    }
                }
                deinit { close(one) }
            }
            """
        #expect(checker.closedTwice(in: source("Sources/A.swift", text)).count == (declaration.isEmpty ? 1 : 0))
    }

    @Test(arguments: [
        ("let path = file.standardizedFileURL.path", 1, 1), ("NSString(string: path).standardizingPath", 1, 1),
        ("let file = URL(fileURLWithPath: path)", 1, 0), ("let file = URL(exactPath: path)", 0, 0),
        ("// standardizedFileURL", 0, 0),
    ])
    func `a path that is shortened as text is found`(_ line: String, _ inCommand: Int, _ elsewhere: Int) {
        #expect(checker.shortenedPaths(in: source("Sources/Stormy/StormyCommand/A.swift", line)).count == inCommand)
        #expect(checker.shortenedPaths(in: source("Sources/API/BackgroundTransfer/A.swift", line)).count == elsewhere)
    }

    @Test func `a sleep is found in code, but not in a string or a comment`() {
        let text = "try await Task.sl" + "eep(for: .seconds(1))\nusl" + "eep(3)\nlet text = \"sl" + "eep(3)\"  // sl" + "eep(3)\n"
        #expect(checker.sleeps(in: source("Tests/ATests/A.swift", text)).count == 2)
    }

    @Test func `a time limit under 30 minutes is found`() {
        let text = "@Suite(.time" + "Limit(.minutes(5)))\n@Suite(.time" + "Limit(.minutes(30)))\n"
        #expect(checker.shortLimits(in: source("Tests/ATests/A.swift", text)).count == 1)
    }
}
