import ProcessSupport
import RehearsalSupport
import BackgroundAgent
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization

/// The simulated machine of a rehearsal. The rehearsal's control socket sends the states of the clock, sleep, time zone, network,
/// power, notification server and disk. The simulated machine is used only if an environment variable contains the socket's path.
/// The command `rehearse` sets this variable in its temporary home.
final class RehearsalMachine: ConditionsSource, Presenter {
    private struct State {
        var machine: RehearsedHost
        var nextID: UInt32 = 1
        var post: @Sendable (AgentEvent) -> Void = { _ in }
    }

    private let state: Mutex<State>

    /// The error if this home folder belongs to a rehearsal and the rehearsal's control socket does not respond. If this error
    /// occurs, the agent must not use the real machine instead.
    struct ControlUnavailable: Error, CustomStringConvertible {
        let path: String
        var description: String { "this home folder belongs to a rehearsal, but the rehearsal does not respond at \(path)" }
    }

    /// Connects to the rehearsal. Returns `nil` if this process does not belong to a rehearsal.
    static func join() throws(ControlUnavailable) -> RehearsalMachine? {
        guard let path = RehearsalHome.socket else { return nil }
        guard let socket = LocalSocket.connect(to: path), socket.isOwn() else { throw ControlUnavailable(path: path) }
        socket.limitReads(to: 10)
        guard let line = socket.readLine(), let first = Self.read(line) else { throw ControlUnavailable(path: path) }
        socket.limitReads(to: 0)
        let machine = RehearsalMachine(first)
        let box = SocketBox(socket)
        let thread = Thread {
            box.socket.write(line: String(first.number))
            while let line = box.socket.readLine() {
                guard let next = read(line) else { continue }
                // Two threads write the lines, so an older line may arrive after a newer line.
                if next.number > machine.machine.number { machine.become(next) }
                box.socket.write(line: String(machine.machine.number))
            }
            // The rehearsal has ended or was killed. The agent must not continue in a home folder that will not be cleaned up.
            kill(getpid(), SIGTERM)
        }
        thread.name = "rehearsal"
        thread.start()
        return machine
    }

    private static func read(_ line: String) -> RehearsedHost? {
        try? JSONDecoder().decode(RehearsedHost.self, from: Data(line.utf8))
    }

    private init(_ machine: RehearsedHost) {
        state = Mutex(State(machine: machine))
        DiskWorker.shared.calls.fail(by: machine.fileFault)
    }

    private var machine: RehearsedHost { state.withLock { $0.machine } }

    /// Sets the receiver of events, and sends the current conditions to it.
    func begin(_ tell: @escaping @Sendable (AgentEvent) -> Void) {
        state.withLock { $0.post = tell }
        tell(.conditions(current))
    }

    private func become(_ next: RehearsedHost) {
        let (before, tell) = state.withLock { state in
            defer { state.machine = next }
            return (state.machine, state.post)
        }
        DiskWorker.shared.calls.fail(by: next.fileFault)
        if next.conditions != before.conditions { tell(.conditions(next.conditions)) }
        if next.zone != before.zone { tell(.zoneChanged) }
        if next.clockOffset != before.clockOffset { tell(.timeChanged) }
        if next.slept > before.slept { tell(.resumed) }
        guard next.hasNotificationServer != before.hasNotificationServer else { return }
        tell(.presenter(next.hasNotificationServer ? .serverAppeared : .serverVanished))
    }

    /// The clocks of the simulated machine.
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
                return (.failed(identifier: notice.identifier, .noServer("the notification server left the bus")), state.post)
            }
            let number = serverID ?? state.nextID
            if serverID == nil { state.nextID += 1 }
            return (.presented(identifier: notice.identifier, serverID: number), state.post)
        }
        tell(.presenter(event))
    }

    // These methods do nothing, because the simulated server reports to every process, always responds, and shows no badge.
    func adoptNotification(identifier: String, serverID: UInt32, of server: String?) {}
    func query() {}
    func showBadge(_ count: Int, desktopEntry: String) {}

    func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        let tell = state.withLock { $0.post }
        tell(.presenter(.closed(identifier: identifier, serverID: serverID, .closedByCall)))
        tell(.presenter(.withdrawn(identifier: identifier, serverID: serverID)))
    }
}
