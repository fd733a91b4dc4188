import ProcessSupport
import BackgroundAgent
import BackgroundLedger
import BackgroundScheduling
import Foundation
import Synchronization

/// The behaviour of a launched process of a simulated host.
package protocol VirtualProgram: AnyObject, Sendable {
    /// Begins the process. The process ends when the program calls `exit` on `process`.
    func begin(_ process: VirtualProcess)
    /// Handles SIGTERM, which the process received.
    func warned(_ process: VirtualProcess)
    /// Handles the death of the process by SIGKILL or by a crash. After this call, the program must have no effect.
    func died(_ process: VirtualProcess)
}

/// A process of a simulated host, launched by its agent.
package final class VirtualProcess: Sendable {
    package let launch: Int64
    package let identity: ProcessIdentity
    private let end: @Sendable (ProcessEnd) -> Void
    private let hasEnded = Mutex(false)

    init(launch: Int64, identity: ProcessIdentity, end: @escaping @Sendable (ProcessEnd) -> Void) {
        (self.launch, self.identity, self.end) = (launch, identity, end)
    }

    package var isAlive: Bool { !hasEnded.withLock { $0 } }

    /// Ends the process. Later calls have no effect.
    package func exit(_ how: ProcessEnd = .exited(0)) {
        let isFirst = hasEnded.withLock { ended in
            defer { ended = true }
            return !ended
        }
        if isFirst { end(how) }
    }
}

/// The processes of a simulated host. The agent starts, warns and kills these processes. A test can also start, warn and kill
/// processes.
final class VirtualProcesses: Launcher, @unchecked Sendable {  // because the mutex guards the mutable state
    private struct State {
        var living: [Int64: VirtualProcess] = [:]
        /// Processes that the agent did not launch.
        var commands: [ProcessIdentity] = []
        var next: Int32 = 5_000_000
        /// The error with which the start of a process fails; `nil` if starts succeed.
        var refusal: (any Error)?
        var gone: [(Int64, ProcessEnd)] = []
        var deaths: [ProcessIdentity] = []
    }

    struct CannotStart: Error, CustomStringConvertible {
        var description: String { "no process can be started" }
    }

    private let state = Mutex(State())
    private let program: any VirtualProgram
    /// The closure that is called when a process ends, on the thread where the process ended.
    private let wake: @Sendable () -> Void

    init(program: any VirtualProgram, wake: @escaping @Sendable () -> Void) {
        (self.program, self.wake) = (program, wake)
    }

    /// Sets whether launches fail to start.
    func refuse(_ isRefusing: Bool) { state.withLock { $0.refusal = isRefusing ? CannotStart() : nil } }

    /// Deletes the app's program, or restores it.
    func remove(_ isRemoved: Bool) {
        state.withLock { $0.refusal = isRemoved ? AppIsMissing(path: "/bin/false", name: "App") : nil }
    }

    var living: [VirtualProcess] { state.withLock { $0.living.values.sorted { $0.launch < $1.launch } } }

    func process(of launch: Int64) -> VirtualProcess? { state.withLock { $0.living[launch] } }

    func isAlive(_ process: ProcessIdentity) -> Bool {
        // The test's own process has a lower number than simulated processes, and outlives all simulated processes.
        process.pid < 5_000_000
            || state.withLock { $0.living.values.contains { $0.identity == process } || $0.commands.contains(process) }
    }

    /// Returns the processes whose end the agent has not received yet. For each launch, also returns how the process ended.
    func drainEnds() -> (launches: [(Int64, ProcessEnd)], processes: [ProcessIdentity]) {
        state.withLock { state in
            defer { (state.gone, state.deaths) = ([], []) }
            return (state.gone, state.deaths)
        }
    }

    // MARK: Commands

    /// Starts a process of the user.
    func beginCommand() -> ProcessIdentity {
        state.withLock { state in
            state.next += 1
            let identity = ProcessIdentity(pid: state.next, start: Int64(state.next))
            state.commands.append(identity)
            return identity
        }
    }

    func endCommand(_ identity: ProcessIdentity) {
        state.withLock { state in
            state.commands.removeAll { $0 == identity }
            state.deaths.append(identity)
        }
        wake()
    }

    // MARK: Launcher

    func start(_ launch: Int64) throws -> ProcessIdentity {
        let process = try state.withLock { state -> VirtualProcess in
            if let refusal = state.refusal { throw refusal }
            state.next += 1
            let identity = ProcessIdentity(pid: state.next, start: Int64(state.next))
            let process = VirtualProcess(launch: launch, identity: identity) { [weak self] end in
                self?.ended(launch, identity, end)
            }
            state.living[launch] = process
            return process
        }
        program.begin(process)
        return process.identity
    }

    private func ended(_ launch: Int64, _ identity: ProcessIdentity, _ end: ProcessEnd) {
        state.withLock { state in
            state.living[launch] = nil
            state.gone.append((launch, end))
            state.deaths.append(identity)
        }
        wake()
    }

    func adopt(_ launch: Int64, _ process: ProcessIdentity) -> Adoption {
        self.process(of: launch)?.identity == process ? .watched : .gone
    }

    func isAlive(_ launch: Int64) -> Bool { process(of: launch) != nil }

    func warn(_ launch: Int64) { if let process = process(of: launch) { program.warned(process) } }

    func kill(_ launch: Int64) { kill(launch, by: .signalled(9)) }

    func kill(_ launch: Int64, by end: ProcessEnd) {
        guard let process = process(of: launch) else { return }
        program.died(process)
        process.exit(end)
    }

    func forget(_ launch: Int64) {}
}
