import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Requests that are due become launches; those that nothing ran for in time are left out, where they ask for that. No state.
enum DueRequests {
    /// Seconds that a moment may be late before `missed = "skip"` leaves it out: a busy or just woken host is not "missed".
    private static let lateness: Double = 600

    static func plan(_ pass: inout Pass, _ conditions: Conditions, _ time: TimeWatch) throws {
        try skipMissed(&pass, time)
        guard let desktop = conditions.forPlanning(&pass) else { return }
        var world = PlanningWorld(
            conditions: desktop, resumedAt: try pass.transaction.fact(.conditions)?.resumedAt,
            lastStart: try pass.transaction.lastRequestStart(), spacing: pass.settings.launchSpacing)
        let open = world.openClasses(now: pass.now)
        pass.wake(at: NetworkSettling.until(resumedAt: world.resumedAt, conditions: desktop, now: pass.now))
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

    private static func skipMissed(_ pass: inout Pass, _ time: TimeWatch) throws {
        // Only what passed while nobody looked: one that waits for its network is late, not missed.
        let moment = min(pass.now, time.lookingSince).addingTimeInterval(-lateness)
        for var request in try pass.transaction.skippable(before: moment) {
            guard let occurrence = request.occurrence else { continue }
            var record = LaunchRecord(
                kind: request.kind, identifier: request.identifier, requestToken: nil, generation: 1, reason: "missed",
                simulated: false, servedOccurrence: occurrence, startedAt: pass.now)
            record.endedAt = pass.now
            record.outcome = .skipped
            record.detail = "nothing ran at its time; missed = \"skip\""
            _ = try pass.transaction.insert(record)
            try pass.planNext(of: &request, served: occurrence)
            try pass.transaction.save(request)
        }
    }

    private static func launch(_ request: RequestRecord, simulated: Bool, _ pass: inout Pass) throws {
        let generation = min(max(request.failures, 0), 1_000_000) + 1
        var record = LaunchRecord(
            kind: request.kind, identifier: request.identifier, requestToken: request.token, generation: generation,
            reason: simulated ? "simulated" : generation > 1 ? "relaunch after \(request.failures) without a result" : "due",
            simulated: simulated, servedOccurrence: simulated ? nil : served(by: request, pass), startedAt: pass.now)
        record.requiresNetwork = request.requiresNetwork
        record.requiresExternalPower = request.requiresExternalPower
        record.askedAt = request.submittedAt
        record.askedBegin = request.earliestBegin
        record.woke = try (simulated ? .simulated : cause(of: request, pass)).rawValue
        try pass.begin(record)
    }

    /// However many were missed, one launch makes up for all of them: it serves the last that has come.
    private static func served(by request: RequestRecord, _ pass: Pass) -> Date? {
        guard var occurrence = request.occurrence, let rule = request.recurrence else { return request.occurrence }
        // Bounded, as the clock may be wrong by any time.
        for _ in 0..<10_000 {
            let next = rule.next(after: occurrence, in: pass.zone)
            guard next <= pass.now else { break }
            occurrence = next
        }
        return occurrence
    }

    private static func cause(of request: RequestRecord, _ pass: Pass) throws -> WakeCause {
        let observed = try pass.transaction.fact(.conditions)
        func change(_ moment: Date?) -> Date? { moment == observed?.firstLookAt ? nil : moment }
        let moments = WakeCause.Moments(
            network: change(observed?.networkSince), power: change(observed?.powerSince), saving: change(observed?.savingSince),
            resumed: observed?.resumedAt, agentStarted: try pass.transaction.fact(.agent)?.startedAt)
        return WakeCause.of(request.plannable(hasLiveLaunch: false), moments, now: pass.now)
    }

    /// Somebody wants a request launched now. Returns the answer.
    static func simulateLaunch(_ identifier: String, _ pass: inout Pass) throws -> String {
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
}
