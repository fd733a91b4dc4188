import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// Requests become launches; launches are watched against their budgets and end with an outcome.
extension Agent {
    // MARK: Time

    /// Wall-clock rules are planned anew when the clock or the zone changed, unless their moment has already come.
    func planTimes(_ pass: inout Pass) throws {
        guard mustReplan else { return }
        mustReplan = false
        try shortenDelays(&pass)
        for var request in try pass.transaction.recurringRequests() {
            guard let occurrence = request.occurrence, occurrence > pass.now else { continue }
            let served = try pass.transaction.lastServedOccurrence(request.identifier)
            request.planOccurrence(after: pass.now, served: served, in: zone)
            if request.occurrence != occurrence {
                log.note("\(request.identifier): the clock or the zone changed, planned anew")
                try pass.transaction.save(request)
            }
        }
    }

    /// A delay is a span too: written down as a moment, it must not grow by what the clock was set back.
    private func shortenDelays(_ pass: inout Pass) throws {
        let latest = pass.now.addingTimeInterval(RelaunchBackoff.longest)
        for var request in try pass.transaction.requestsDelayed(beyond: latest) {
            request.backoffUntil = latest
            try pass.transaction.save(request)
        }
        let latestAttempt = pass.now.addingTimeInterval(RetryPolicy.standard.maximumRetryAfter)
        for var transfer in try pass.transaction.unfinishedTransfers() {
            guard let next = transfer.nextAttemptAt, next > latestAttempt else { continue }
            transfer.nextAttemptAt = latestAttempt
            try pass.transaction.update(transfer)
        }
    }

    /// A budget is a span, not a moment: a clock that is set, or stands still in sleep, neither ends nor prolongs it.
    ///
    /// Looked at in every pass, before any budget is: the jump itself must not end one.
    func shiftBudgets(now: Date) {
        let offset = now.timeIntervalSince1970 - monotonic()
        let shift = offset - clockOffset
        clockOffset = offset
        guard abs(shift) > 0.5 else { return }
        for id in supervised.keys { supervised[id]?.shift(by: shift) }
    }

    // MARK: Requests

    func planRequests(_ pass: inout Pass) throws {
        try skipMissed(&pass)
        guard mayPlanRequests(&pass) else { return }
        var world = PlanningWorld(
            conditions: ports.conditions.current, resumedAt: try pass.transaction.fact(.conditions)?.resumedAt,
            lastStart: try pass.transaction.lastRequestStart(), spacing: pass.settings.launchSpacing)
        let open = world.openClasses(now: pass.now)
        pass.wake(at: NetworkSettling.until(resumedAt: world.resumedAt, conditions: world.conditions, now: pass.now))
        while let request = try pass.transaction.firstDue(in: open, now: pass.now) {
            let turn = world.nextStart(now: pass.now)
            guard turn <= pass.now else {
                pass.wake(at: turn)
                break
            }
            try launch(request, simulated: false, &pass)
            world.lastStart = pass.now
        }
        pass.wake(at: try pass.transaction.nextDueTime(in: open, after: pass.now))
    }

    /// Seconds that a moment may be late before `missed = "skip"` leaves it out: a busy or just woken machine is not "missed".
    private static let lateness: Double = 600

    private func skipMissed(_ pass: inout Pass) throws {
        for var request in try pass.transaction.skippable(before: pass.now.addingTimeInterval(-Self.lateness)) {
            guard let occurrence = request.occurrence else { continue }
            var record = LaunchRecord(
                kind: request.kind, identifier: request.identifier, requestToken: nil, generation: 1, reason: "missed",
                simulated: false, servedOccurrence: occurrence, startedAt: pass.now)
            record.endedAt = pass.now
            record.outcome = .skipped
            record.detail = "nothing ran at its time; missed = \"skip\""
            _ = try pass.transaction.insert(record)
            request.planOccurrence(after: pass.now, served: occurrence, in: zone)
            try pass.transaction.save(request)
        }
    }

    private func launch(_ request: RequestRecord, simulated: Bool, _ pass: inout Pass) throws {
        let generation = request.failures + 1
        var record = LaunchRecord(
            kind: request.kind, identifier: request.identifier, requestToken: request.token, generation: generation,
            reason: simulated ? "simulated" : generation > 1 ? "relaunch after \(request.failures) without a result" : "due",
            simulated: simulated, servedOccurrence: simulated ? nil : request.occurrence, startedAt: pass.now)
        record.requiresNetwork = request.requiresNetwork
        record.requiresExternalPower = request.requiresExternalPower
        record.askedAt = request.submittedAt
        record.askedBegin = request.earliestBegin
        record.woke = try (simulated ? .simulated : cause(of: request, pass)).rawValue
        let launch = try pass.transaction.insert(record)
        pass.effects.append(.startLaunch(launch.id!))
        idleSince = nil
    }

    private func cause(of request: RequestRecord, _ pass: Pass) throws -> WakeCause {
        let observed = try pass.transaction.fact(.conditions)
        let moments = WakeCause.Moments(
            network: observed?.networkSince, power: observed?.powerSince, saving: observed?.savingSince,
            resumed: observed?.resumedAt, agentStarted: try pass.transaction.fact(.agent)?.startedAt)
        return WakeCause.of(request.plannable(hasLiveLaunch: false), moments, now: pass.now)
    }

    // MARK: Simulation

    func simulateLaunch(_ identifier: String, _ pass: inout Pass) throws -> String {
        guard let request = try pass.transaction.request(identifier) else {
            return "error: no request named \(identifier) is pending"
        }
        guard try !pass.transaction.liveLaunches().contains(where: { $0.identifier == identifier }) else {
            return "error: \(identifier) is running already"
        }
        try launch(request, simulated: true, &pass)
        return "launched \(identifier)"
    }

    func simulateExpiry(_ identifier: String, _ pass: inout Pass) throws -> String {
        guard let launch = try pass.transaction.liveLaunches().last(where: { $0.identifier == identifier }) else {
            return "error: no launch of \(identifier) is running"
        }
        try stop(launch, .simulated, &pass)
        return "ended the time of \(identifier)"
    }

    // MARK: Starting

    func startLaunch(_ id: Int64) throws(LedgerError) {
        CrashPoint.reach("agent.launchCommitted")
        guard let record = try ledger.read({ try $0.launch(id) }), record.endedAt == nil else { return }
        do {
            let pid = try launcher.start(id)
            try ledger.write { try $0.launchDidBegin(id, pid: pid) }
            CrashPoint.reach("agent.launchStarted")
            log.note("launched \(record.kind.rawValue) \(record.identifier), generation \(record.generation), pid \(pid)")
        } catch let error as LedgerError {
            throw error
        } catch {
            log.note("\(record.identifier) could not be launched: \(error)")
            try ledger.write { transaction in
                guard var record = try transaction.launch(id) else { return }
                record.detail = "\(error)"
                try transaction.update(record)
            }
            hear(.launchEnded(id, .unknown))
        }
    }

    /// Of continued processing: how long it may be without progress.
    private func budget(for kind: LaunchKind, _ settings: AgentSettings) -> Double {
        switch kind {
        case .processing: settings.processingBudget
        case .continuedProcessing: settings.progressPatience
        case .appRefresh, .urlSession, .notificationResponse, .significantTimeChange: settings.refreshBudget
        }
    }

    // MARK: Supervision

    /// Budgets run from the launch's start, also over the death of an agent.
    func supervise(_ pass: inout Pass) throws {
        for launch in try pass.transaction.liveLaunches() {
            let id = launch.id!
            if let lost = lostCondition(of: launch) {
                log.note("\(launch.identifier): \(lost)")
                try stop(launch, .conditionLost, &pass)
            }
            var supervision =
                supervised[id]
                ?? {
                    var fresh = LaunchSupervision(
                        startedAt: launch.startedAt, budget: budget(for: launch.kind, pass.settings),
                        grace: pass.settings.grace)
                    if launch.stopReason != nil {
                        // The agent that committed the reason may have died before it sent the signal; twice does no harm.
                        fresh.adoptWarned(now: pass.now)
                        if launch.kind != .continuedProcessing { pass.effects.append(.warnLaunch(id)) }
                    }
                    return fresh
                }()
            if let progressAt = launch.progressAt { supervision.moved(at: progressAt) }
            if let command = supervision.tick(now: pass.now, isPersonChoosing: launch.isPersonChoosing) {
                try apply(command, to: launch, &pass)
            }
            supervised[id] = supervision
            pass.wake(at: supervision.deadline(isPersonChoosing: launch.isPersonChoosing))
        }
    }

    /// A condition that a running launch was promised and that holds no longer.
    private func lostCondition(of launch: LaunchRecord) -> String? {
        let conditions = ports.conditions.current
        if launch.requiresNetwork, !launch.simulated, !conditions.isNetworkAvailable { return "the network was lost" }
        if launch.requiresExternalPower, !launch.simulated, !conditions.isOnExternalPower { return "external power was lost" }
        return nil
    }

    func stop(_ launch: LaunchRecord, _ reason: StopReason, _ pass: inout Pass) throws {
        var supervision =
            supervised[launch.id!]
            ?? LaunchSupervision(
                startedAt: launch.startedAt, budget: budget(for: launch.kind, pass.settings), grace: pass.settings.grace)
        if let command = supervision.stop(reason, now: pass.now) { try apply(command, to: launch, &pass) }
        supervised[launch.id!] = supervision
    }

    private func apply(_ command: LaunchSupervision.Command, to launch: LaunchRecord, _ pass: inout Pass) throws {
        switch command {
        case .warn(let given):
            let reason = launch.kind == .continuedProcessing && given == .expired ? .noProgress : given
            // The row as it is now: the app process writes to it too.
            guard var current = try pass.transaction.launch(launch.id!) else { return }
            current.stopReason = reason
            try pass.transaction.update(current)
            log.note("\(launch.identifier): \(reason.rawValue), warned")
            // A process that a person started hears of it through the ledger; it is neither signalled nor killed.
            if launch.kind != .continuedProcessing { pass.effects.append(.warnLaunch(launch.id!)) }
        case .kill where launch.kind == .continuedProcessing:
            hear(.launchEnded(launch.id!, .unknown))
        case .kill:
            log.note("\(launch.identifier): did not return within the grace time, killed")
            pass.effects.append(.killLaunch(launch.id!))
        }
    }

    // MARK: Ends

    func finishEndedLaunches(_ pass: inout Pass) throws {
        for (id, end) in endedLaunches {
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else { continue }
            try finish(launch, end, &pass)
        }
        endedLaunches = [:]
    }

    private func finish(_ launch: LaunchRecord, _ end: ProcessEnd, _ pass: inout Pass) throws {
        var launch = launch
        CrashPoint.reach("agent.launchEnded")
        let outcome = launch.result ?? Self.outcomeWithoutResult(launch)
        launch.outcome = outcome
        launch.endedAt = pass.now
        if launch.result == nil, launch.detail == nil {
            launch.detail = outcome == .failed ? "did not stop; its process was left alone" : Self.describe(end)
        }
        if launch.kind == .continuedProcessing, launch.detail == nil { launch.detail = launch.stopReason.map(Self.describe) }
        if launch.kind == .urlSession, outcome == .completed, launch.detail == nil {
            launch.detail = try deliveryNote(session: launch.identifier, since: launch.startedAt, pass.transaction)
        }
        try pass.transaction.update(launch)
        if outcome == .completed { try settleDeliveries(of: launch, pass) }
        try settle(launch, outcome, &pass)
        if launch.kind == .continuedProcessing { withdrawProgress(of: launch, &pass) }
        if launch.kind == .significantTimeChange, outcome.isResult { try settleTimeChange(launch, pass) }
        supervised[launch.id!] = nil
        pass.effects.append(.forgetLaunch(launch.id!))
        log.note("\(launch.kind.rawValue) \(launch.identifier) ended: \(outcome.rawValue)")
    }

    private static func outcomeWithoutResult(_ launch: LaunchRecord) -> LaunchOutcome {
        guard launch.stopReason != nil else { return .crashed }
        // A process that a person started is not ours to kill.
        guard launch.kind == .continuedProcessing else { return .killed }
        return .failed
    }

    private static func describe(_ reason: StopReason) -> String {
        switch reason {
        case .expired: "its time ran out"
        case .quit: "all background work was ended"
        case .conditionLost: "a condition it needs was lost"
        case .simulated: "expired by hand"
        case .cancelled: "a person pressed Cancel"
        case .noProgress: "it made no progress"
        }
    }

    private static func describe(_ end: ProcessEnd) -> String {
        switch end {
        case .exited(let code): "exited with \(code) without a result"
        case .signalled(let signal): "ended by signal \(signal)"
        case .unknown: "gone without a result"
        }
    }

    /// The handler returned: what there was before it began is told, whether or not it looked. Otherwise an app without
    /// a delegate for it would be launched again and again, for ever.
    private func settleDeliveries(of launch: LaunchRecord, _ pass: Pass) throws {
        // From the future: the clock was set back since.
        func isOld(_ date: Date) -> Bool { date <= launch.startedAt || date > pass.now }
        switch launch.kind {
        case .urlSession:
            for event in try pass.transaction.undeliveredEvents(session: launch.identifier) where isOld(event.createdAt) {
                try pass.transaction.eventWasDelivered(event.id!, now: pass.now)
            }
        case .notificationResponse:
            for response in try pass.transaction.undeliveredResponses()
            where response.notification == launch.identifier && isOld(response.createdAt) {
                try pass.transaction.responseWasDelivered(response.id!, now: pass.now)
            }
        case .appRefresh, .processing, .continuedProcessing, .significantTimeChange:
            break
        }
    }

    /// What becomes of the request that a launch served.
    private func settle(_ launch: LaunchRecord, _ outcome: LaunchOutcome, _ pass: inout Pass) throws {
        guard let token = launch.requestToken, var request = try pass.transaction.request(launch.identifier) else { return }
        let isSame = request.token == token
        if outcome.isResult {
            // A replaced request was submitted by this very launch: it stands for the next time.
            guard isSame else { return }
            if request.recurrence != nil {
                request.planOccurrence(after: pass.now, served: launch.servedOccurrence, in: zone)
            } else if let begin = request.beginAfterRetry {
                request.earliestBegin = begin
                request.beginAfterRetry = nil
            } else {
                try pass.transaction.deleteRequest(request.identifier)
                return
            }
            request.forgive()
            try pass.transaction.save(request)
            return
        }
        // No result: the launch is made up for, also when its handler had already asked for the next one.
        request.failures = launch.generation
        request.lastFailureAt = pass.now
        let delay = RelaunchBackoff.delay(
            afterFailures: try blame(for: launch, pass.transaction), base: pass.settings.backoffBase)
        request.backoffUntil = delay > 0 ? pass.now.addingTimeInterval(delay) : nil
        if !isSame {
            if request.recurrence == nil { request.beginAfterRetry = request.earliestBegin ?? pass.now }
            request.occurrence = launch.servedOccurrence
            request.earliestBegin = pass.now
        }
        try pass.transaction.save(request)
    }

    /// How many launches in a row, this one the last, ended without a result by the app's doing. An agent that died before
    /// it started the process earns no delay, and does not make that of a later crash longer.
    private func blame(for launch: LaunchRecord, _ transaction: LedgerTransaction) throws -> Int {
        func neverBegan(_ launch: LaunchRecord) -> Bool { launch.pid == nil && launch.detail == Self.describe(.unknown) }
        guard !neverBegan(launch) else { return 0 }
        let inARow = try transaction.endedLaunches(launch.kind, launch.identifier, limit: 60)
            .prefix { $0.outcome == .crashed || $0.outcome == .killed }
        return inARow.filter { !neverBegan($0) }.count
    }

    /// How the transfers delivered in a launch got on, for the history.
    private func deliveryNote(session: String, since: Date, _ transaction: LedgerTransaction) throws -> String? {
        let notes = try transaction.deliveredTransfers(session: session, since: since).compactMap(\.note)
        return notes.isEmpty ? nil : notes.joined(separator: "; ")
    }
}
