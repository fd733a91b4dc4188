import Foundation
import ProcessSupport
import Testing

@testable import BackgroundRuntime

/// Tests that only one process at a time starts an agent. The agent of these tests is a script that never takes the agent's lock.
@Suite final class AgentStarterTests {
    private let folder: URL
    private var record: URL { folder.appendingPathComponent("record") }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("starter-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func starter(_ script: String) throws -> AgentStarter {
        let program = folder.appendingPathComponent("agent")
        try Data("#!/bin/sh\n\(script)\n".utf8).write(to: program)
        chmod(program.path, 0o700)
        let environment = [
            "HOME": folder.path, "XDG_STATE_HOME": folder.path + "/state", "BACKGROUND_AGENT": program.path,
            "PATH": "/usr/bin:/bin",
        ]
        let directories = AppDirectories(appIdentifier: "app", environment: environment)
        try directories.createStateFolders()
        return AgentStarter(directories: directories, environment: environment)
    }

    private var lines: [Substring] { ((try? String(contentsOf: record, encoding: .utf8)) ?? "").split(separator: "\n") }

    @Test func `two starters do not start two agents at the same time`() async throws {
        let pids = folder.appendingPathComponent("pids")
        let starter = try starter(
            "echo $$ >> '\(pids.path)'; echo begin >> '\(record.path)'; sleep 0.3; echo end >> '\(record.path)'")
        let results = await withTaskGroup(of: AgentStarter.Result.self) { group in
            for _ in 0..<2 { group.addTask { starter.startIfNeeded() } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == [.started, .started])
        _ = try FileLock.wait(for: starter.directories.agentStart)
        #expect(lines == ["begin", "end", "begin", "end"])
        try reap(String(contentsOf: pids, encoding: .utf8))
    }

    @Test func `a starter sees the agent of another starter`() async throws {
        let starter = try starter("exit 0")
        let turn = try Held(starter.directories.agentStart)
        let result = Task.detached { starter.startIfNeeded() }
        let agent = try Held(starter.directories.agentLock)
        #expect(await result.value == .alreadyRunning)
        withExtendedLifetime((turn, agent)) {}
    }

    /// A process that starts an agent waits only for a limited time for a frozen process.
    @Test(.timeLimit(.minutes(30))) func `a starter does not wait for an agent that is stopped while it starts`() throws {
        #expect(mkfifo(record.path, 0o600) == 0)
        // The pipe is open for reading and writing, so that opening it does not wait for the other side.
        let pipe = open(record.path, O_RDWR | O_CLOEXEC)
        defer { close(pipe) }
        let starter = try starter("echo $$ > '\(record.path)'; kill -STOP $$")
        #expect(starter.startIfNeeded() == .started)
        #expect(starter.startIfNeeded() == .started)
        var (text, piece) = ([UInt8](), [UInt8](repeating: 0, count: 64))
        while text.count(where: { $0 == UInt8(ascii: "\n") }) < 2 {
            let count = read(pipe, &piece, piece.count)
            text += piece.prefix(max(0, count))
        }
        let agents = String(decoding: text, as: UTF8.self)
        for agent in agents.split(separator: "\n") { kill(try #require(Int32(agent)), SIGKILL) }
        try reap(agents)
    }

    /// Waits until the agents have ended. If an ended child is not reaped, the test runner waits in a loop.
    private func reap(_ pids: String) throws {
        for pid in pids.split(separator: "\n") { waitpid(try #require(Int32(pid)), nil, 0) }
    }

    /// A class that holds a lock, so that the lock can be stored by reference.
    private final class Held: Sendable {
        private let lock: FileLock

        init(_ file: URL) throws { lock = try FileLock.wait(for: file) }
    }
}
