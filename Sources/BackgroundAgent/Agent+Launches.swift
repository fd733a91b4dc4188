import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// Requests become launches.
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
        try pass.transaction.shortenTransferDelays(to: latestAttempt)
    }

    /// A budget is a span, not a moment: a clock that is set, or stands still in sleep, neither ends nor prolongs it.
    ///
    /// Looked at in every pass, before any budget is: the jump itself must not end one.
    func shiftBudgets(now: Date) {
        let offset = now.timeIntervalSince1970 - monotonic()
        let shift = offset - clockOffset
        clockOffset = offset
        guard abs(shift) > 0.5 else { return }
        mustReplan = true
        for id in supervised.keys { supervised[id]?.shift(by: shift) }
    }

    // MARK: Requests

    func planRequests(_ pass: inout Pass) throws {
        try skipMissed(&pass)
        guard mayPlanByConditions(&pass) else { return }
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
        // Only what passed while nobody looked: one that waits for its network is late, not missed.
        let moment = min(pass.now, lookingSince).addingTimeInterval(-Self.lateness)
        for var request in try pass.transaction.skippable(before: moment) {
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
        let generation = min(max(request.failures, 0), 1_000_000) + 1
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
        func change(_ moment: Date?) -> Date? { moment == observed?.firstLookAt ? nil : moment }
        let moments = WakeCause.Moments(
            network: change(observed?.networkSince), power: change(observed?.powerSince), saving: change(observed?.savingSince),
            resumed: observed?.resumedAt, agentStarted: try pass.transaction.fact(.agent)?.startedAt)
        return WakeCause.of(request.plannable(hasLiveLaunch: false), moments, now: pass.now)
    }

    // MARK: Simulation

    func simulateLaunch(_ identifier: String, _ pass: inout Pass) throws -> String {
        guard !isQuitting, !isDraining else { return "error: the agent is leaving" }
        guard let request = try pass.transaction.request(identifier) else {
            return "error: no request named \(identifier) is pending"
        }
        guard request.kind != .continuedProcessing else {
            return "error: \(identifier) runs in the process that asked for it, when there is room"
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
}
