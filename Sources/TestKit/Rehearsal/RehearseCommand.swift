import ArgumentParser
import BackgroundCommands
import CLinux
import Dispatch
import FaultyServer
import Foundation
import Glibc
import ProcessSupport

struct RehearseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "Interrupts work in every way, and checks each result.",
        discussion: """
            Each scenario has a temporary home, a server on this computer that fails as
            the scenario requires, and real processes that are killed. Your files are not
            changed, and nothing is shown on your desktop. If you interrupt the command,
            it removes its files. The exit code is 1 if a promise was not kept.

            Example:
              stormy rehearse
              stormy rehearse check-kill-9-of-both
              stormy rehearse --list
              stormy rehearse --serve half-way.txt

            With --serve the command is a server that fails as a script describes, until
            you press Ctrl-C. It prints the address of the server, and a line for each
            request that has ended. With --json each line is a JSON document (JSON Lines).
            The first document is {"url": …}. If the script has "greet https", the first
            document also has the certificate of the authority that clients have to trust,
            as PEM ("certificateAuthority").

            \(ScriptFile.grammar)
            """)

    @Argument(help: "The names of scenarios, or the beginnings of names. Default: all scenarios.") var scenarios: [String] = []
    @Flag(help: "Only list the scenarios and their promises.") var list = false
    @Flag(help: "Print JSON. With --serve, print one JSON document in each line.") var json = false
    @Option(
        help: ArgumentHelp("Keep each scenario's home and its server's log in this folder.", valueName: "folder"),
        completion: .directory) var keep: String?

    @Option(
        help: ArgumentHelp(
            "Only run a faulty server, as this script describes, and print the requests of its clients.", valueName: "script"),
        completion: .file()) var serve: String?

    /// The number of scenarios that run in parallel. A scenario mostly waits.
    private static let lanes = 4

    func validate() throws {
        if keep?.isEmpty == true { throw ValidationError("--keep expects the name of a folder") }
        if scenarios.contains("") { throw ValidationError("the name of a scenario is empty; without names, all scenarios run") }
        if serve != nil, list || keep != nil || !scenarios.isEmpty {
            throw ValidationError("--serve can be used with --json only")
        }
    }

    func run() async throws {
        if let serve { return try await ServedScript(path: serve, json: json).run() }
        let chosen = try choose()
        guard !list else { return try explain(chosen) }
        let folder = keep.map { URL(exactPath: $0) }
        let interruptions = Cleanup.shared.watchForInterruptions()
        defer { for source in interruptions { source.cancel() } }
        try Self.checkThatThereIsRoom(for: chosen.count, keptIn: folder)
        let began = Date()
        let results = try await play(chosen, keptIn: folder)
        if json {
            try Output.json(results)
        } else {
            let held = results.filter(\.held).count
            Output.line()
            Output.line("\(held) of \(results.count) passed in \(Int(Date().timeIntervalSince(began).rounded())) s.")
        }
        if results.contains(where: { !$0.held }) { throw ExitCode(1) }
    }

    /// Returns the chosen scenarios, without duplicates.
    private func choose() throws -> [Scenario] {
        guard !scenarios.isEmpty else { return Scenario.all }
        var names: Set<String> = []
        return try scenarios.flatMap { wanted in
            let found = Scenario.all.filter { $0.name == wanted }
            let chosen = found.isEmpty ? Scenario.all.filter { $0.name.hasPrefix(wanted) } : found
            guard !chosen.isEmpty else {
                throw CommandFailure(.notFound, "no scenario is named \(wanted). `stormy rehearse --list` lists the scenarios")
            }
            return chosen.filter { names.insert($0.name).inserted }
        }
    }

    private struct Explanation: Encodable {
        let scenario: String
        let work: String
        let cause: String
        let promised: String
        let expected: [String]

        init(_ scenario: Scenario) {
            self.scenario = scenario.name
            (work, cause) = (scenario.work.rawValue, scenario.cause)
            (promised, expected) = (scenario.promise, scenario.expects)
        }
    }

    private func explain(_ chosen: [Scenario]) throws {
        guard !json else { return try Output.json(chosen.map(Explanation.init)) }
        for work in Scenario.Work.allCases {
            let rows = chosen.filter { $0.work == work }
            if rows.isEmpty { continue }
            Output.line(Output.bold(work.rawValue.prefix(1).uppercased() + work.rawValue.dropFirst()))
            for row in rows { Output.line("  \(row.name)\n      \(row.promise)") }
        }
    }

    // MARK: Before the first scenario

    /// Checks the folder once, before the first scenario. A missing folder or a full disk must not be reported as a broken
    /// promise.
    private static func checkThatThereIsRoom(for count: Int, keptIn folder: URL?) throws {
        if let folder {
            do {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            } catch {
                throw CommandFailure(cannotWriteIn: folder, error)
            }
        }
        try RehearsalControl().close()
        let place = folder ?? FileManager.default.temporaryDirectory
        var information = statvfs()
        guard statvfs(place.path, &information) == 0 else {
            throw CommandFailure(.cannotCreate, "\(place.path): \(String(cString: strerror(errno)))")
        }
        let free = Int64(clamping: information.f_bavail).multipliedReportingOverflow(by: Int64(clamping: information.f_frsize))
        let wanted = Int64((folder == nil ? min(count, lanes) : count) * Rehearsal.spaceNeeded)
        guard free.overflow || free.partialValue >= wanted else {
            throw CommandFailure(
                .cannotCreate,
                "\(place.path): only \(Output.bytes(free.partialValue)) are free, and the scenarios need \(Output.bytes(wanted))")
        }
    }

    // MARK: Playing

    /// Runs the scenarios in their order, some at a time.
    ///
    /// - Throws: The error that prevented the setup of a scenario. The error is thrown after all running scenarios have ended.
    private func play(_ chosen: [Scenario], keptIn folder: URL?) async throws -> [Scenario.Result] {
        var results: [Int: Scenario.Result] = [:]
        try await withThrowingTaskGroup(of: (Int, Scenario.Result).self) { group in
            var next = 0
            func begin() {
                guard next < chosen.count else { return }
                let (index, scenario) = (next, chosen[next])
                next += 1
                group.addTask { (index, try await Self.play(scenario, keptIn: folder)) }
            }
            for _ in 0..<Self.lanes { begin() }
            var said = 0
            for try await (index, result) in group {
                results[index] = result
                while let result = results[said] {
                    if !json { print(result) }
                    said += 1
                }
                begin()
            }
        }
        return chosen.indices.compactMap { results[$0] }
    }

    private static func play(_ scenario: Scenario, keptIn folder: URL?) async throws -> Scenario.Result {
        let log = folder.map { Self.newFile(scenario.name, in: $0) }
        let server: FaultyServer
        do {
            server = try await FaultyServer.start(logFile: log?.path)
        } catch {
            guard let log else { throw CommandFailure(.unavailable, "no server can listen on loopback: \(error)") }
            throw CommandFailure(cannotWriteIn: log, error)
        }
        do {
            let (result, last) = try await onThread { try scenario.play(on: server, keptIn: folder) }
            await last.stop()
            return result
        } catch {
            await server.stop()
            throw error
        }
    }

    /// Returns a log file that no earlier or parallel run writes to.
    private static func newFile(_ name: String, in folder: URL) -> URL {
        for number in 1..<10_000 {
            let file = folder.appendingPathComponent(number == 1 ? "\(name).jsonl" : "\(name)-\(number).jsonl")
            let descriptor = clinux_open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if descriptor >= 0 {
                close(descriptor)
                return file
            }
            if errno != EEXIST { return file }
        }
        return folder.appendingPathComponent("\(name)-\(UUID.random().uuidString).jsonl")
    }

    /// Runs a blocking function on its own thread, because other tasks need the shared threads.
    private static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            let thread = Thread {
                let outcome: Result<Value, any Error> = Result { try body() }
                continuation.resume(with: outcome)
            }
            thread.start()
        }
    }

    private func print(_ result: Scenario.Result) {
        Output.line("\(result.held ? "PASS" : "FAIL") \(Output.bold(result.scenario))")
        Output.line("    promised  \(result.promised)")
        if !result.held { Output.line("    expected  \(result.expected.joined(separator: " | "))") }
        Output.line("    result    \(result.seen)")
    }
}
