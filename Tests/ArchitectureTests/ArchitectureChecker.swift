/// Compares the manifest and the sources with the designed architecture. Each finding is a sentence that contains the file and
/// the line.
struct ArchitectureChecker {
    var house: ArchitectureRules

    static let maximumLines = 400
    /// The maximum number of lines of `BackgroundAgentTool`, which connects the parts of the agent and has to be short.
    static let compositionRootLines = 120

    // MARK: Dependencies

    /// Finds modules that depend on a library without permission, and modules that depend on a higher layer.
    func wrongArrows(in manifest: PackageManifest) -> [String] {
        let floors = manifest.floors.enumerated().flatMap { number, floor in floor.modules.map { ($0, number) } }
        let floorOf = Dictionary(floors) { first, _ in first }
        return manifest.targets.filter { $0.kind != .testTarget }.flatMap { target in
            target.dependencies.compactMap { dependency in
                let arrow = "Package.swift: \(target.name) → \(dependency)"
                if let doors = house.doors[dependency], !doors.contains(target.name) { return "\(arrow) is a wrong arrow" }
                guard let own = floorOf[target.name], let other = floorOf[dependency], other > own else { return nil }
                return "\(arrow) leads upwards"
            }
        }
    }

    func wrongImports(in source: SourceText, manifest: PackageManifest) -> [String] {
        let declared = Set(manifest.target(source.target)?.dependencies ?? [])
        return source.imports.compactMap { found in
            let place = "\(source.path):\(found.line): import \(found.module)"
            let isPure = found.module == "Foundation" || found.module == source.target || house.pure.contains(found.module)
            if house.pure.contains(source.target), !isPure {
                return "\(place): a pure module imports Foundation and pure modules only"
            }
            let isKnown = declared.contains(found.module) || Self.system.contains(found.module)
            return isKnown ? nil : "\(place) is not declared in Package.swift"
        }
    }

    private static let system: Set<String> = [
        "Foundation", "FoundationNetworking", "Glibc", "Dispatch", "Synchronization", "Observation",
    ]

    // MARK: Rules

    /// Finds calls of `exit`. Stormy's programs end with `ProcessExit`, because `exit` runs the handlers of libraries while other
    /// threads run. The photo cleaner may call `exit`, because it has only one thread. Examples and test programs may call
    /// `exit`, because app authors do so.
    func exits(in source: SourceText) -> [String] {
        guard let floor = source.floor, !["TestKit", "Examples", "Laboratory"].contains(floor), source.target != "photo-cleaner"
        else {
            return []
        }
        return source.lines(with: "exit(").filter { number in
            let code = SourceText.code(of: source.lines[number - 1])
            return code.contains(/(^|[^\w.])exit\(|\b(Foundation|Glibc)\.exit\(/)
        }.map { "\(source.path):\($0): exit() runs handlers beside threads; use ProcessExit" }
    }

    func brokenRules(in source: SourceText) -> [String] {
        var findings: [String] = []
        let limit = source.target == "BackgroundAgentTool" ? Self.compositionRootLines : Self.maximumLines
        if source.lineCount > limit {
            findings.append("\(source.path): \(source.lineCount) lines, at most \(limit)")
        }
        for word in ["TODO", "FIXME", "try!", "@unchecked Sendable"] {
            for line in source.linesWithoutReason(word) {
                findings.append("\(source.path):\(line): \(word) without a reason (\"because …\")")
            }
        }
        findings += report(
            source, ["standardError.write(Data", "standardOutput.write(Data"], "ends the process if it cannot be written")
        findings += report(
            source, ["Mutex<" + "@Sendable", "Mutex<" + "(@Sendable"],
            "wraps the function again at each access, without a limit; protect a struct")
        // The module ServerScripts contains fake servers, and does not import ProcessSupport.
        if source.target != "ServerScripts" {
            findings += report(source, ["UUID" + "()"], "is zeros if too many files are open; use UUID.random()")
        }
        if house.agentSide.contains(source.target) {
            findings += report(
                source, ["Task." + "sleep", ".global()", "Task {", "Task.detached", "DispatchQueue.main"],
                "wakes an idle agent once a second for ever")
        }
        if house.pure.contains(source.target) {
            findings += report(
                source,
                [
                    "Date()", "Date.now", "FileManager", "ProcessInfo", "TimeZone.current", "Calendar.current",
                    ".random(", "UUID()", "Thread", "print(",
                ], "a pure module does not use a clock, random numbers, the disk or processes")
        }
        return findings
    }

    /// Finds durable writes whose errors are ignored. A durable write that fails has to be retried or reported.
    func swallowedWrites(in source: SourceText) -> [String] {
        guard source.floor == "API" || source.floor == "Stormy" else { return [] }
        return source.lines(with: "try? ").map { $0 - 1 }.filter { index in
            let code = SourceText.code(of: source.lines[index])
            guard let start = code.firstRange(of: "try? ") else { return false }
            // The call may be on the line after the `try?`.
            let next = index + 1 < source.lines.count ? SourceText.code(of: source.lines[index + 1]) : ""
            let rest = code[start.lowerBound...] + next
            return [".write {", ".commit {", ".commit(", "store.note", "store.end", "storing {"].contains { rest.contains($0) }
        }.map { "\(source.path):\($0 + 1): a durable write whose failure nobody hears of" }
    }

    /// Finds properties that are closed in `init` and in `deinit`. If an `init` fails after every property has a value, Swift
    /// also runs `deinit`. Both would then close the same descriptor. At the second close, the descriptor number may already
    /// belong to another file. An `init` that can fail has to close a local constant with the name of the property, and to assign
    /// the property last.
    func closedTwice(in source: SourceText) -> [String] {
        func block(from start: Int) -> ArraySlice<String> {
            let indent = source.lines[start].prefix { $0 == " " }
            let isOneLine = SourceText.code(of: source.lines[start]).last { $0 != " " } == "}"
            let end = isOneLine ? start : source.lines[start...].firstIndex { $0 == indent + "}" } ?? source.lines.count - 1
            return source.lines[start...end]
        }
        func starts(_ word: String) -> [Int] {
            source.lines.indices.filter { SourceText.code(of: source.lines[$0]).contains(word) }
        }
        let closed = starts("deinit {").flatMap { block(from: $0) }.flatMap { line in
            SourceText.code(of: line).matches(of: /\bclose\(([^()]+)\)/).map { String($0.1) }
        }
        guard !closed.isEmpty else { return [] }
        return starts(" init").flatMap { start -> [String] in
            let body = block(from: start).map(SourceText.code)
            return Set(closed).sorted().filter { name in
                body.contains { $0.contains("close(\(name))") }
                    && !body.contains { $0.contains("let \(name) =") || $0.contains("var \(name) =") }
            }.map { "\(source.path):\(start + 1): close(\($0)) here and in deinit" }
        }
    }

    /// Finds calls that remove `..` from a path by changing its text. If `link` is a symbolic link, the system interprets
    /// `link/..` as the parent of the link's target, and not as the folder of the link. Foundation removes `..` from a relative
    /// path.
    func shortenedPaths(in source: SourceText) -> [String] {
        let hasUserPaths = ["BackgroundCommands", "StormyCommand"].contains(source.target)
        return report(source, ["standardizingPath", ".standardized"], "use PathName")
            + (hasUserPaths ? report(source, ["URL(fileURLWithPath:", "URL(filePath:"], "use URL(exactPath:)") : [])
    }

    /// Finds tests that sleep. Instead of sleeping, a test has to wait for an event or for virtual time.
    func sleeps(in source: SourceText) -> [String] {
        // The apps in the folder `Apps` are written like real apps. These apps sleep between two attempts, on the clock of the
        // test.
        guard !source.path.hasPrefix("Tests/APICompileTests/Apps/") else { return [] }
        // Each word is written as two strings, so that the check does not report this file.
        let calls = ["sl" + "eep(", "Task.sl" + "eep", "async" + "After", "Thread.sl" + "eep"]
        // A sleep on the virtual clock takes no real time, so it is permitted.
        let virtual = Set(source.lines(with: "driver.clock.sl" + "eep("))
        return Set(calls.flatMap { source.lines(with: $0) }).subtracting(virtual).sorted().map {
            "\(source.path):\($0): a test sleeps"
        }
    }

    /// Finds time limits that are too short. A time limit ends a test that hangs. The tests share threads, so a short limit would
    /// make tests fail on a busy machine.
    func shortLimits(in source: SourceText) -> [String] {
        (1..<30).flatMap { source.lines(with: ".time" + "Limit(.minutes(\($0)))") }.map {
            "\(source.path):\($0): a time limit under 30 minutes"
        }
    }

    private func report(_ source: SourceText, _ words: [String], _ why: String) -> [String] {
        words.flatMap { word in source.lines(with: word).map { "\(source.path):\($0): \(word): \(why)" } }
    }
}
