@testable import BackgroundLedger
import Foundation
import Testing

/// A home with the app "proving ground". The app does what a test requests, and its handlers log what they did.
final class ProvingHome {
    let home: Home
    private let log: URL

    init(desktop: Desktop? = nil, system: SystemServices? = nil) throws {
        home = try Home(desktop: desktop, app: "proving-ground")
        log = home.folder.appendingPathComponent("handlers.log")
        // The file exists from the start, because a missing file cannot be watched.
        try Data().write(to: log)
        home.environment["PROVING_LOG"] = log.path
        home.environment["PROVING_FOLDER"] = home.folder.path
        home.environment.merge(system?.environment ?? [:]) { $1 }
    }

    @discardableResult
    func run(_ arguments: String...) throws -> Child.Result { try home.run("proving-ground", arguments) }

    /// The lines that the handlers have written.
    var lines: [String] {
        ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    /// Waits until a handler has written this line.
    func waitForLine(_ line: String) throws {
        guard FileWatch.wait(log.path, until: { $0.contains(line + "\n") }) != nil else {
            throw Desktop.Trouble("no handler wrote \"\(line)\", but \(lines); \(home.log)")
        }
    }

    func rows(_ verb: String) throws -> [[String: Any]] {
        let result = try run("background", verb, "--json")
        return try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
    }

    /// Returns a condition of the only pending request, from the output of `why`.
    func condition(_ name: String) throws -> [String: Any] {
        let conditions = try rows("why").first?["conditions"] as? [[String: Any]] ?? []
        return try #require(conditions.first { $0["name"] as? String == name }, "\(conditions)")
    }

    /// Returns the history, oldest first. Each entry is "kind identifier outcome".
    func history() throws -> [String] {
        try rows("history").map {
            "\($0["kind"] ?? "") \($0["identifier"] ?? "") \($0["outcome"] as? String ?? "running")"
        }
    }

    /// Starts an export that takes one step for each byte in the pipe. The export runs while the test continues.
    func beginExport(_ identifier: String, steps: Int, pipe: StepPipe) throws -> Child {
        var environment = home.environment
        environment["PROVING_STEPS"] = pipe.path
        let child = try Child(
            Home.product("proving-ground"), ["export", identifier, "queue", "\(steps)"], environment: environment)
        return child
    }

    /// Waits until the ledger contains a launch that meets the condition.
    @discardableResult
    func waitForLaunch(_ what: String, _ isIt: (LaunchRecord) -> Bool) throws -> LaunchRecord {
        try home.wait(what) { try $0.history(limit: 100).last(where: isIt) }
    }
}

/// A named pipe that controls the steps of an export.
final class StepPipe {
    let path: String
    private let descriptor: Int32

    init(in folder: URL) throws {
        path = folder.appendingPathComponent("steps-" + UUID().uuidString).path
        guard mkfifo(path, 0o600) == 0 else { throw Desktop.Trouble("no pipe") }
        // The pipe is open for reading and writing, so that opening it does not wait for the other side.
        descriptor = open(path, O_RDWR | O_CLOEXEC)
    }

    deinit { close(descriptor) }

    func step(_ count: Int = 1) {
        let bytes = [UInt8](repeating: 10, count: count)
        write(descriptor, bytes, count)
    }
}

extension Home {
    /// Moves the occurrence of a request. The request is then in the same state as after a time in which the machine was off or
    /// its clock was wrong.
    func moveOccurrence(of identifier: String, byDays days: Double) throws {
        let seconds = days * 86_400
        try Ledger(directories).write { transaction in
            try transaction.database.run(
                sql: """
                    UPDATE request SET occurrence = occurrence + \(seconds), earliestBegin = earliestBegin + \(seconds)
                    WHERE identifier = '\(identifier)'
                    """)
        }
    }
}
