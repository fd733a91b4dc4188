import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Begins launches for due requests. A missed occurrence of a request with the policy `skip` is skipped. This type has no state.
enum DueRequests {
    static func plan(_ pass: inout Pass, _ conditions: Conditions, _ time: TimeWatch) throws {
        try skipMissed(&pass, time)
        guard let desktop = conditions.forPlanning(&pass) else { return }
        var world = PlanningWorld(
            conditions: desktop, resumedAt: try pass.transaction.fact(.conditions)?.resumedAt,
            lastStart: try pass.transaction.lastRequestStart(), spacing: pass.settings.launchSpacing)
        let open = world.openClasses(now: pass.now)
        pass.wake(at: NetworkWakeDelay.until(resumedAt: world.resumedAt, conditions: desktop, now: pass.now))
        while let request = try pass.transaction.firstDue(in: open, now: pass.now) {
            let turn = world.nextStart(now: pass.now)
            guard turn <= pass.now else {
                pass.wake(at: turn)
                break
            }
            guard try launch(request, simulated: false, &pass) else { break }
            world.lastStart = pass.now
        }
        pass.wake(at: try pass.transaction.nextDueTime(in: open, after: pass.now))
    }

    private static func skipMissed(_ pass: inout Pass, _ time: TimeWatch) throws {
        let moment = min(pass.now, time.observingSince).addingTimeInterval(-RequestLife.lateness)
        for var request in try pass.transaction.skippable(before: moment) {
            for case .skip(let occurrence) in try pass.handle(.unwatched(until: time.observingSince), &request) {
                _ = try pass.transaction.insert(LaunchRecord(skipping: occurrence, of: request, at: pass.now))
            }
        }
    }

    /// - Returns: `false` if a launch is already running for the request.
    private static func launch(_ request: RequestRecord, simulated: Bool, _ pass: inout Pass) throws -> Bool {
        var request = request
        let commands = try pass.handle(.launched(isSimulated: simulated), &request)
        let woke = try simulated ? .simulated : cause(of: request, pass)
        guard let record = LaunchRecord(of: request, commands, simulated: simulated, woke: woke.rawValue, startedAt: pass.now)
        else { return false }
        try pass.begin(record)
        return true
    }

    private static func cause(of request: RequestRecord, _ pass: Pass) throws -> WakeCause {
        let observed = try pass.transaction.fact(.conditions)
        func change(_ moment: Date?) -> Date? { moment == observed?.firstLookAt ? nil : moment }
        let moments = WakeCause.ConditionDates(
            network: change(observed?.networkSince), power: change(observed?.powerSince), saving: change(observed?.savingSince),
            resumed: observed?.resumedAt, agentStarted: try pass.transaction.fact(.agent)?.startedAt)
        return WakeCause.of(request.life(.pending), moments, now: pass.now)
    }

    /// Launches a request now because a command requested the launch. Returns the text that the user sees.
    static func simulateLaunch(_ identifier: String, _ pass: inout Pass) throws -> String {
        guard let request = try pass.transaction.request(identifier) else {
            return "error: no request named \(identifier) is pending"
        }
        guard request.kind != .continuedProcessing else {
            return "error: \(identifier) runs in the process that requested the work, as soon as fewer tasks are running"
        }
        guard try launch(request, simulated: true, &pass) else { return "error: \(identifier) is running already" }
        return "launched \(identifier)"
    }
}
