import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Coordinates the parts of the agent. The agent receives events, lets its parts record the events and plan effects, commits the
/// changes, and then performs the effects.
///
/// The agent uses one thread and one loop. The agent's database (ledger) contains all data that must not be lost when the agent
/// ends. The state of the parts can be derived from the ledger. The parts are values, so if a commit fails, the parts keep their
/// state, and the events are handled again. If an attempt has several progress events, only the latest event is kept.
package final class Agent {
    private let ledger: Ledger
    private let launcher: any Launcher<ProcessIdentity>
    private let ports: AgentPorts
    private let host: HostEnvironment
    /// The worker that hashes and syncs files.
    private let disk: DiskWorker
    private let random: () -> Double
    private let log: AgentLog
    /// Starts to watch an app process that waits for the agent's work. Returns `false` if the process has already ended.
    private let watchProcess: (ProcessIdentity) -> Bool
    /// Posts an event to this agent. Any thread can call this function.
    private let post: @Sendable (AgentEvent) -> Void

    private var parts: AgentParts
    private var receivedEvents: [AgentEvent] = []

    /// - Parameters:
    ///   - watchProcess: watches a process, and sends the end of the process as `.processEnded`. Returns `false` if the process
    ///     has already ended.
    ///   - post: posts an event to the thread of this agent, which passes the event to ``receive(_:)``.
    ///   - random: returns a number from 0 up to 1.
    ///   - log: receives the log entries instead of the journal and standard error.
    package init(
        ledger: Ledger, launcher: any Launcher<ProcessIdentity>, ports: AgentPorts, host: HostEnvironment,
        disk: DiskWorker = .shared, random: @escaping () -> Double = { Double.random(in: 0..<1) },
        log: ((LogEntry) -> Void)? = nil,
        watchProcess: @escaping (ProcessIdentity) -> Bool, post: @escaping @Sendable (AgentEvent) -> Void
    ) {
        (self.ledger, self.launcher, self.ports, self.host) = (ledger, launcher, ports, host)
        (self.disk, self.random, self.watchProcess, self.post) = (disk, random, watchProcess, post)
        self.log = AgentLog(ledger.directories, redirect: log)
        parts = AgentParts(
            ClockReading(of: host, zone: host.zone()), activation: Activation(isAvailable: ports.activator != nil))
    }

    /// The part of the agent that decides how long the agent runs.
    package var lifetime: Lifetime { parts.lifetime }

    /// The files that the app specified. If such a file changes, the pause after failed launches ends.
    package var watchedFiles: [String] { parts.passScope.settings.watchedFiles ?? [] }

    /// The folders that requests wait for.
    package var watchedFolders: Set<WatchedFolder> { parts.folders.wanted }

    /// Continues the agent, because new work arrived after the earlier work was complete.
    package func continueWork() { parts.lifetime.continueWork() }

    /// Requests the next start of the agent, if the agent exits although work is unfinished. Returns `false` if the request is
    /// refused. The agent then has to continue to run.
    package func armActivation() -> Bool {
        guard case .finished(.away(_, let until)) = parts.lifetime, let activator = ports.activator else { return true }
        do throws(ActivationFailure) {
            try activator.arm(at: until, folders: parts.folders.folders)
            log.write(.agentLeaves, (.until, until.map { $0.formatted(.iso8601) } ?? ""))
            return true
        } catch {
            log.write(.agentStays, (.reason, error))
            parts.activation.record(refusal: error, at: ClockReading(of: host, zone: parts.time.zone))
            continueWork()
            return false
        }
    }

    /// Returns `true` if this agent can be replaced now, because no operation is running that the next agent would have to
    /// continue.
    package func isAtRest() throws(StoreError) -> Bool {
        guard parts.attempts.isEmpty, !parts.planner.isShowing else { return false }
        return try ledger.read { try $0.liveLaunches().isEmpty }
    }

    // MARK: Events

    package func receive(_ event: AgentEvent) { receivedEvents.append(event) }

    /// Returns `true` if events were received, or if another process committed since the last pass. The agent's own commits also
    /// cause change notifications. If many small transfers run, the agent's own commits cause most change notifications.
    package func hasNews() throws(StoreError) -> Bool {
        guard receivedEvents.isEmpty else { return true }
        return parts.passScope.isNews(try ledger.readAfterRing { try $0.foreignVersion() })
    }

    // MARK: Turning

    /// Adopts, reports or removes the unfinished operations of an earlier agent. Call this method before any other work of a new
    /// agent.
    package func reconcile(version: String) throws(StoreError) {
        let inheritance = try Inheritance.read(from: ledger, version: version, now: host.now())
        for effect in inheritance.effects { perform(effect) }
        for launch in inheritance.launches {
            guard let id = launch.id else { continue }
            switch (launcher.isAlive(id), launch.process) {
            // The process started, but its identity was not committed. The process records its identity when it begins to run.
            case (true, nil) where launch.pid == nil: parts.launches.awaitIdentity(of: id)
            // An earlier version recorded only the process id. Another process may have this id by now.
            case (true, nil): parts.launches.markUnwatched(id)
            case (true, let process?): perform(.adoptLaunch(id, process))
            case (false, _): receive(.launchEnded(id, .unknown))
            }
        }
        try inheritance.finish(ledger)
        perform(.removeOrphans)
    }

    /// Handles the received events and all due work in the ledger. Returns the date at which this method has to be called again
    /// at the latest.
    ///
    /// - Throws: ``StoreError`` if the commit failed. The next call then handles these events again.
    package func turn() throws(StoreError) -> Date? {
        var wake: Date?
        // `true` if the previous pass changed rows. Another pass is then needed, because the agent's own commits do not wake the
        // agent. An earlier part may also have to handle rows that a later part changed.
        var isFollowUp = false
        for _ in 0..<100 {
            let look = try runPass()
            wake = look.wake
            let isDueAgain = parts.passScope.record(look.effects)
            for effect in look.effects { perform(effect) }
            // An effect may make other work due, for example if a launch cannot be started.
            guard receivedEvents.isEmpty, !isDueAgain else {
                isFollowUp = false
                continue
            }
            // If a pass found another process's commit, another pass is needed after this pass.
            if !look.hasChanged || (isFollowUp && !look.hadNews) { break }
            isFollowUp = true
        }
        // Some events are not handled yet, so `turn` has to be called again immediately.
        guard receivedEvents.isEmpty else { return host.now() }
        return parts.passScope.nextWake(wake, now: host.now())
    }

    private struct PassOutcome {
        var effects: [AgentEffect]
        var wake: Date?
        /// `true` if another complete pass may find more work.
        var hasChanged: Bool
        /// `true` if another process committed after the previous pass.
        var hadNews: Bool
    }

    /// Runs one pass. Slow operations run before the transaction, decisions are made inside the transaction, and log entries are
    /// written after the transaction.
    private func runPass() throws(StoreError) -> PassOutcome {
        let (events, hasLinked) = parts.attempts.finishEnded(receivedEvents.withoutLateProgress)
        receivedEvents = events
        if hasLinked, let trouble = FileName.sync(folder: ledger.directories.spool.path, disk.calls) {
            log.write(.folderNotSynced, (.reason, trouble.why))
        }
        let zone = events.contains(where: \.isTimeChange) ? host.zone() : parts.time.zone
        let moment = ClockReading(of: host, zone: zone)
        let desktop = ports.conditions.current
        let living = Set(parts.launches.unwatched.filter(launcher.isAlive))
        let (next, look, entries) = try commit { transaction in
            var next = parts
            let before = transaction.changeCount
            let version = try transaction.foreignVersion()
            let hadNews = next.passScope.isNews(version)
            let (extent, settings) = try next.passScope.begin(events, transaction, version: version, now: moment.now)
            var pass = Pass(transaction, settings, moment, desktop, ledger.directories, random: random)
            switch extent {
            case .everything: try next.planEverything(events, living: living, &pass)
            case .transfers: try next.planTransfers(events, &pass)
            }
            next.passScope.end(extent, &pass)
            let hasChanged = next.passScope.isDue(after: extent, hasChanged: transaction.changeCount != before)
            let look = PassOutcome(effects: pass.effects, wake: pass.wake, hasChanged: hasChanged, hadNews: hadNews)
            return (next, look, pass.entries)
        }
        (parts, receivedEvents) = (next, [])
        for entry in entries { log.write(entry) }
        return look
    }

    /// Commits the changes of a pass. If the commit fails, the received events are kept. While the disk is full, for example,
    /// many commits can fail, so the number of kept events is limited.
    private func commit<Value>(_ body: (LedgerTransaction) throws -> Value) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try ledger.write(body)
        } catch {
            receivedEvents = receivedEvents.withLatestProgressOnly
            let now = parts.time.undisturbed(ClockReading(of: host, zone: parts.time.zone))
            for effect in parts.launches.superviseUnrecorded(now: now) { perform(effect) }
            throw error
        }
    }

    // MARK: Performing

    /// Performs an effect. This method is called only after the commit, because a commit can fail.
    private func perform(_ effect: AgentEffect) {
        switch effect {
        case .startLaunch(let id): startLaunch(id)
        case .adoptLaunch(let id, let process):
            switch launcher.adopt(id, process) {
            case .watched: log.write(.launchAdopted, (.launch, id), (.pid, process.pid))
            case .outOfReach: parts.launches.markUnwatched(id)
            case .gone: receive(.launchEnded(id, .unknown))
            }
        case .warnLaunch(let id): launcher.warn(id)
        case .killLaunch(let id): launcher.kill(id)
        case .endLaunch(let id): receive(.launchEnded(id, .unknown))
        case .forgetLaunch(let id): launcher.forget(id)
        case .startAttempt(let id): startAttempt(id)
        case .stopAttempt(let id):
            guard let attempt = parts.attempts.stop(id) else { return }
            ports.transport.cancel(attempt)
            receive(.attemptStopped(attempt))
        case .checkProof(let id, let expectation):
            let proof = FileProof(expectation, disk.calls) { [post] in post(.proofChecked(id, $0)) }
            disk.enqueue(proof, .more)
            if !disk.hasThread { disk.catchUp() }
        case .placeFile(let id, let part, let whole, let sight): placeFile(id, part, whole, sight)
        case .tidyServer(let request, let attempt): ports.transport.start(attempt, request, source: nil, sink: ResponseSink())
        case .removeFile(let file): unlink(file.path)
        case .removeOrphans:
            if !ledger.directories.removeOrphans(knownTo: ledger) {
                parts.cleanup.postponeOrphanRemoval(ClockReading(of: host, zone: parts.time.zone))
            }
        case .present(let notice, let number, let server): ports.presenter.present(notice, replacing: number, of: server)
        case .withdraw(let identifier, let number, let server):
            ports.presenter.withdraw(identifier: identifier, serverID: number, of: server)
        case .adoptNotification(let identifier, let number, let server):
            ports.presenter.adoptNotification(identifier: identifier, serverID: number, of: server)
        case .showBadge(let count): ports.presenter.showBadge(count, desktopEntry: ledger.directories.appIdentifier)
        case .askServer: ports.presenter.query()
        case .watchProcess(let process): if !watchProcess(process) { receive(.processEnded(process)) }
        case .sessionChanged(let session): ports.sessionChanged(session)
        case .armAlarm(let instant): armAlarm(at: instant)
        case .lookAtMachine:
            if let manager = ports.sleepManager { manager.query() } else { receive(.sleepEvent(.machineState(nil))) }
        case .delaySleep: ports.sleepManager?.delaySleep()
        case .allowSleep: ports.sleepManager?.allowSleep()
        case .suspendMachine: ports.sleepManager?.suspend()
        }
    }

    private func armAlarm(at instant: Date?) {
        guard let clock = ports.wakeClock else { return receive(.alarmRefused(WakeRefusal("this host cannot set an alarm"))) }
        do throws(WakeRefusal) { try clock.arm(at: instant) } catch { receive(.alarmRefused(error)) }
    }

    private func startLaunch(_ id: Int64) {
        KillPoint.reach(.launchCommitted)
        do {
            receive(.launchStarted(id, try launcher.start(id)))
        } catch {
            if let missing = error as? AppIsMissing { receive(.appIsMissing(missing)) }
            receive(.launchFailed(id, reason: "\(error)"))
        }
    }

    private func startAttempt(_ id: Int64) {
        switch parts.attempts.start(id, disk: disk, now: host.now(), post: post) {
        case .attempt(let attempt, let wire):
            ports.transport.start(attempt.id, wire.request, source: wire.source, sink: wire.sink)
        case .withoutSource(let attempt, let trouble): receive(.attemptWithoutSource(attempt, trouble))
        case nil: break
        }
    }

    private func placeFile(_ id: Int64, _ part: URL, _ whole: URL, _ sight: FileVersion) {
        let mayReplace: Bool
        do throws(StoreError) {
            let transfer = try ledger.read { try $0.transfer(id) }
            // If the transfer was cancelled after the commit, its file must not appear in the user's folder.
            guard let transfer, transfer.state == .running, transfer.isFinishing else { return receive(.filePlaced(id, nil)) }
            let isTheOne = transfer.replacedFile.map { $0 == FileIdentity(whole.path)?.text } ?? true
            mayReplace = transfer.destination == nil || transfer.mayReplace && isTheOne
            let folder = transfer.partPlace(in: ledger.directories.spool)?.seenFolder
            if let trouble = FileTrouble.otherFolder(of: whole, folder) { return receive(.filePlaced(id, .failed(trouble))) }
        } catch {
            return receive(.filePlaced(id, .failed(FileTrouble(why: "\(error)", isPassing: true))))
        }
        KillPoint.reach(.transferPlacing, id)
        var giving =
            FileName.objection(to: part, whole, sight, disk.calls)
            ?? FileName.rename(part, whole, replacing: mayReplace, disk.calls)
        // Another program may have moved another file to the path of the partial file before this file was renamed.
        if giving == .given, let placed = FileVersion.named(whole.path, disk.calls), !placed.isStill(sight.ofContent) {
            giving = .changed
        }
        // After a temporary error, the renaming is repeated later. The repetition then finds that the file already has its final
        // name.
        if giving == .given, let trouble = FileName.sync(folder: whole.deletingLastPathComponent().path, disk.calls) {
            giving = .failed(trouble)
        }
        KillPoint.reach(.transferPlaced, id)
        receive(.filePlaced(id, giving))
    }
}
