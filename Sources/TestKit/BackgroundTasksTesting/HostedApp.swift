import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization

/// The app under test, which runs as the processes that the agent launches. Each process is a launch context in the test's
/// process, with the handlers that the test registered.
final class HostedApp: VirtualProgram {
    private struct Running {
        let context: LaunchContext
        let process: VirtualProcess
        let work: Task<Void, Never>?
    }

    private struct State {
        var runtime: AppRuntime?
        var onEnd: @Sendable (Int64) -> Void = { _ in }
        var running: [Int64: Running] = [:]
        /// The running commands of the user. The numbers of commands are negative.
        var commands: Set<Int64> = []
        var lastCommand: Int64 = 0
    }

    private let state = Mutex(State())

    /// - Parameter onEnd: The closure that is called, on any thread, when the process of a launch has ended.
    func join(_ runtime: AppRuntime, onEnd: @escaping @Sendable (Int64) -> Void) {
        state.withLock { ($0.runtime, $0.onEnd) = (runtime, onEnd) }
    }

    private func running(_ launch: Int64) -> Running? { state.withLock { $0.running[launch] } }

    // MARK: Commands

    func beginCommand(_ identity: ProcessIdentity) -> HostedCommand {
        state.withLock { state in
            state.lastCommand -= 1
            state.commands.insert(state.lastCommand)
            return HostedCommand(number: state.lastCommand, identity: identity)
        }
    }

    func end(_ command: HostedCommand) {
        state.withLock { $0.runtime }?.processEnded(launch: command.number)
        state.withLock { _ = $0.commands.remove(command.number) }
    }

    func isRunning(_ command: HostedCommand) -> Bool { state.withLock { $0.commands.contains(command.number) } }

    // MARK: Launches

    /// Returns the launches and commands that have not ended and do not wait for virtual time.
    func busy() -> [Int64] {
        let (runtime, launches) = state.withLock { ($0.runtime, $0.running.keys.sorted() + $0.commands) }
        guard let runtime else { return [] }
        return launches.filter { !runtime.isWaiting(launch: $0) }
    }

    /// Returns the sessions whose delegate belongs to the launch.
    func awaitedSessions(of launch: Int64) -> Set<String> { running(launch)?.context.awaitedSessions ?? [] }

    func begin(_ process: VirtualProcess) {
        guard let runtime = state.withLock({ $0.runtime }) else { return process.exit(.exited(74)) }
        let launch = process.launch
        let context = LaunchContext(id: launch, runtime: runtime, identity: process.identity) { [self] code in
            // The agent is notified of the end before the test kit treats the launch as ended. Virtual time therefore does not
            // pass before the agent has handled the end.
            runtime.processEnded(launch: launch)
            process.exit(.exited(code))
            ended(launch)
        }
        // The process is registered before it runs, because a handler may end immediately.
        state.withLock { $0.running[launch] = Running(context: context, process: process, work: nil) }
        let work = LaunchContext.$own.withValue(context) { LaunchHandlers.shared.run(context) }
        state.withLock { state in
            guard state.running[launch] != nil else { return }
            state.running[launch] = Running(context: context, process: process, work: work)
        }
    }

    private func ended(_ launch: Int64) {
        let onEnd = state.withLock { state in
            state.running[launch] = nil
            return state.onEnd
        }
        onEnd(launch)
    }

    func warned(_ process: VirtualProcess) {
        guard let context = running(process.launch)?.context else { return }
        LaunchContext.$own.withValue(context) { context.handleStopWarning() }
    }

    /// Ends all running processes after the test. After this call, the work of these processes has no effect.
    func end() {
        let running = state.withLock { Array($0.running.values) }
        for running in running { died(running.process) }
    }

    func died(_ process: VirtualProcess) {
        guard let running = running(process.launch) else { return }
        running.context.die()
        running.work?.cancel()
        state.withLock { $0.runtime }?.processEnded(launch: process.launch)
        ended(process.launch)
    }
}

/// Counts changes while virtual time does not pass, and wakes callers that wait for a change.
final class ChangeCounter: Sendable {
    private struct State {
        var count = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var next = 0
    }

    private let state = Mutex(State())
    private static let step: Duration = .milliseconds(10)

    var count: Int { state.withLock { $0.count } }

    func add() {
        let waiters = state.withLock { state in
            state.count += 1
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// Waits for a change after the caller read the value `known` of `count`. Returns `false` if no change occurs within the real
    /// time `patience`.
    func wait(after known: Int, atMost patience: Duration) async -> Bool {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.waiters[state.next] = continuation
            if state.count != known { continuation.yield() }
            return state.next
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        // The wait consists of short steps. Each step waits for the tasks and queue blocks that were ready before the step. If
        // other tests use all threads, the awaited work cannot run, but the steps also take longer, so the wait does not end too
        // early.
        let alarm = Task {
            for _ in 0..<max(1, Int(patience / Self.step)) {
                do { try await Task.sleep(for: Self.step) } catch { return }
                await withCheckedContinuation { turn in DispatchQueue.global().async { turn.resume() } }
            }
            continuation.finish()
        }
        defer { alarm.cancel() }
        var iterator = changes.makeAsyncIterator()
        return await iterator.next() != nil
    }
}
