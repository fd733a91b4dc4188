import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// The agent's state in memory. Each fact belongs to a single part. This type defines the order in which the parts record events
/// and plan effects.
struct AgentParts {
    var time: TimeWatch
    var passScope = PassScope()
    var lifetime = Lifetime.working(idleSince: nil)
    var conditions: Conditions
    var launches = Launches()
    var watchedProcesses = WatchedProcesses()
    var attempts = Attempts()
    var planner = NotificationPlanner()
    var cleanup = Cleanup()
    var activation: Activation
    var wakes = SystemWakes()
    var folders = FolderChanges()
    /// The number of migrations in the ledger when this agent last checked whether a newer version changed the ledger.
    private var knownMigrations = 0

    init(_ moment: ClockReading, activation: Activation) {
        self.activation = activation
        time = TimeWatch(moment)
        conditions = Conditions(moment)
    }

    // MARK: The order

    /// Makes all decisions of one transaction of the agent. The order of the steps matters.
    mutating func planEverything(_ heard: [AgentEvent], living: Set<Int64>, _ pass: inout Pass) throws {
        // Checks whether a newer version changed the ledger, so that this agent has to end. The check is inside the transaction,
        // because a change notification arrives before the commit is visible. The next change notification may arrive only hours
        // later.
        try noticeNewerVersion(&pass)
        // The clocks are checked before the time budgets, because a launch must not lose a part of its budget when the clock is
        // set.
        try checkClocks(&pass)
        for event in heard { try handle(event, &pass) }
        if try watchedProcesses.readSessionEnvironment(&pass) { planner.tryAgain() }
        // A command may begin or end a launch, which is then supervised below.
        try answerQuestions(&pass)
        // Ended launches are handled before time budgets, so that an ended launch receives no warning. Ended launches are also
        // handled before requests, because another launch can then start, and the request of the ended launch can become due
        // again.
        try launches.adoptLate(&pass, living: living)
        try ContinuedWork.dropOrphans(pass, watchedProcesses)
        try launches.endContinued(pass, watchedProcesses)
        try handleEndedLaunches(&pass)
        try launches.supervise(&pass, conditions)
        try watchedProcesses.plan(&pass)
        // Rules with wall-clock times are planned before the requests are handled. If the clock was set, a request that was due
        // by the old clock may not be due any more.
        try time.plan(&pass)
        // The machine's sleep is delayed before requests are handled, so that the machine stays awake for the work for which it
        // was woken.
        try wakes.tick(&pass)
        if lifetime.beginsWork {
            try folders.plan(&pass)
            if !wakes.holdsWork { try DueRequests.plan(&pass, conditions, time) }
            try ContinuedWork.plan(&pass)
            try TimeChanges.plan(&pass)
            try planAttempts(&pass)
            // Deliveries are planned after the attempts, so that the results of attempts that just ended are delivered.
            try Deliveries.plan(&pass, moving: attempts.movingSessions)
            // This step follows the planning of attempts, because a transfer that was just cancelled or held does not wait for a
            // host any more.
            try pass.withdrawSuspicions()
        }
        // In rows that a newer version wrote, values may have another meaning.
        if !lifetime.isSuperseded { try planner.plan(&pass, isQuitting: lifetime.isQuitting) }
        // Sleep is planned after all other work, because the machine may sleep again if no work is left.
        try wakes.plan(&pass, hasAttempts: !attempts.isEmpty)
        // The lifetime of the agent is decided last, because only now it is known whether work is left.
        let others = Lifetime.OtherWork(
            hasAttempts: !attempts.isEmpty, answersDue: planner.answersDue(pass.moment), isShowing: planner.isShowing,
            holdsAlarm: wakes.needsAgent, foldersAreReported: folders.areReported, outOfReach: launches.outOfReach)
        try lifetime.plan(&pass, others, &activation)
        cleanup.planOrphans(&pass, lifetime)
    }

    /// Makes the decisions of a transaction if only transfer events arrived after the last complete pass. If many small transfers
    /// run, most transactions handle only such events.
    mutating func planTransfers(_ heard: [AgentEvent], _ pass: inout Pass) throws {
        try checkClocks(&pass)
        for event in heard { try handle(event, &pass) }
        if lifetime.beginsWork {
            try planAttempts(&pass)
            try Deliveries.plan(&pass, moving: attempts.movingSessions)
        }
        // A complete pass follows, because the agent may have to exit after the last attempt, or the machine may have slept.
        if attempts.isEmpty || time.mustReplan { passScope.requireFullPass() }
    }

    private mutating func planAttempts(_ pass: inout Pass) throws {
        let desktop = conditions.forPlanning(&pass)
        try cleanup.collect(&pass)
        try attempts.plan(&pass, desktop)
        attempts.forget(pass.endedTransfers)
        try Leftovers.plan(&pass)
        try cleanup.prune(&pass)
    }

    // MARK: Events

    private mutating func handle(_ event: AgentEvent, _ pass: inout Pass) throws {
        switch event {
        case .transport(let event): if try !Leftovers.handle(event, &pass) { try attempts.handle(event, &pass) }
        case .attemptFinished(let attempt, let end): try attempts.handleAttemptEnd(of: attempt, end, &pass)
        case .attemptMoved(let attempt): try attempts.recordMovedDownload(of: attempt, &pass)
        case .attemptStopped(let attempt): try attempts.handleAttemptStop(of: attempt, &pass)
        case .attemptWithoutSource(let attempt, let trouble): try attempts.failMissingSource(of: attempt, trouble, &pass)
        case .proofChecked(let id, let finding):
            try attempts.handleProof(of: id, finding, mayBegin: lifetime.beginsWork, &pass)
        case .filePlaced(let id, let giving): try attempts.handlePlacedFile(id, giving, &pass)
        case .presenter(let event):
            if event == .busLost { watchedProcesses.handleBusLoss() }
            try planner.handle(event, &pass, &launches)
        case .conditions(let desktop):
            try conditions.update(desktop, pass)
            // Any change of the network is a reason to try again immediately, even if the network was available before and after
            // the change.
            if desktop.isNetworkAvailable {
                try attempts.retryUnreached(&pass)
                try pass.transaction.retryLeftovers(now: pass.now)
            }
            wakes.handlePowerChange()
        case .timeChanged: time.handleTimeJump(pass)
        case .zoneChanged: time.handleZoneChange()
        case .resumed: try handleWake(&pass)
        case .sleepEvent(let event): try wakes.handle(event, &pass)
        // The alarm changes no state, because the agent's clocks already show that work is due.
        case .alarmRang: break
        case .alarmRefused(let refusal): wakes.record(refusal)
        case .launchStarted(let id, let process):
            try launches.record(started: id, process, &pass)
            try pass.retract(AgentNotice.reportsMissingApp)
        case .launchFailed(let id, let reason): try launches.record(failed: id, reason, &pass)
        case .launchEnded(let id, let end): launches.record(ended: id, end)
        case .processEnded(let process): watchedProcesses.record(ended: process)
        case .appIsMissing(let missing): try pass.show(AgentNotice(missing))
        case .filesChanged: try pass.transaction.applyAppChange(now: pass.now, in: pass.zone)
        case .folderChanging: folders.recordChange()
        case .folderExamined(let folder, let finding): folders.record(folder, finding)
        case .stopRequested: try quit(forGood: false, &pass)
        }
    }

    private mutating func checkClocks(_ pass: inout Pass) throws {
        let change = try time.check(&pass)
        if change.shift != 0 {
            launches.shift(by: change.shift)
            // A certificate may have seemed invalid because the clock was wrong before this change, so the affected transfers are
            // tried again.
            try pass.transaction.retryTransfers(waitingWith: TransferTrouble.recordedClockCodes, now: pass.now)
        }
        if change.shift != 0 { try wakes.resetAlarm(&pass) }
        if change.hasSlept { try handleWake(&pass) }
    }

    private mutating func handleWake(_ pass: inout Pass) throws {
        time.handleTimeJump(pass)
        attempts.handleWake()
        try conditions.handleWake(&pass)
        try wakes.handleWake(&pass)
    }

    private mutating func handleEndedLaunches(_ pass: inout Pass) throws {
        let ended = try launches.endFinishedLaunches(&pass)
        guard !ended.isEmpty else { return }
        cleanup.scheduleOrphanRemoval(pass.moment)
        try planner.removeProgress(ended: ended, &pass)
    }

    private mutating func noticeNewerVersion(_ pass: inout Pass) throws {
        let count = try pass.transaction.migrationCount()
        guard count != knownMigrations else { return }
        knownMigrations = count
        guard try pass.transaction.isSuperseded(), lifetime.drain() else { return }
        pass.log(.ledgerIsNewer)
        attempts.stopAll(&pass)
    }

    /// Stops all running work, waits for the end of this work, and then exits. Queued work stays in the ledger.
    private mutating func quit(forGood: Bool, _ pass: inout Pass) throws {
        guard lifetime.quit(forGood: forGood) else { return }
        pass.log(.agentStopping)
        try launches.stopAll(.quit, &pass)
        attempts.stopAll(&pass)
    }

    // MARK: Commands

    private mutating func answerQuestions(_ pass: inout Pass) throws {
        for question in try pass.transaction.openQuestions() {
            guard let id = question.id else { continue }
            try pass.transaction.answer(id, try answer(question, &pass))
        }
    }

    private mutating func answer(_ question: ControlRecord, _ pass: inout Pass) throws -> String {
        switch question.verb {
        case .simulateLaunch:
            guard lifetime.beginsWork else { return "error: the agent is exiting" }
            return try DueRequests.simulateLaunch(question.argument, &pass)
        case .simulateExpire:
            guard let launch = try pass.transaction.liveLaunches().last(where: { $0.identifier == question.argument }) else {
                return "error: no launch of \(question.argument) is running"
            }
            if launches.isOutOfReach(launch.id) {
                return "error: the process of \(question.argument) is in another PID namespace and cannot be ended from here"
            }
            try launches.stop(launch, .simulated, &pass)
            return "the app was warned that the launch of \(question.argument) must end"
        case .quit:
            // The command that requested the stop has ended. The user queued work after that, so the agent must do this work.
            if !question.isAwaited(in: pass.directories),
                try pass.transaction.hasActiveTransfers() || pass.transaction.hasRequests()
            {
                return "error: the agent does not quit, because work was queued after the command had ended"
            }
            try quit(forGood: true, &pass)
            return "stopping"
        }
    }
}
