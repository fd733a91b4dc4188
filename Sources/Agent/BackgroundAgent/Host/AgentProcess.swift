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
    private var setback = Setback()
    private var wasAskedToStop = false
    private var files: FileWatch?
    /// What apps named has not been looked up yet, or could not be watched.
    private var hasToWatchFiles = true
    private var bell: Bell?
    /// Since when the system gives no more of what hears of changes; `nil`: it does.
    private var deafSince: Date?
    private var program: ProgramFile
    private var makesWay = false
    private var log: AgentLog { AgentLog(ledger.directories) }

    /// Keeps the agent's lock for as long as the process lives, and says in it what the agent waits for.
    private final class AgentLock {
        private let directories: AppDirectories
        private var held: FileLock?

        init(_ directories: AppDirectories) { self.directories = directories }

        func acquire() throws(StoreError) -> Bool {
            held = try FileLock.acquire(directories.agentLock)
            guard held != nil else { return false }
            AgentTrouble.makeRoom(in: held!)
            return true
        }

        /// Returns when no other agent is left; a signal to stop ends the process.
        func standBy() throws(StoreError) {
            var signals = stopSignals
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            defer { pthread_sigmask(SIG_BLOCK, &signals, nil) }
            held = try FileLock.wait(for: directories.agentLock)
            AgentTrouble.makeRoom(in: held!)
        }

        /// Somebody removed the file, taken for a stale one perhaps: the lock is taken anew where no other agent has it by now.
        ///
        /// - Returns: `false`: one has.
        func isStillHeld() throws(StoreError) -> Bool {
            if held?.isAt(directories.agentLock) ?? true { return true }
            guard let new = try FileLock.acquire(directories.agentLock) else { return false }
            held = consume new
            AgentTrouble.makeRoom(in: held!)
            return true
        }

        func tell(_ trouble: AgentTrouble?) { if held != nil { AgentTrouble.write(trouble, into: held!) } }

        func release() { held = nil }
    }

    /// Opens the ledger. Where that fails for now (no space, a broken disk, too many open files) it is tried again: nobody else would wake
    /// the app.
    ///
    /// `nil`: an agent of this app runs already, perhaps started from another runtime folder: the lock lies beside the ledger. The service
    /// manager's own agent stands by in that case: it takes over when the other is gone, killed perhaps, and work is left.
    /// - Throws: what waiting does not help against; of the rest what is still so after minutes without a lock, or when the process is
    ///   asked to stop.
    package init?(appIdentifier: String) throws(StoreError) {
        let directories = AppDirectories(appIdentifier: appIdentifier)
        let lock = AgentLock(directories)
        program = ProgramFile(appIdentifier: appIdentifier)
        // Without the lock every verb may have started one that waits like this.
        let isAlone = try Self.waitingOut(upTo: 8, lock) { () throws(StoreError) in
            try directories.createStateFolders()
            return try lock.acquire()
        }
        if !isAlone {
            guard ThisProcess.isUserManagers else { return nil }
            try lock.standBy()
        }
        ledger = try Self.waitingOut(upTo: nil, lock) { () throws(StoreError) in try Ledger(directories, as: .agent) }
        self.lock = lock
        if !isAlone, try !ledger.read({ try $0.hasUnfinishedWork() }) { return nil }
    }

    /// Tries until it works, with growing pauses.
    ///
    /// - Parameter limit: how often; `nil`: for ever.
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
                guard error.isPassing, limit.map({ setback.count < $0 }) ?? true else { throw error }
                lock.tell(setback.count(error, now: Date()))
                var (signals, pause) = (stopSignals, timespec(tv_sec: Int(setback.pause), tv_nsec: 0))
                if sigtimedwait(&signals, nil, &pause) > 0 { throw error }
            }
        }
    }

    /// Hands events to the agent's loop, from any thread. Valid while ``run(version:ports:)`` runs.
    package var inbox: @Sendable (AgentEvent) -> Void {
        let post = loop.poster
        return { event in post { Self.current?.hear(event) } }
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
        let watch = ProcessWatch(loop: loop)
        let agent = Agent(
            ledger: ledger, launcher: launcher, ports: ports, host: host, watchProcess: { watch.watch($0) }, post: inbox)
        Self.current = agent
        defer { Self.current = nil }
        launcher.onEnd = { [unowned agent] in agent.hear(.launchEnded($0, $1)) }
        watch.onEnd = { [unowned agent] in agent.hear(.processEnded($0)) }
        loop.onClockChange = { [unowned agent] in agent.hear(.timeChanged) }
        watchSignals(agent)
        log.write(.agentStarted, (.pid, getpid()))
        do throws(StoreError) {
            while true {
                setback = Setback()
                while true {
                    do throws(StoreError) {
                        try agent.reconcile(version: version)
                        break
                    } catch  where error.isPassing && !ledger.isReplaced {
                        pauseAfter(error)
                        if wasAskedToStop { return 0 }
                    }
                }
                endSetback()
                hasToWatchFiles = true
                try run(AgentHost(agent, now: host.now), agent)
                // With the lock: the next agent opens the ledger as soon as it is free.
                if ledger.isReplaced { throw StoreError.replaced(path: ledger.directories.ledger.path) }
                lock.release()
                if makesWay {
                    log.write(.agentMakesWay)
                    return Self.superseded
                }
                switch agent.lifetime {
                case .finished(.superseded):
                    log.write(.agentMadeWay)
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
        } catch {
            if ledger.isReplaced { saveLedger() }
            guard error.isPassing else { throw error }
            if wasAskedToStop {
                log.write(.agentStoppedInTrouble, (.reason, error))
                return 0
            }
            log.write(.agentStartsAfresh, (.reason, error))
            // What was saved has to be open again before anything else happens to it.
            if case .replaced = error { return Self.superseded }
            return Self.tryAgain
        }
        log.write(.agentStopped)
        return 0
    }

    /// Wherever it was noticed: what this process alone still has must not go with it.
    private func saveLedger() {
        do throws(StoreError) {
            try Self.waitingOut(upTo: 8, lock) { () throws(StoreError) in try ledger.save() }
        } catch {
            ledger.giveUpSaving()
            log.write(.ledgerNotSaved, (.reason, error))
        }
    }

    private func run(_ host: AgentHost, _ agent: Agent) throws(StoreError) {
        var failure: StoreError?
        func end(_ error: StoreError) {
            failure = error
            loop.stop()
        }
        func turn() {
            do throws(StoreError) {
                guard !ledger.isReplaced else { return end(.replaced(path: ledger.directories.ledger.path)) }
                guard try lock.isStillHeld() else {
                    log.write(.lockLost)
                    return end(.busy(path: ledger.directories.agentLock.path))
                }
                guard setback.count == 0 || wasAskedToStop || setback.isOver(now: Date()) else { return }
                // Before the look that it announces changes to.
                listen(agent)
                // Before a turn, which may begin something: at noon the new program does it.
                if program.isReplaced, try host.agent.isAtRest(), program.mayGoOn(now: ContinuousClock.now) {
                    makesWay = true
                    return loop.stop()
                }
                try host.turn()
                endSetback()
                DiskReserve.take(ledger.directories)
                if try isResting(host) { ledger.putAway() }
                // The timer knows the real clock alone.
                let ahead = host.now().timeIntervalSinceNow
                let wake = abs(ahead) < 0.001 ? host.wake : host.wake?.addingTimeInterval(-ahead)
                loop.setTimer(deafSince == nil ? wake : min(wake ?? .distantFuture, Date(timeIntervalSinceNow: Self.deafPause)))
                if host.hasFinished { loop.stop() }
            } catch {
                guard error.isPassing, !ledger.isReplaced, !wasAskedToStop else { return end(error) }
                // The parts are as they were, and what was heard is heard again.
                noteSetback(error)
            }
        }
        turn()
        if !host.hasFinished, !makesWay, failure == nil { loop.run(turn: turn) }
        if let failure { throw failure }
    }

    /// Nothing is under way, and nothing will be for a while.
    private func isResting(_ host: AgentHost) throws(StoreError) -> Bool {
        if let wake = host.wake, wake.timeIntervalSince(host.now()) < 3 { return false }
        return try host.agent.isAtRest()
    }

    private func noteSetback(_ error: StoreError) {
        if setback.count == 0 { log.write(.ledgerTroubled, (.reason, error)) }
        if error.maySayFull, setback.count >= 2 { makeRoom() }
        lock.tell(setback.count(error, now: Date()))
        loop.setTimer(setback.nextTry)
    }

    /// Seconds between two looks of an agent that hears of nothing.
    private static let deafPause = 5.0

    /// Hears of what others commit, and of files. Where the system has no inotify instance or watch left (other programs use them up) the
    /// agent looks by itself, and says so.
    private func listen(_ agent: Agent) {
        do throws(StoreError) {
            if bell == nil {
                let new = try Bell(ledger.directories)
                loop.watch(new.descriptor) { [descriptor = new.descriptor] in Bell.drain(descriptor) }
                bell = consume new
            }
            try watchFiles(agent)
            guard deafSince != nil else { return }
            log.write(.changesHeard)
            deafSince = nil
            lock.tell(nil)
        } catch {
            if deafSince == nil { log.write(.changesUnheard, (.reason, error), (.seconds, Int(Self.deafPause))) }
            let since = deafSince ?? Date()
            deafSince = since
            lock.tell(AgentTrouble(reason: "\(error)", since: since, nextTry: Date(timeIntervalSinceNow: Self.deafPause)))
        }
    }

    /// Those that a launch may have failed for: a configuration with a mistake, say.
    private func watchFiles(_ agent: Agent) throws(StoreError) {
        guard hasToWatchFiles else { return }
        let paths = try ledger.read { try $0.fact(.settings)?.watchedFiles } ?? []
        if files != nil || paths.isEmpty {
            hasToWatchFiles = false
            return
        }
        let watch = try FileWatch(paths)
        hasToWatchFiles = false
        loop.watch(watch.descriptor) { [descriptor = watch.descriptor, unowned agent] in
            Bell.drain(descriptor)
            FileWatch.arm(descriptor, paths)
            agent.hear(.filesChanged)
        }
        files = consume watch
    }

    /// The reserve was not enough: what can be fetched again gives way to what cannot, the largest part first. Only parts on the
    /// ledger's own disk, and only when that is full; one that bytes are arriving for, or that a person paused, is not touched.
    private func makeRoom() {
        let directories = ledger.directories
        guard DiskSpace.left(at: directories.state.path) == 0, let disk = Self.look(directories.state)?.st_dev else { return }
        let waiting = (try? ledger.read { try $0.unfinishedTransfers() }) ?? []
        let parts = waiting.filter { $0.kind == .download && [.queued, .waiting].contains($0.state) && !$0.isFinishing }
            .compactMap { $0.partFile(in: directories.spool) }
            .compactMap { part in Self.look(part).map { (part: part, size: $0.st_size, disk: $0.st_dev) } }
        let largest = parts.filter { $0.disk == disk }.max { $0.size < $1.size }
        guard let largest, largest.size > 0, unlink(largest.part.path) == 0 else { return }
        log.write(.partGaveWay, (.file, largest.part.lastPathComponent), (.bytes, largest.size))
    }

    private static func look(_ url: URL) -> stat? {
        var information = stat()
        return stat(url.path, &information) == 0 ? information : nil
    }

    private func endSetback() {
        guard setback.count > 0 else { return }
        log.write(.ledgerRecovered, (.tries, setback.count))
        setback = Setback()
        lock.tell(nil)
    }

    private func pauseAfter(_ error: StoreError) {
        noteSetback(error)
        loop.run { if wasAskedToStop || setback.isOver(now: Date()) { loop.stop() } }
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
        loop.watch(descriptor) { [weak self, unowned agent] in
            var information = signalfd_siginfo()
            while read(descriptor, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
                // A closed terminal is no reason: the agent was meant to stay.
                if information.ssi_signo != UInt32(SIGHUP) {
                    self?.wasAskedToStop = true
                    agent.hear(.stopRequested)
                }
            }
        }
    }
}
