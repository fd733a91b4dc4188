import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation
import TransferMachines

/// The agent as a process: lock, ledger, loop, signals. The composition root gives it its ports.
package final class AgentProcess {
    private let ledger: Ledger
    private let loop: EventLoop
    /// Readable when the process is asked to stop.
    private let stopSignal: Int32
    private let lock: AgentLock
    private var setback = Setback()
    private var wasAskedToStop = false
    private let changes: ChangeWatch
    private var program: ProgramFile
    private var log: AgentLog { AgentLog(ledger.directories) }

    /// Opens the ledger. Where that fails for now (no space, a broken disk, too many open files) it is tried again: nobody else would wake
    /// the app.
    ///
    /// `nil`: an agent of this app runs already, perhaps started from another runtime folder: the lock lies beside the ledger. The service
    /// manager's own agent stands by in that case: it takes over when the other is gone, killed perhaps, and work is left.
    /// - Throws: what waiting does not help against; of the rest what is still so after minutes without a lock or without the right to
    ///   write, or when the process is asked to stop.
    package init?(appIdentifier: String) throws(StoreError) {
        let directories = AppDirectories(appIdentifier: appIdentifier)
        let lock = AgentLock(directories)
        program = ProgramFile(appIdentifier: appIdentifier)
        // Without the lock every verb may have started one that waits like this.
        let isAlone = try Self.waitingOut(upTo: Self.boundedTries, lock) { () throws(StoreError) in
            try directories.createStateFolders()
            return try lock.acquire()
        }
        if !isAlone {
            guard ThisProcess.isUserManagers else { return nil }
            ServiceManager.tellReady("Stands by: another agent runs.")
            try lock.standBy()
        }
        // Before anything that is waited for without `sigtimedwait`: the signals are blocked.
        loop = try Self.waitingOut(upTo: nil, lock) { () throws(StoreError) in
            try EventLoop.requireRoom(for: Self.descriptorsAtStart)
            return try EventLoop()
        }
        stopSignal = try Self.waitingOut(upTo: nil, lock) { () throws(StoreError) in
            var signals = Self.stopSignals
            return try EventLoop.made("signalfd", signalfd(-1, &signals, Int32(SFD_NONBLOCK) | Int32(SFD_CLOEXEC)))
        }
        ledger = try Self.waitingOut(upTo: nil, lock) { () throws(StoreError) in
            let ledger = try Ledger(directories, as: .agent)
            // SQLite opens a log that may not be written for reading, and keeps it so.
            try ledger.write(usesReserve: false) { _ in }
            return ledger
        }
        self.lock = lock
        changes = ChangeWatch(ledger, loop, lock)
        while !isAlone, try !ledger.read({ try $0.hasUnfinishedWork() }) {
            // Work that comes in between sees the lock held, and starts nobody.
            lock.release()
            guard try ledger.read({ try $0.hasUnfinishedWork() }), try lock.acquire() else { return nil }
        }
    }

    /// Enough for the ledger and the desktop. GLib ends the process if a loop gets no descriptor.
    private static let descriptorsAtStart = 21

    /// Three minutes.
    private static let boundedTries = 8

    /// Tries until it works, with growing pauses.
    ///
    /// - Parameter limit: how often; `nil`: for ever. A missing right to write is waited for as often as ``boundedTries``.
    private static func waitingOut<Value>(
        upTo limit: Int?, _ lock: AgentLock, _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        var setback = Setback()
        while true {
            do throws(StoreError) {
                let value = try body()
                if setback.count > 0 { lock.tell(nil) }
                return value
            } catch {
                guard error.mayPass, setback.count < (error.isPassing ? limit ?? .max : boundedTries) else { throw error }
                lock.tell(setback.count(error, now: Date()))
                ServiceManager.tellReady("Waits: \(error)")
                if isAskedToStop(within: Int(setback.pause)) { throw error }
            }
        }
    }

    /// Hands events to the agent's loop, from any thread. Valid while ``run(version:ports:)`` runs.
    package var inbox: @Sendable (AgentEvent) -> Void {
        let post = loop.poster
        return { event in post { Self.current?.hear(event) } }
    }

    /// Whoever starts this agent again after it left; `nil`: nobody passed it a socket that apps ring.
    ///
    /// - Parameter make: gets where the app's files are, and what a person calls it.
    package func activation(
        _ make: (AppDirectories, @escaping @Sendable () -> String) -> any AgentActivator
    ) -> (any AgentActivator)? {
        guard ServiceManager.bell != nil else { return nil }
        let ledger = ledger
        return make(ledger.directories) {
            ((try? ledger.read { try $0.fact(.app) }) ?? nil)?.displayName ?? ledger.directories.appIdentifier
        }
    }

    /// The alarm in this process's loop.
    package var wakeClock: any WakeClock {
        // Called on the loop's thread alone, where the agent performs.
        nonisolated(unsafe) let loop = loop
        return AlarmTimer(
            watch: { descriptor throws(StoreError) in
                try loop.watch(descriptor) {
                    var rings: UInt64 = 0
                    if read(descriptor, &rings, 8) > 0 { Self.current?.hear(.alarmRang) }
                }
            }, unwatch: { loop.unwatch($0) })
    }

    /// The agent of this process; touched on the loop's thread only, where posted calls run.
    nonisolated(unsafe) private static var current: Agent?

    /// The exit code of a run that ended because another file lies where its ledger was: start afresh a little later.
    ///
    /// What this process held in memory does not fit what is on disk; a new one derives it again.
    package static let tryAgain: Int32 = 75

    /// The exit code of a run that ended because a newer version changed the ledger, or replaced the program, or because a file of the ledger was
    /// replaced: an agent is to go on at once.
    package static let superseded: Int32 = 76

    /// Runs until nothing is left to do or somebody asks it to stop. Returns the exit code.
    package func run(version: String, ports: AgentPorts, host: HostEnvironment = .real) throws(StoreError) -> Int32 {
        let launcher = ProcessLauncher(ledger: ledger, loop: loop, environment: host.environment)
        let watch = ProcessWatch(loop: loop, directories: ledger.directories)
        let agent = Agent(
            ledger: ledger, launcher: launcher, ports: ports, host: host, watchProcess: { watch.watch($0) }, post: inbox)
        Self.current = agent
        defer { Self.current = nil }
        launcher.onEnd = { [unowned agent] in agent.hear(.launchEnded($0, $1)) }
        watch.onEnd = { [unowned agent] in agent.hear(.processEnded($0)) }
        loop.onClockChange = { [unowned agent] in agent.hear(.timeChanged) }
        log.write(.agentStarted, (.pid, getpid()))
        let host = AgentHost(agent, now: host.now)
        do throws(StoreError) {
            try watchSignals(agent)
            if let bell = ServiceManager.bell { try loop.watch(bell) { ServiceManager.drain(bell) } }
            repeat {
                guard try reconcile(agent, version) else { return 0 }
                ServiceManager.tellReady("Runs.")
                let ending = run(host, agent)
                if case .troubled(let error) = ending { throw error }
                // With the lock: the next agent opens the ledger as soon as it is free.
                if ledger.isReplaced { throw StoreError.replaced(path: ledger.directories.ledger.path) }
                lock.release()
                if case .makesWay = ending {
                    log.write(.agentMakesWay)
                    return Self.superseded
                }
                if agent.lifetime == .finished(.superseded) {
                    log.write(.agentMadeWay)
                    return Self.superseded
                }
            } while try mayGoOn(agent, host)
        } catch {
            return try exitCode(after: error)
        }
        ServiceManager.tellStopping()
        log.write(.agentStopped)
        return 0
    }

    /// Makes up for what an earlier agent left, however long the ledger cannot be written.
    ///
    /// - Returns: `false`: it was asked to stop meanwhile.
    private func reconcile(_ agent: Agent, _ version: String) throws(StoreError) -> Bool {
        setback = Setback()
        while true {
            do throws(StoreError) {
                try agent.reconcile(version: version)
                break
            } catch  where error.isPassing && !ledger.isReplaced {
                pauseAfter(error)
                if wasAskedToStop { return false }
            }
        }
        endSetback()
        return true
    }

    /// Work that came between the last look and the release saw the lock held and started nobody.
    private func mayGoOn(_ agent: Agent, _ host: AgentHost) throws(StoreError) -> Bool {
        switch agent.lifetime {
        case .finished(.quit), .quitting, .finished(.superseded): return false
        case .finished(.idle), .working, .draining:
            guard try ledger.read({ try $0.hasUnfinishedWork() }), try lock.acquire() else { return false }
        case .finished(.away(_, let until)):
            // A machine that slept here missed its timer, which starts nothing beside a service that runs.
            let isDue = until.map { $0 <= host.now() } ?? false
            // What came while the user manager was asked: a zone that changed then is not told again.
            let hasNews = loop.hasNews ? true : try agent.hasNews()
            guard isDue || hasNews, try lock.acquire() else { return false }
        }
        agent.goOn()
        host.goOn()
        return true
    }

    private func exitCode(after error: StoreError) throws(StoreError) -> Int32 {
        if ledger.isReplaced { saveLedger() }
        // A ledger that this process opened without the right to write stays so: the next process opens it again.
        guard error.mayPass else { throw error }
        if wasAskedToStop {
            log.write(.agentStoppedInTrouble, (.reason, error))
            return 0
        }
        log.write(.agentStartsAfresh, (.reason, error))
        // What was saved has to be open again before anything else happens to it.
        if case .replaced = error { return Self.superseded }
        return Self.tryAgain
    }

    /// Wherever it was noticed: what this process alone still has must not go with it.
    private func saveLedger() {
        do throws(StoreError) {
            try Self.waitingOut(upTo: Self.boundedTries, lock) { () throws(StoreError) in try ledger.save() }
        } catch {
            ledger.giveUpSaving()
            log.write(.ledgerNotSaved, (.reason, error))
        }
    }

    /// How the loop came to its end.
    private enum Ending {
        /// Nothing is left to do, or it was asked to stop.
        case finished
        /// Its program was replaced: the new one goes on.
        case makesWay
        /// This process cannot go on.
        case troubled(StoreError)
    }

    private func run(_ host: AgentHost, _ agent: Agent) -> Ending {
        var ending: Ending?
        func turn() {
            ending = self.turn(host, agent)
            if ending != nil { loop.stop() }
        }
        turn()
        if ending == nil { loop.run(turn: turn) }
        return ending ?? .finished
    }

    /// - Returns: `nil`: the loop goes on.
    private func turn(_ host: AgentHost, _ agent: Agent) -> Ending? {
        do throws(StoreError) {
            guard !ledger.isReplaced else { return .troubled(.replaced(path: ledger.directories.ledger.path)) }
            guard try lock.isStillHeld() else {
                log.write(.lockLost)
                return .troubled(.busy(path: ledger.directories.agentLock.path))
            }
            guard setback.count == 0 || wasAskedToStop || setback.isOver(now: Date()) else { return nil }
            // Before the look that it announces changes to.
            listen(agent)
            // Before a turn, which may begin something: at noon the new program does it.
            if program.isReplaced, try host.agent.isAtRest(), program.mayGoOn(now: ContinuousClock.now) { return .makesWay }
            try host.turn()
            // It knows by now which files apps named.
            listen(agent)
            endSetback()
            DiskReserve.take(ledger.directories)
            if try isResting(host) { ledger.putAway() }
            // The timer knows the real clock alone.
            let ahead = host.now().timeIntervalSinceNow
            let wake = abs(ahead) < 0.001 ? host.wake : host.wake?.addingTimeInterval(-ahead)
            loop.setTimer([wake, changes.nextLook].compactMap { $0 }.min())
            guard host.hasFinished else { return nil }
            if host.agent.armActivation() { return .finished }
            // At once: it writes down why.
            host.goOn()
            loop.setTimer(Date())
            return nil
        } catch {
            guard error.isPassing, !ledger.isReplaced, !wasAskedToStop else { return .troubled(error) }
            // The parts are as they were, and what was heard is heard again.
            noteSetback(error)
            return nil
        }
    }

    private func listen(_ agent: Agent) {
        changes.listen(to: agent.watchedFiles) { [unowned agent] in agent.hear(.filesChanged) }
    }

    /// Nothing is under way, and nothing will be for a while.
    private func isResting(_ host: AgentHost) throws(StoreError) -> Bool {
        if let wake = host.wake, wake.timeIntervalSince(host.now()) < 3 { return false }
        return try host.agent.isAtRest()
    }

    private func noteSetback(_ error: StoreError) {
        if setback.count == 0 { log.write(.ledgerTroubled, (.reason, error)) }
        if error.maySayFull, setback.count >= 2 { LedgerRoom(ledger).make() }
        lock.tell(setback.count(error, now: Date()))
        loop.setTimer(setback.nextTry)
    }

    private func endSetback() {
        guard setback.count > 0 else { return }
        log.write(.ledgerRecovered, (.tries, setback.count))
        setback = Setback()
        lock.tell(nil)
    }

    private func pauseAfter(_ error: StoreError) {
        noteSetback(error)
        ServiceManager.tellReady("Waits: \(error)")
        loop.run { if wasAskedToStop || setback.isOver(now: Date()) { loop.stop() } }
    }

    static var stopSignals: sigset_t { signalSet([SIGTERM, SIGINT]) }

    /// Signals that end a process by default and have no meaning for an agent. For example, a closed terminal (SIGHUP) does not stop it. The
    /// last numbers are the real-time signals. SIGPROF is left out, because Swift's crash handler stops threads with it.
    private static let ignoredSignals: [Int32] =
        [SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPOLL, SIGPWR, SIGSTKFLT] + Array(34...64)

    private static func signalSet(_ signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }

    /// Call before any thread is made: a thread that does not block SIGTERM would take it for the whole process, and die of it.
    package static func blockSignals() {
        var signals = signalSet([SIGTERM, SIGINT] + ignoredSignals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for that without a loop. A signal that is blocked ends no wait of another kind.
    package static func isAskedToStop(within seconds: Int) -> Bool {
        var (signals, pause) = (stopSignals, timespec(tv_sec: seconds, tv_nsec: 0))
        return sigtimedwait(&signals, nil, &pause) > 0
    }

    private func watchSignals(_ agent: Agent) throws(StoreError) {
        let descriptor = stopSignal
        try loop.watch(descriptor) { [weak self, unowned agent] in
            var information = signalfd_siginfo()
            while read(descriptor, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
                self?.wasAskedToStop = true
                agent.hear(.stopRequested)
            }
        }
    }
}
