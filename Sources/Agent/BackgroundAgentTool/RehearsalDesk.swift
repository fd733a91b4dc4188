import ProcessSupport
import RehearsalSupport
import BackgroundAgent
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization

/// The machine as a rehearsal tells of it: clock, sleep, zone, network, power, notification server and disk come from its control
/// socket. Made only where the environment names one, as in the throw-away home of `rehearse`.
final class RehearsalDesk: ConditionsSource, Presenter {
    private struct State {
        var machine: RehearsedHost
        var nextID: UInt32 = 1
        var tell: @Sendable (AgentEvent) -> Void = { _ in }
    }

    private let state: Mutex<State>

    /// This home is a rehearsal's, and nobody tells of its machine: the real one must not be taken for it.
    struct NobodyTells: Error, CustomStringConvertible {
        let path: String
        var description: String { "this home is a rehearsal's, and nobody at \(path) tells of its machine" }
    }

    /// `nil`: this is no rehearsal.
    static func join() throws(NobodyTells) -> RehearsalDesk? {
        guard let path = RehearsalHome.socket else { return nil }
        guard let socket = LocalSocket.connect(to: path), socket.isOwn() else { throw NobodyTells(path: path) }
        socket.limitReads(to: 10)
        guard let line = socket.readLine(), let first = Self.read(line) else { throw NobodyTells(path: path) }
        socket.limitReads(to: 0)
        let desk = RehearsalDesk(first)
        let box = SocketBox(socket)
        let thread = Thread {
            box.socket.write(line: String(first.number))
            while let line = box.socket.readLine() {
                guard let next = read(line) else { continue }
                // An older line may come behind a newer one: two threads write them.
                if next.number > desk.machine.number { desk.become(next) }
                box.socket.write(line: String(desk.machine.number))
            }
            // The rehearsal is over, or was killed: its agent must not go on in a home that nobody clears away.
            kill(getpid(), SIGTERM)
        }
        thread.name = "rehearsal"
        thread.start()
        return desk
    }

    private static func read(_ line: String) -> RehearsedHost? {
        try? JSONDecoder().decode(RehearsedHost.self, from: Data(line.utf8))
    }

    private init(_ machine: RehearsedHost) {
        state = Mutex(State(machine: machine))
        DiskWorker.shared.calls.fail(by: machine.fileFault)
    }

    private var machine: RehearsedHost { state.withLock { $0.machine } }

    /// The agent's ear, and its first words about the desktop.
    func begin(_ tell: @escaping @Sendable (AgentEvent) -> Void) {
        state.withLock { $0.tell = tell }
        tell(.conditions(current))
    }

    private func become(_ next: RehearsedHost) {
        let (before, tell) = state.withLock { state in
            defer { state.machine = next }
            return (state.machine, state.tell)
        }
        DiskWorker.shared.calls.fail(by: next.fileFault)
        if next.conditions != before.conditions { tell(.conditions(next.conditions)) }
        if next.zone != before.zone { tell(.zoneChanged) }
        if next.clockOffset != before.clockOffset { tell(.timeChanged) }
        if next.slept > before.slept { tell(.resumed) }
        guard next.hasNotificationServer != before.hasNotificationServer else { return }
        tell(.presenter(next.hasNotificationServer ? .serverAppeared : .serverVanished))
    }

    /// The clocks of that machine.
    var hostEnvironment: HostEnvironment {
        let real = HostEnvironment.real
        return HostEnvironment(
            now: { Date(timeIntervalSinceNow: self.machine.clockOffset) }, monotonic: real.monotonic,
            slept: { real.slept() + self.machine.slept },
            zone: { TimeZone(identifier: self.machine.zone) ?? .gmt }, environment: { self.machine.environment })
    }

    // MARK: Ports

    var current: DesktopConditions { machine.conditions }

    func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?) {
        let (event, tell) = state.withLock { state -> (PresenterEvent, @Sendable (AgentEvent) -> Void) in
            guard state.machine.hasNotificationServer else {
                return (.failed(identifier: notice.identifier, .noServer("it left the bus")), state.tell)
            }
            let number = serverID ?? state.nextID
            if serverID == nil { state.nextID += 1 }
            return (.presented(identifier: notice.identifier, serverID: number), state.tell)
        }
        tell(.presenter(event))
    }

    // Nothing is told to its sender alone here, and nothing stays unanswered.
    func takeOver(identifier: String, serverID: UInt32, of server: String?) {}
    func ask() {}
    func showBadge(_ count: Int, desktopEntry: String) {}

    func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        let tell = state.withLock { $0.tell }
        tell(.presenter(.closed(identifier: identifier, serverID: serverID, .closedByCall)))
        tell(.presenter(.withdrawn(identifier: identifier, serverID: serverID)))
    }
}
