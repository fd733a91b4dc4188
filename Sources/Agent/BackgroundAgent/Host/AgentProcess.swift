import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import CLinux
import Foundation
import TransferMachines

/// The agent as a process: lock, ledger, loop, signals. The composition root gives it its ports.
package final class AgentProcess {
    private let ledger: Ledger
    private let loop = EventLoop()
    private let lock: AgentLock
    private var log: AgentLog { AgentLog(file: ledger.directories.agentLog) }

    /// Keeps the agent's lock for as long as the process lives.
    private final class AgentLock {
        private let directories: AppDirectories
        private var held: FileLock?

        init(_ directories: AppDirectories) { self.directories = directories }

        func acquire() throws(StoreError) -> Bool {
            held = try FileLock.acquire(directories.agentLock)
            return held != nil
        }

        func release() { held = nil }
    }

    /// `nil`: an agent of this app runs already, perhaps started from another runtime folder: the lock lies beside the ledger.
    package init?(appIdentifier: String) throws(StoreError) {
        let directories = AppDirectories(appIdentifier: appIdentifier)
        ledger = try Ledger(directories, as: .agent)
        lock = AgentLock(directories)
        guard try lock.acquire() else { return nil }
    }

    /// Hands events to the agent's loop, from any thread. Valid while ``run(version:ports:)`` runs.
    package var inbox: @Sendable (AgentEvent) -> Void {
        let post = loop.poster
        return { event in post { Self.current?.hear(event) } }
    }

    /// The agent of this process; touched on the loop's thread only, where posted calls run.
    nonisolated(unsafe) private static var current: Agent?

    /// The exit code of a run that ended because the ledger could not be written for now: start afresh a little later.
    ///
    /// What this process held in memory no longer fits what is on disk; a new one derives it again.
    package static let tryAgain: Int32 = 75

    /// The exit code of a run that ended because a newer version changed the ledger: its agent is to go on at once.
    package static let superseded: Int32 = 76

    /// Runs until nothing is left to do or somebody asks it to stop. Returns the exit code.
    package func run(version: String, ports: AgentPorts, host: HostEnvironment = .real) throws(StoreError) -> Int32 {
        let launcher = ProcessLauncher(ledger: ledger, loop: loop, environment: host.environment)
        let watch = ProcessWatch(loop: loop)
        let agent = Agent(
            ledger: ledger, launcher: launcher, ports: ports, host: host, watchProcess: { watch.watch($0) }, post: inbox)
        Self.current = agent
        defer { Self.current = nil }
        launcher.onEnd = { [unowned agent] in agent.hear(.launchEnded($0, $1)) }
        watch.onEnd = { [unowned agent] in agent.hear(.processEnded($0)) }
        loop.onClockChange = { [unowned agent] in agent.hear(.timeChanged) }
        watchSignals(agent)
        let bell = try Bell(ledger.directories)
        loop.watch(bell.descriptor) { [descriptor = bell.descriptor] in Bell.drain(descriptor) }
        log.write("agent of \(ledger.directories.appIdentifier) started, pid \(getpid())")
        do throws(StoreError) {
            while true {
                try agent.reconcile(version: version)
                try run(AgentHost(agent, now: host.now))
                lock.release()
                switch agent.lifetime {
                case .finished(.superseded):
                    log.write("made way for a newer version")
                    return Self.superseded
                // Work that came between the last look and the release saw the lock held and started nobody.
                case .finished(.idle), .working, .draining:
                    guard try ledger.read({ try $0.hasUnfinishedWork() }), try lock.acquire() else { break }
                    agent.goOn()
                    continue
                case .finished(.quit), .quitting: break
                }
                break
            }
        } catch  where error.isPassing {
            log.write("\(error); starting afresh")
            return Self.tryAgain
        }
        log.write("agent stopped")
        return 0
    }

    private func run(_ host: AgentHost) throws(StoreError) {
        var failure: StoreError?
        func turn() {
            do throws(StoreError) {
                guard !ledger.isReplaced else { throw .busy(path: ledger.directories.ledger.path) }
                try host.turn()
                // The timer knows the real clock alone.
                let ahead = host.now().timeIntervalSinceNow
                loop.setTimer(abs(ahead) < 0.001 ? host.wake : host.wake?.addingTimeInterval(-ahead))
                if host.hasFinished { loop.stop() }
            } catch {
                failure = error
                loop.stop()
            }
        }
        turn()
        if !host.hasFinished, failure == nil { loop.run(turn: turn) }
        if let failure { throw failure }
    }

    private static var stopSignals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
        return signals
    }

    /// Call before any thread is made: a thread that does not block SIGTERM would take it for the whole process, and die of it.
    package static func blockStopSignals() {
        var signals = stopSignals
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private func watchSignals(_ agent: Agent) {
        var signals = Self.stopSignals
        let descriptor = signalfd(-1, &signals, Int32(SFD_NONBLOCK) | Int32(SFD_CLOEXEC))
        loop.watch(descriptor) { [unowned agent] in
            var information = signalfd_siginfo()
            while read(descriptor, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
                // A closed terminal is no reason: the agent was meant to stay.
                if information.ssi_signo != UInt32(SIGHUP) { agent.hear(.stopRequested) }
            }
        }
    }
}
