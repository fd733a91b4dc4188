import ArgumentParser
import BackgroundCommands
import Dispatch
import FaultyServer
import Foundation
import Synchronization

struct RehearseVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse", abstract: "Runs every way in which work can be cancelled, and prints promised against seen.",
        discussion: """
            Each scenario has a throw-away home, a server on loopback that fails as told, and real processes that are really
            killed. Nothing of yours is touched, nothing is shown on your desktop. Exits 1 if a promise was not kept.

            Example:
              stormy rehearse
              stormy rehearse check-kill-9-of-both
              stormy rehearse --list
              stormy rehearse --serve half-way.txt    # a server that fails as that file tells, until Ctrl-C
            """)

    @Argument(help: "Names of scenarios, or the beginnings of some; all of them by default.") var scenarios: [String] = []
    @Flag(help: "Only explain them.") var list = false
    @Flag(help: "Print JSON.") var json = false
    @Option(
        help: ArgumentHelp("Keep each scenario's home and its server's log in this folder.", valueName: "folder"),
        completion: .directory) var keep: String?

    @Option(
        help: ArgumentHelp(
            "Only be a faulty server on loopback, as this script tells, and say what it is asked.", valueName: "script"),
        completion: .file()) var serve: String?

    /// Side by side: most of a scenario is waiting.
    private static let lanes = 4

    func run() async throws {
        if let serve { return try await Self.serve(serve, json: json) }
        let chosen = try choose()
        guard !list else { return try explain(chosen) }
        let folder = keep.map { URL(fileURLWithPath: $0) }
        if let folder { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
        let began = Date()
        let results = await play(chosen, keptIn: folder)
        if json {
            try Output.json(results)
        } else {
            let held = results.filter(\.held).count
            Output.line()
            Output.line("\(held) of \(results.count) held, in \(Int(Date().timeIntervalSince(began).rounded())) s.")
        }
        if results.contains(where: { !$0.held }) { throw ExitCode(1) }
    }

    private func choose() throws -> [Scenario] {
        guard !scenarios.isEmpty else { return Scenario.all }
        return try scenarios.flatMap { wanted in
            let found = Scenario.all.filter { $0.name == wanted }
            let chosen = found.isEmpty ? Scenario.all.filter { $0.name.hasPrefix(wanted) } : found
            guard !chosen.isEmpty else {
                throw CommandFailure(.notFound, "\(wanted): no such scenario; `stormy rehearse --list` names them")
            }
            return chosen
        }
    }

    private struct Explanation: Encodable {
        let scenario: String
        let work: String
        let cause: String
        let promised: String
    }

    private func explain(_ chosen: [Scenario]) throws {
        guard !json else {
            return try Output.json(
                chosen.map { Explanation(scenario: $0.name, work: $0.work.rawValue, cause: $0.cause, promised: $0.promise) })
        }
        for work in Scenario.Work.allCases {
            let rows = chosen.filter { $0.work == work }
            if rows.isEmpty { continue }
            Output.line(Output.bold(work.rawValue.prefix(1).uppercased() + work.rawValue.dropFirst()))
            for row in rows { Output.line("  \(row.name)\n      \(row.promise)") }
        }
    }

    /// Until it is interrupted.
    private static func serve(_ path: String, json: Bool) async throws {
        let file = URL(fileURLWithPath: path)
        guard let text = try? String(contentsOf: file, encoding: .utf8) else {
            throw CommandFailure(.notFound, "\(path): cannot be read as text")
        }
        let script: ScriptFile
        do throws(ScriptFile.Failure) {
            script = try ScriptFile(parsing: text, folder: file.deletingLastPathComponent())
        } catch {
            throw CommandFailure(.badData, "\(path):\(error.line): \(error.reason)")
        }
        let server = try await FaultyServer.start()
        server.serve(script)
        if json { try Output.json(["url": server.url]) } else { Output.line("Listening on \(server.url)") }
        var told = 0
        while true {
            let count = told
            // Each once it has ended, in the order of arrival.
            let activity = try await server.waitUntil(timeout: .seconds(86_400 * 365)) { activity in
                activity.requests.count > count && activity.requests[count].outcome != .open
            }
            let request = activity.requests[told]
            told += 1
            if json { try Output.json(request) } else { Output.line(Self.words(for: request)) }
        }
    }

    private static func words(for request: RecordedRequest) -> String {
        "\(request.method) \(request.target): \(request.bodyByteCount) bytes in, status "
            + (request.status.map(String.init) ?? "none") + ", \(request.bodyBytesSent) bytes out, \(request.outcome.rawValue)"
    }

    /// In their order, some at a time.
    private func play(_ chosen: [Scenario], keptIn folder: URL?) async -> [Scenario.Result] {
        var results: [Int: Scenario.Result] = [:]
        await withTaskGroup(of: (Int, Scenario.Result).self) { group in
            var next = 0
            func begin() {
                guard next < chosen.count else { return }
                let (index, scenario) = (next, chosen[next])
                next += 1
                group.addTask { (index, await Self.play(scenario, keptIn: folder)) }
            }
            for _ in 0..<Self.lanes { begin() }
            var said = 0
            for await (index, result) in group {
                results[index] = result
                while let result = results[said] {
                    if !json { say(result) }
                    said += 1
                }
                begin()
            }
        }
        return chosen.indices.compactMap { results[$0] }
    }

    private static func play(_ scenario: Scenario, keptIn folder: URL?) async -> Scenario.Result {
        let server: FaultyServer
        do {
            server = try await FaultyServer.start(logFile: folder?.appendingPathComponent("\(scenario.name).jsonl").path)
        } catch {
            return Scenario.Result(scenario: scenario.name, promised: scenario.promise, seen: "\(error)", held: false)
        }
        let (result, last) = await withCheckedContinuation { continuation in
            // It blocks: not on a thread that others' tasks need.
            Thread { continuation.resume(returning: scenario.play(on: server, keptIn: folder)) }.start()
        }
        await last.stop()
        return result
    }

    private func say(_ result: Scenario.Result) {
        Output.line("\(result.held ? "✓" : "✗") \(Output.bold(result.scenario))")
        Output.line("    promised  \(result.promised)")
        if !result.held { Output.line("    seen      \(result.seen)") }
    }
}
