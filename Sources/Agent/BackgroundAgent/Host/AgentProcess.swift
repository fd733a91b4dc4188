import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation
import TransferMachines

/// The process of an agent: its lock, ledger, loop and signals. The program provides the ports.
package final class AgentProcess {
    private let ledger: Ledger
    private let loop: EventLoop
    /// A descriptor that is readable after the process was asked to stop.
    private let stopSignal: Int32
    private let lock: AgentLock
    private var setback = Setback()
    private var wasAskedToStop = false
    private let changes: ChangeWatch
    private let folders: FolderWatch
    private var program: ProgramFile
    private var log: AgentLog { AgentLog(ledger.directories) }

    /// Opens the agent's database (ledger). Temporary errors are a full disk, a disk error or too many open files. After a
    /// temporary error the call tries again, because without this agent no process would launch the app.
    ///
    /// Returns `nil` if another agent of this app is already running. The other agent may use another runtime folder, because the
    /// lock is next to the ledger. If the service manager started this agent, the call waits instead of returning `nil`. The
    /// waiting agent continues if the other agent ends although work is unfinished.
    /// - Throws: A permanent error is thrown immediately. A temporary error is thrown only if the process has to stop, or if the
    ///   lock or the ledger cannot be used for some minutes.
    package init?(appIdentifier: String) throws(StoreError) {
        let directories = AppDirectories(appIdentifier: appIdentifier)
        let lock = AgentLock(directories)
        program = ProgramFile(appIdentifier: appIdentifier)
        // The number of tries is limited. As long as no process holds the lock, every command may start another process that
        // waits in the same way.
        let isAlone = try Self.waitingOut(upTo: Self.boundedTries, lock) { () throws(StoreError) in
            try directories.createStateFolders()
            return try lock.acquire()
        }
        if !isAlone {
            guard ThisProcess.isUserManagers else { return nil }
            ServiceManager.reportReady("This agent waits, because another agent runs.")
            try lock.waitForOtherAgent()
        }
        // The loop is created before any wait that does not use `sigtimedwait`. The signals are blocked, so only the loop can
        // handle them.
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
            // This empty write tests whether the ledger can be written. SQLite opens a read-only write-ahead log without an
            // error, and reports the error only at the first write.
            try ledger.write(usesReserve: false) { _ in }
            return ledger
        }
        self.lock = lock
        changes = ChangeWatch(ledger, loop, lock)
        let post = loop.poster
        folders = FolderWatch(loop) { report in
            post {
                switch report {
                case .changing: Self.current?.receive(.folderChanging)
                case .examined(let folder, let finding): Self.current?.receive(.folderExamined(folder, finding))
                }
            }
        }
        while !isAlone, try !ledger.read({ try $0.hasUnfinishedWork() }) {
            // A command may have queued work before the lock was released. The command found the lock held, so it started no
            // other agent.
            lock.release()
            guard try ledger.read({ try $0.hasUnfinishedWork() }), try lock.acquire() else { return nil }
        }
    }

    /// The number of descriptors that the ledger and the desktop need. If a GLib loop gets no descriptor, GLib ends the process.
    private static let descriptorsAtStart = 21

    /// The number of tries that are possible in about three minutes.
    private static let boundedTries = 8

    /// Repeats an operation until it succeeds, with growing pauses.
    ///
    /// - Parameter limit: the maximum number of tries, or `nil` for no limit. If this process is not permitted to write, the
    ///   limit is always ``boundedTries``.
    private static func waitingOut<Value>(
        upTo limit: Int?, _ lock: AgentLock, _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        var setback = Setback()
        while true {
            do throws(StoreError) {
                let value = try body()
                if setback.count > 0 { lock.publish(nil) }
                return value
            } catch {
                guard error.mayPass, setback.count < (error.isPassing ? limit ?? .max : boundedTries) else { throw error }
                lock.publish(setback.count(error, now: Date()))
                ServiceManager.reportReady("Waits: \(error)")
                if isAskedToStop(within: Int(setback.pause)) { throw error }
            }
        }
    }

    /// Posts events to the agent's loop. The function can be called on any thread, while ``run(version:ports:)`` is running.
    package var inbox: @Sendable (AgentEvent) -> Void {
        let post = loop.poster
        return { event in post { Self.current?.receive(event) } }
    }

    /// Returns the activator that starts this agent again after its exit. Returns `nil` if the service manager passed no socket
    /// to this process.
    ///
    /// - Parameter make: creates the activator. The arguments of `make` are the directories of the app, and a function that
    ///   returns the app's name for the user.
    package func activation(
        _ make: (AppDirectories, @escaping @Sendable () -> String) -> any AgentActivator
    ) -> (any AgentActivator)? {
        guard ServiceManager.bell != nil else { return nil }
        let ledger = ledger
        return make(ledger.directories) {
            ((try? ledger.read { try $0.fact(.app) }) ?? nil)?.displayName ?? ledger.directories.appIdentifier
        }
    }

    /// The alarm clock, which uses the loop of this process.
    package var wakeClock: any WakeClock {
        // The alarm clock is used only on the loop's thread, because the agent performs effects on this thread.
        nonisolated(unsafe) let loop = loop
        return AlarmTimer(
            watch: { descriptor throws(StoreError) in
                try loop.watch(descriptor) {
                    var rings: UInt64 = 0
                    if read(descriptor, &rings, 8) > 0 { Self.current?.receive(.alarmRang) }
                }
            }, unwatch: { loop.unwatch($0) })
    }

    /// The agent of this process, which is used only on the loop's thread. Posted calls run on this thread.
    nonisolated(unsafe) private static var current: Agent?

    /// The exit code after a temporary error, for example a lost lock. The agent must be started again a little later.
    ///
    /// After such an error, the state in memory differs from the state on the disk. A new process reads the state again.
    package static let tryAgain: Int32 = 75

    /// The exit code after a newer version changed the ledger or replaced the program, or after a file of the ledger was
    /// replaced. Another agent must continue immediately.
    package static let superseded: Int32 = 76

    /// Runs the agent until all work is complete or the process has to stop. Returns the exit code.
    package func run(version: String, ports: AgentPorts, host: HostEnvironment = .real) throws(StoreError) -> Int32 {
        let launcher = ProcessLauncher(ledger: ledger, loop: loop, environment: host.environment)
        let watch = ProcessWatch(loop: loop, directories: ledger.directories)
        let agent = Agent(
            ledger: ledger, launcher: launcher, ports: ports, host: host, watchProcess: { watch.watch($0) }, post: inbox)
        Self.current = agent
        defer { Self.current = nil }
        launcher.onEnd = { [unowned agent] in agent.receive(.launchEnded($0, $1)) }
        watch.onEnd = { [unowned agent] in agent.receive(.processEnded($0)) }
        loop.onClockChange = { [unowned agent] in agent.receive(.timeChanged) }
        log.write(.agentStarted, (.pid, getpid()))
        let host = AgentHost(agent, now: host.now)
        do throws(StoreError) {
            try watchSignals(agent)
            if let bell = ServiceManager.bell { try loop.watch(bell) { ServiceManager.drain(bell) } }
            repeat {
                guard try reconcile(agent, version) else { return 0 }
                ServiceManager.reportReady("Runs.")
                let ending = run(host, agent)
                if case .troubled(let error) = ending { throw error }
                // This check runs while the lock is held, because the next agent opens the ledger as soon as the lock is free.
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
            } while try canContinueWork(agent, host)
        } catch {
            return try exitCode(after: error)
        }
        ServiceManager.reportStopping()
        log.write(.agentStopped)
        return 0
    }

    /// Handles the unfinished operations of an earlier agent. If the ledger cannot be written, the method tries again.
    ///
    /// - Returns: `false` if the process was asked to stop before the method succeeded.
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

    /// Returns `true` if work arrived between the last pass and the release of the lock. The app that queued such work found the
    /// lock held and started no agent.
    private func canContinueWork(_ agent: Agent, _ host: AgentHost) throws(StoreError) -> Bool {
        switch agent.lifetime {
        case .finished(.quit), .quitting, .finished(.superseded): return false
        case .finished(.idle), .working, .draining:
            guard try ledger.read({ try $0.hasUnfinishedWork() }), try lock.acquire() else { return false }
        case .finished(.away(_, let until)):
            // If the machine slept before the service ended, systemd's timer had no effect, because systemd does not start a
            // second service while this service runs.
            let isDue = until.map { $0 <= host.now() } ?? false
            // Events may have arrived during the call to the user manager. The agent then continues, because some events are
            // reported only once, for example a changed time zone.
            let hasNews = loop.hasNews || folders.hasReports ? true : try agent.hasNews()
            guard isDue || hasNews, try lock.acquire() else { return false }
        }
        agent.continueWork()
        host.continueWork()
        return true
    }

    private func exitCode(after error: StoreError) throws(StoreError) -> Int32 {
        if ledger.isReplaced { saveLedger() }
        // A process that opened the ledger without the permission to write can never write to it. The next process opens the
        // ledger again.
        guard error.mayPass else { throw error }
        if wasAskedToStop {
            log.write(.agentStoppedInTrouble, (.reason, error))
            return 0
        }
        log.write(.agentStartsAfresh, (.reason, error))
        // A new process must open the saved ledger before another process changes it.
        if case .replaced = error { return Self.superseded }
        return Self.tryAgain
    }

    /// Saves the ledger after its file was replaced, because some data exists only in the open file of this process.
    private func saveLedger() {
        do throws(StoreError) {
            try Self.waitingOut(upTo: Self.boundedTries, lock) { () throws(StoreError) in try ledger.save() }
        } catch {
            ledger.releaseUnsaved()
            log.write(.ledgerNotSaved, (.reason, error))
        }
    }

    /// The reason why the loop ended.
    private enum Ending {
        /// No work is left, or the process was asked to stop.
        case finished
        /// The program was replaced, and the new program continues.
        case makesWay
        /// An error makes it impossible for this process to continue.
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

    /// Runs one turn of the agent: the checks, the passes, and the timer for the next turn.
    ///
    /// - Returns: `nil` if the loop continues.
    private func turn(_ host: AgentHost, _ agent: Agent) -> Ending? {
        do throws(StoreError) {
            guard !ledger.isReplaced else { return .troubled(.replaced(path: ledger.directories.ledger.path)) }
            guard try lock.isStillHeld() else {
                log.write(.lockLost)
                return .troubled(.busy(path: ledger.directories.agentLock.path))
            }
            guard setback.count == 0 || wasAskedToStop || setback.isOver(now: Date()) else { return nil }
            // The watch starts before the pass, so that changes during and after the pass are reported.
            listen(agent)
            // This check runs before a turn, because the new program should do the work that a turn would begin, for example a
            // due launch.
            if program.isReplaced, try host.agent.isAtRest(), program.canContinueWork(now: ContinuousClock.now) {
                return .makesWay
            }
            try host.turn()
            // The watch is updated, because the pass may have read a new list of the files that the app specified.
            listen(agent)
            endSetback()
            DiskReserve.create(ledger.directories)
            if try isResting(host) { ledger.checkpointLog() }
            // The timer always uses the real clock, but `host` may use a simulated clock.
            let ahead = host.now().timeIntervalSinceNow
            let wake = abs(ahead) < 0.001 ? host.wake : host.wake?.addingTimeInterval(-ahead)
            loop.setTimer([wake, changes.nextCheckTime, folders.nextCheckTime].compactMap { $0 }.min())
            guard host.hasFinished else { return nil }
            if host.agent.armActivation() { return .finished }
            // No program can start the agent again, so the agent continues. The next turn runs immediately, because it records
            // the reason.
            host.continueWork()
            loop.setTimer(Date())
            return nil
        } catch {
            guard error.isPassing, !ledger.isReplaced, !wasAskedToStop else { return .troubled(error) }
            // The failed commit did not change the parts, so the next turn handles the events again.
            handleLedgerFailure(error)
            return nil
        }
    }

    private func listen(_ agent: Agent) {
        changes.listen(to: agent.watchedFiles) { [unowned agent] in agent.receive(.filesChanged) }
        folders.observe(agent.watchedFolders)
    }

    /// Returns `true` if no work is running, and no work becomes due soon.
    private func isResting(_ host: AgentHost) throws(StoreError) -> Bool {
        if let wake = host.wake, wake.timeIntervalSince(host.now()) < 3 { return false }
        return try host.agent.isAtRest()
    }

    private func handleLedgerFailure(_ error: StoreError) {
        if setback.count == 0 { log.write(.ledgerTroubled, (.reason, error)) }
        if error.mayMeanFullDisk, setback.count >= 2 { LedgerRoom(ledger).make() }
        lock.publish(setback.count(error, now: Date()))
        loop.setTimer(setback.nextTry)
    }

    private func endSetback() {
        guard setback.count > 0 else { return }
        log.write(.ledgerRecovered, (.tries, setback.count))
        setback = Setback()
        lock.publish(nil)
    }

    private func pauseAfter(_ error: StoreError) {
        handleLedgerFailure(error)
        ServiceManager.reportReady("Waits: \(error)")
        loop.run { if wasAskedToStop || setback.isOver(now: Date()) { loop.stop() } }
    }

    static var stopSignals: sigset_t { signalSet([SIGTERM, SIGINT]) }

    /// The signals that would end a process but have no meaning for an agent. For example, a closed terminal (SIGHUP) does not
    /// stop an agent. The last numbers are the real-time signals. SIGPROF is not in the list, because Swift's crash handler stops
    /// threads with SIGPROF.
    private static let ignoredSignals: [Int32] =
        [SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPOLL, SIGPWR, SIGSTKFLT] + Array(34...64)

    private static func signalSet(_ signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }

    /// Blocks signals. Call this method before any thread is created. A thread that does not block SIGTERM would receive it, and
    /// the process would end.
    package static func blockSignals() {
        var signals = signalSet([SIGTERM, SIGINT] + ignoredSignals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for a stop signal, for at most this number of seconds. Use this method if no loop is running, because a blocked
    /// signal does not end other kinds of waits.
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
                agent.receive(.stopRequested)
            }
        }
    }
}
