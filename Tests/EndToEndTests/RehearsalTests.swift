import Foundation
import Testing

extension EndToEnd {
    /// What a person can rehearse on their own machine, rehearsed here.
    @Suite struct Rehearsals {
        @Test func everyPromiseIsKept() throws {
            let home = try Home()
            let result = try home.run("stormy", ["rehearse", "--json"])
            let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
            for row in rows where row["held"] as? Bool != true { Issue.record("\(row)") }
            #expect(result.status == 0)
            #expect(rows.count >= 40)
            #expect(Set(rows.compactMap { $0["scenario"] as? String }).count == rows.count)
            // Nothing of it touched the person's own home.
            #expect(!FileManager.default.fileExists(atPath: home.directories.ledger.path))
            try RehearsalPage.compare(home.rows("rehearse", "--list"), seen: rows)
        }

        @Test func someAreChosenByTheirNames() throws {
            let home = try Home()
            let kept = home.folder.appendingPathComponent("kept")
            let result = try home.stormy("rehearse", "upload-nothing-happens", "--keep", kept.path)
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("✓ upload-nothing-happens") && result.output.contains("1 of 1 held"))
            let names = try FileManager.default.contentsOfDirectory(atPath: kept.path).sorted()
            #expect(names.count == 2 && names.last == "upload-nothing-happens.jsonl", "\(names)")
            #expect(try home.run("stormy", ["rehearse", "no-such"]).status == 66)
            #expect(try home.rows("rehearse", "--list", "download-").count >= 10)
        }

        @Test func aServerFromTheShell() throws {
            let home = try Home()
            let script = home.folder.appendingPathComponent("script")
            try Data("GET /a\n  status 200\n  header Content-Length: 5\n  body hello\nthen\n  cut\n".utf8).write(to: script)
            let output = home.folder.appendingPathComponent("output")
            let descriptor = open(output.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(descriptor) }
            let server = try Child(
                Home.product("stormy"), ["rehearse", "--serve", script.path], environment: home.environment, output: descriptor)
            defer { server.end() }
            let said = try #require(FileWatch.wait(output.path) { $0.contains("Listening on ") && $0.contains("\n") })
            let line = try #require(said.split(separator: "\n").first { $0.hasPrefix("Listening on ") })
            let url = String(line.dropFirst("Listening on ".count)) + "/a"
            #expect(try Child.run("curl", ["-s", url], environment: home.environment).output == "hello")
            #expect(try Child.run("curl", ["-s", url], environment: home.environment).status == 52)
            let log = FileWatch.wait(output.path) { $0.contains("cutByScript") }
            #expect(log?.contains("GET /a: 0 bytes in, status 200, 5 bytes out, answered") == true, "\(log ?? "nothing")")
            let bad = home.folder.appendingPathComponent("bad")
            try Data("GET /a\n  jump\n".utf8).write(to: bad)
            let refused = try home.run("stormy", ["rehearse", "--serve", bad.path])
            #expect(refused.status == 65 && refused.errors.contains("bad:2: jump is no step"))
        }
    }
}

/// The page in the documentation is made of the scenarios. `WRITE_TABLES=1` writes it.
private enum RehearsalPage {
    static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/BackgroundTasks/BackgroundTasks.docc/Rehearsals.md")

    static func compare(_ explained: [[String: Any]], seen: [[String: Any]]) throws {
        var promised: [String: String] = [:]
        for row in seen { promised[row["scenario"] as? String ?? ""] = row["promised"] as? String }
        var page = """
            # What is promised when work is cut short

            Every scenario of `stormy rehearse`, with real processes that are really killed.

            Written by the test that plays them: `WRITE_TABLES=1 swift test --filter EndToEnd.Rehearsals.everyPromiseIsKept`.

            """
        var work = ""
        for row in explained {
            let name = row["scenario"] as? String ?? ""
            if work != row["work"] as? String {
                work = row["work"] as? String ?? ""
                page += "\n## While \(work)\n\n| what happens | promised | seen |\n| --- | --- | --- |\n"
            }
            let words = (promised[name] ?? "").split(separator: "[", maxSplits: 1)
            let sight = words.last.map { String($0.dropLast()).replacingOccurrences(of: " | ", with: ", or ") } ?? ""
            page += "| \(row["cause"] as? String ?? "") | \(row["promised"] as? String ?? "") | \(sight) |\n"
        }
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == page, "WRITE_TABLES=1 writes the page anew")
    }
}
