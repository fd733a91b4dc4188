import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import TransferMachines

/// The decider: one event or ring at a time it reads the ledger, decides, commits, and then performs.
///
/// One thread, one loop. Everything it must remember over its own death is in the ledger; what it holds here
/// (supervision clocks, running attempts) can be derived again.
package final class Agent {
    let ledger: Ledger
    let launcher: any Launcher
    let ports: AgentPorts
    let log: AgentLog
    /// Where part files are hashed and synced.
    let disk: DiskWorker
    /// A number from 0 up to 1: retries are spread by it.
    let random: () -> Double
    let now: () -> Date
    /// Seconds that pass while the machine is awake, whatever its clock says.
    let monotonic: () -> Double
    /// Seconds that the machine has slept since it was started.
    let slept: () -> Double
    /// ``slept`` as last seen.
    var lastSlept: Double
    /// Clock minus ``monotonic`` as last seen.
    var clockOffset: Double
    /// The time zone in force; asked for anew after a change.
    package var zone: TimeZone
    /// Hears of the end of processes that wait for us. `false`: gone already.
    package var watchProcess: (ProcessIdentity) -> Bool = { _ in true }
    /// Has this agent hear something, from any thread.
    package var post: @Sendable (AgentEvent) -> Void = { _ in }

    var events: [AgentEvent] = []
    var supervised: [Int64: LaunchSupervision] = [:]
    var endedLaunches: [Int64: ProcessEnd] = [:]
    var endedProcesses: Set<ProcessIdentity> = []
    var followed: Set<ProcessIdentity> = []
    var running: [Int64: RunningTransfer] = [:]
    /// Attempts that are committed and not yet handed to the transport.
    var prepared: [Int64: PreparedTransfer] = [:]
    /// The host that was served last.
    var lastHost = ""
    /// Transfers that may end before the oldest ended ones are looked at: are they too many?
    var endsBeforePruning = 0
    /// When (``monotonic``) files that no row knows are looked for again, if somebody was in the way.
    var orphansDue: Double?
    static let endsPerPruning = 100
    /// How often in a row a transfer reached nobody.
    var unreached: [Int64: Int] = [:]
    /// Upload machines between two requests of theirs.
    var uploads: [Int64: UploadMachine] = [:]
    /// Launches of an earlier agent whose process has not said who it is.
    var awaitingPID: Set<Int64> = []
    /// Notifications that a server refused or that found none: not tried again before something changes.
    var unpresentable: [String: Int] = [:]
    var knownSession: SessionEnvironment?
    var hasToldSession = false
    var isQuitting = false
    /// A person ended all work: what handlers ask for while they are stopped is not wanted either.
    var isQuittingForGood = false
    /// What runs is let finish, nothing new begins, and then another agent takes over.
    var isDraining = false
    /// What the ledger said of others' commits at the last look.
    private var seenVersion = 0
    /// As of then.
    private var settings = AgentSettings()
    /// When all of it is to be looked at again at the latest, not the transfers alone.
    private var lookAtAll = Date.distantPast
    private var mustLookAtAll = true
    /// Migrations of the ledger that are known to be ours.
    private var knownMigrations = 0
    /// Notifications handed to the presenter that it has not answered for, and since when.
    var beingShown: [String: Date] = [:]
    /// Progress notifications of continued processing, by launch.
    var shownProgress: [Int64: ShownProgress] = [:]
    var mustReplan = true
    /// The moment that lay behind when it was asked for last.
    private var lastPastWake: Date?
    /// Since when nothing is left to do.
    var idleSince: Date?
    package var isFinished = false

    /// Since when nothing kept this agent from looking: its start, the end of a sleep, a clock that was set.
    var lookingSince: Date
    /// Progress of continued processing that was heard of.
    var seenProgress: [Int64: Date] = [:]
    /// Conditions are known, not guessed. Until then no request is launched.
    var knowsConditions = false
    let startedAt: Double
    /// Seconds without unfinished work after which the agent leaves.
    static let linger: Double = 5

    package init(
        ledger: Ledger, launcher: any Launcher, ports: AgentPorts, zone: TimeZone, now: @escaping () -> Date,
        monotonic: @escaping () -> Double = Agent.awakeSeconds, slept: @escaping () -> Double = Agent.sleptSeconds,
        disk: DiskWorker = .shared, random: @escaping () -> Double = { Double.random(in: 0..<1) },
        log: ((String) -> Void)? = nil
    ) {
        self.ledger = ledger
        self.disk = disk
        self.random = random
        self.log = AgentLog(file: ledger.directories.agentLog, write: log)
        self.launcher = launcher
        self.ports = ports
        self.zone = zone
        self.now = now
        self.monotonic = monotonic
        self.slept = slept
        startedAt = monotonic()
        lookingSince = now()
        lastSlept = slept()
        clockOffset = now().timeIntervalSince1970 - monotonic()
    }

    package static func awakeSeconds() -> Double { seconds(of: CLOCK_MONOTONIC) }

    package static func sleptSeconds() -> Double { seconds(of: CLOCK_BOOTTIME) - seconds(of: CLOCK_MONOTONIC) }

    private static func seconds(of clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Something was heard that no turn has handled.
    package var hasHeard: Bool { !events.isEmpty }

    package func hear(_ event: AgentEvent) { events.append(event) }

    /// Handles what was heard and whatever the ledger asks for. Returns when to be called again at the latest.
    package func turn() throws(LedgerError) -> Date? {
        var wake: Date?
        var hasLookedAgain = false
        // Performing may make something else due (a launch that cannot start): look again until nothing is.
        for _ in 0..<100 {
            let heard = events.withoutLateProgress
            events = []
            for case .transport(.ended(let attempt, let end)) in heard {
                guard let ended = running[attempt.transfer], ended.attempt == attempt else { continue }
                if case .download(let file) = ended.work { file.settle(end) }
            }
            let (effects, next, hasChanged) = try ledger.write { transaction in try look(at: heard, transaction) }
            wake = next
            for effect in effects { try perform(effect) }
            if effects.contains(where: { !$0.isOfTransfersAlone }) { mustLookAtAll = true }
            guard events.isEmpty, effects.isEmpty || !mustLookAtAll else { continue }
            // What was decided last may matter to what was decided first: one more look, as our own commits ring no more.
            if !hasChanged || hasLookedAgain { break }
            hasLookedAgain = true
        }
        // Still something heard: come back at once rather than never.
        guard events.isEmpty else { return now() }
        guard let wake, wake <= now() else { return wake }
        // A moment that lies behind and was not acted upon, a second time: looking again at once would find the same.
        defer { lastPastWake = wake }
        return wake == lastPastWake ? now().addingTimeInterval(1) : now()
    }

    /// One pass, inside its transaction. `hasChanged`: so that another look at all of it may find more.
    private func look(
        at heard: [AgentEvent], _ transaction: LedgerTransaction
    ) throws -> (effects: [AgentEffect], wake: Date?, hasChanged: Bool) {
        let (version, before) = (try transaction.foreignVersion(), transaction.changeCount)
        let moment = now()
        if version == seenVersion, !heard.isEmpty, heard.allSatisfy(\.isOfTransport), !mustLookAtAll, lookAtAll > moment {
            var pass = Pass(transaction: transaction, settings: settings, now: moment)
            pass.wake(at: lookAtAll)
            try decideTransfers(heard, &pass)
            // The last one is over: it may be time to leave. Or the machine has slept.
            if running.isEmpty && prepared.isEmpty || mustReplan { mustLookAtAll = true }
            return (pass.effects, pass.wake, mustLookAtAll)
        }
        (seenVersion, mustLookAtAll) = (version, false)
        settings = try transaction.fact(.settings) ?? AgentSettings()
        var pass = Pass(transaction: transaction, settings: settings, now: moment)
        try decide(heard, &pass)
        syncPlaces(pass)
        lookAtAll = pass.wake ?? .distantFuture
        return (pass.effects, pass.wake, transaction.changeCount != before)
    }

    private func syncPlaces(_ pass: Pass) {
        guard pass.placesFiles, let trouble = DownloadFile.syncFolder(ledger.directories.spool.path) else { return }
        log.note(trouble)
    }

    /// Something was heard, or somebody else wrote since the last look. The bell rings for our own commits, too, and with
    /// many small transfers most rings are those.
    package func hasNews() throws(LedgerError) -> Bool {
        guard events.isEmpty else { return true }
        return try ledger.readAfterRing { try $0.foreignVersion() } != seenVersion
    }

    /// One transaction's worth of deciding.
    struct Pass {
        let transaction: LedgerTransaction
        let settings: AgentSettings
        let now: Date
        var effects: [AgentEffect] = []
        var wake: Date?
        /// Small files of the spool got their names.
        var placesFiles = false

        init(transaction: LedgerTransaction, settings: AgentSettings, now: Date) {
            self.transaction = transaction
            self.settings = settings
            self.now = now
        }

        mutating func wake(at date: Date?) {
            guard let date else { return }
            wake = min(wake ?? date, date)
        }
    }

    private func decide(_ heard: [AgentEvent], _ pass: inout Pass) throws {
        try noticeNewerVersion(&pass)
        shiftBudgets(now: pass.now)
        try noticeSleep(&pass)
        for event in heard { try note(event, &pass) }
        try noteSession(&pass)
        try answerQuestions(&pass)
        try adoptLateLaunches(&pass)
        try planContinuedProcessing(&pass)
        try finishEndedLaunches(&pass)
        try supervise(&pass)
        try followProcesses(&pass)
        try planTimes(&pass)
        if !isQuitting, !isDraining {
            try planRequests(&pass)
            try startContinuedProcessing(&pass)
            try planTimeChanges(&pass)
            try planTransfers(&pass)
            // After them: what ended just now is told.
            try planDeliveries(&pass)
        }
        if !isDraining {
            try planNotices(&pass)
            try planProgressNotices(&pass)
        }
        try considerLeaving(&pass)
        planOrphans(&pass)
    }

    /// The same, where nothing but the wire has spoken since everything was looked at: with many small transfers that is
    /// almost every time.
    private func decideTransfers(_ heard: [AgentEvent], _ pass: inout Pass) throws {
        shiftBudgets(now: pass.now)
        try noticeSleep(&pass)
        for event in heard { try note(event, &pass) }
        if !isQuitting, !isDraining {
            try planTransfers(&pass)
            try planDeliveries(&pass)
        }
        syncPlaces(pass)
    }

    private func note(_ event: AgentEvent, _ pass: inout Pass) throws {
        switch event {
        case .transport(let event): try note(event, &pass)
        case .presenter(let event): if try !noteProgressNotice(event, &pass) { try note(event, &pass) }
        case .transferSynced(let attempt): try noteSynced(attempt, &pass)
        case .transferPlaced(let id, let trouble): try notePlaced(id, trouble, &pass)
        case .conditions(let conditions): try note(conditions, &pass)
        case .timeChanged:
            mustReplan = true
            lookingSince = pass.now
        case .zoneChanged: mustReplan = true
        case .resumed: try noteResume(&pass)
        case .launchEnded(let id, let end): endedLaunches[id] = end
        case .processEnded(let process): endedProcesses.insert(process)
        case .stopRequested: try beginQuitting(&pass)
        }
    }

    /// A verb told where the person's session is.
    private func noteSession(_ pass: inout Pass) throws {
        let session = try pass.transaction.fact(.sessionEnvironment)
        guard !hasToldSession || session != knownSession else { return }
        hasToldSession = true
        knownSession = session
        unpresentable = [:]
        pass.effects.append(.sessionChanged(session))
    }

    // MARK: Questions

    private func answerQuestions(_ pass: inout Pass) throws {
        for question in try pass.transaction.openQuestions() {
            let answer: String
            switch question.verb {
            case .simulateLaunch: answer = try simulateLaunch(question.argument, &pass)
            case .simulateExpire: answer = try simulateExpiry(question.argument, &pass)
            case .quit:
                isQuittingForGood = true
                try beginQuitting(&pass)
                answer = "stopping"
            }
            try pass.transaction.answer(question.id!, answer)
        }
    }

    // MARK: Leaving

    /// Stops what runs, waits for it, then leaves. What is queued stays in the ledger.
    private func beginQuitting(_ pass: inout Pass) throws {
        guard !isQuitting else { return }
        isQuitting = true
        log.note("stopping")
        for launch in try pass.transaction.liveLaunches() { try stop(launch, .quit, &pass) }
        try letGoOfTransfers(&pass)
    }

    /// Their parts are kept; the next agent goes on with them.
    private func letGoOfTransfers(_ pass: inout Pass) throws {
        for (id, attempt) in running {
            guard var transfer = try pass.transaction.transfer(id) else { continue }
            try stop(&transfer, attempt, &pass)
        }
    }

    /// Asked inside the transaction: the bell rings before a commit is visible, and this one may be the last for hours.
    private func noticeNewerVersion(_ pass: inout Pass) throws {
        let count = try pass.transaction.migrationCount()
        guard !isDraining, count != knownMigrations else { return }
        knownMigrations = count
        guard try pass.transaction.isSuperseded() else { return }
        isDraining = true
        log.note("a newer version has taken over the ledger: leaving when what runs has ended")
        try letGoOfTransfers(&pass)
    }

    private func considerLeaving(_ pass: inout Pass) throws {
        if isDraining, !isQuitting {
            // Continued processing is not ours to wait for: it runs in processes of its own.
            let waits = try pass.transaction.liveLaunches().contains { $0.kind != .continuedProcessing }
            isFinished = !waits && beingShown.isEmpty
            return
        }
        let hasLaunches = try !pass.transaction.liveLaunches().isEmpty
        let notices = try pass.transaction.notifications()
        if isQuitting {
            // One that is on its way to the screen is remembered as shown, if its server answers soon: else it would be shown again.
            let answers = beingShown.values.map { $0.addingTimeInterval(Self.presenterPatience) }.filter { $0 > pass.now }
            isFinished = !hasLaunches && !notices.contains { $0.state == .withdrawing } && answers.isEmpty
            if let answer = answers.max() { pass.wake(at: answer) }
            // The verb took away what there was; a handler that asks for its next launch first did so after that.
            if isFinished, isQuittingForGood { try pass.transaction.deleteRequestsOfLaunches() }
            return
        }
        let hasWork = try pass.transaction.hasUnfinishedWork() || !running.isEmpty
        guard !hasWork else {
            idleSince = nil
            return
        }
        let since = idleSince ?? pass.now
        idleSince = since
        let leaveAt = since.addingTimeInterval(Self.linger)
        isFinished = pass.now >= leaveAt || pass.now < since
        pass.wake(at: leaveAt)
    }

    // MARK: Performing

    private func perform(_ effect: AgentEffect) throws(LedgerError) {
        switch effect {
        case .startLaunch(let id): try startLaunch(id)
        case .warnLaunch(let id): launcher.warn(id)
        case .killLaunch(let id): launcher.kill(id)
        case .forgetLaunch(let id): launcher.forget(id)
        case .startTransfer(let id): startTransfer(id)
        case .stopAttempt(let id): stopAttempt(id)
        case .placeFile(let id): try placeFile(id)
        case .removeFile(let file): unlink(file.path)
        case .removeOrphans: removeOrphans()
        case .tidyServer(let request, let attempt): ports.transport.start(attempt, request, source: nil, sink: AnswerSink())
        case .present(let notice, let serverID): ports.presenter.present(notice, replacing: serverID)
        case .withdraw(let identifier, let serverID):
            ports.presenter.withdraw(identifier: identifier, serverID: serverID)
        case .watchProcess(let process):
            if !watchProcess(process) { hear(.processEnded(process)) }
        case .sessionChanged(let session): ports.sessionChanged(session)
        }
    }
}
