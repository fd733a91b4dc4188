import ProcessSupport
import RehearsalSupport
import BackgroundCommands
import BackgroundLedger
import Foundation
import Synchronization

/// The state of the simulated host of one temporary home: clocks, time zone, conditions, notification server and disk. Every
/// agent of the home receives this state through a socket. Only processes of this home have the path of the socket.
final class RehearsalControl: Sendable {
    private struct State {
        var machine = RehearsedHost(zone: TimeZone.current.identifier)
        var listeners: [Int: Connection] = [:]
        var next = 0
        /// The number of the last state that each running agent has confirmed.
        var answers: [Int: Int] = [:]
    }

    private final class Connection: Sendable {
        let socket: LocalSocket
        init(_ socket: consuming LocalSocket) { self.socket = socket }
    }

    private final class Listener: Sendable {
        let socket: LocalSocket
        init(_ socket: consuming LocalSocket) { self.socket = socket }
    }

    private let state = Mutex(State())
    private let changed = NSCondition()
    private let listener: Listener
    private let folder: URL

    init() throws {
        // The socket is in another folder than the home, because the path of the home may be too long for a socket.
        folder = try Cleanup.shared.makeFolder("stormy-control")
        guard let socket = LocalSocket.listen(at: folder.path + "/socket") else {
            Cleanup.shared.remove(folder)
            throw CommandFailure(
                .cannotCreate, "the socket \(folder.path)/socket cannot be created, because a path can have at most 107 bytes")
        }
        listener = Listener(socket)
        let thread = Thread { [weak self, listener] in
            while let made = listener.socket.accept() { self?.accept(Connection(made)) }
        }
        thread.name = "control"
        thread.start()
    }

    func close() {
        listener.socket.shutDown()
        for connection in state.withLock({ Array($0.listeners.values) }) { connection.socket.shutDown() }
        Cleanup.shared.remove(folder)
    }

    /// Marks a home, so that the processes of the home use the state of this control.
    func mark(_ home: URL) throws {
        try Data(socketPath.utf8).write(to: home.appendingPathComponent(RehearsalHome.mark))
    }

    private var socketPath: String { folder.path + "/socket" }

    /// The environment variables for the commands of the home.
    var environment: [String: String] {
        let machine = state.withLock { $0.machine }
        return machine.environment.merging([RehearsalHome.variable: socketPath]) { $1 }
    }

    var zone: String { state.withLock { $0.machine.zone } }

    /// The time of the host's clock.
    var now: Date { Date(timeIntervalSinceNow: state.withLock { $0.machine.clockOffset }) }

    // MARK: Agents

    private func accept(_ connection: Connection) {
        let (number, machine) = state.withLock { state -> (Int, RehearsedHost) in
            state.next += 1
            state.listeners[state.next] = connection
            return (state.next, state.machine)
        }
        connection.socket.write(line: Self.line(machine))
        let thread = Thread { [weak self] in
            while let line = connection.socket.readLine() { self?.handle(number, Int(line) ?? 0) }
            self?.handle(number, nil)
        }
        thread.name = "agent"
        thread.start()
    }

    private func handle(_ number: Int, _ answer: Int?) {
        changed.lock()
        state.withLock { state in
            state.answers[number] = answer
            if answer == nil { state.listeners[number] = nil }
        }
        changed.broadcast()
        changed.unlock()
    }

    private static func line(_ machine: RehearsedHost) -> String {
        (try? JSONEncoder().encode(machine)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Changes the host. Returns when every running agent has received the change.
    func set(_ change: (inout RehearsedHost) -> Void) throws {
        let (machine, listeners) = state.withLock { state -> (RehearsedHost, [Connection]) in
            change(&state.machine)
            state.machine.number += 1
            return (state.machine, Array(state.listeners.values))
        }
        for listener in listeners { listener.socket.write(line: Self.line(machine)) }
        let deadline = Date(timeIntervalSinceNow: 20)
        changed.lock()
        defer { changed.unlock() }
        while !state.withLock({ state in state.listeners.keys.allSatisfy { (state.answers[$0] ?? -1) >= machine.number } }) {
            guard changed.wait(until: deadline) else {
                throw Rehearsal.Stuck(description: "the agent did not receive the state of the machine")
            }
        }
    }

    /// Lets the host sleep for a number of seconds.
    func suspend(_ seconds: Double) throws {
        try set { machine in
            machine.clockOffset += seconds
            machine.slept += seconds
        }
    }

    /// Changes the clock of the host.
    func stepClock(_ seconds: Double) throws { try set { $0.clockOffset += seconds } }
}
