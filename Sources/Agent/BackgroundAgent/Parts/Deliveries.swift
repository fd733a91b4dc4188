import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Launches the app for ended transfers and pressed buttons. This type has no state.
enum Deliveries {
    /// - Parameter moving: the sessions that have a running transfer.
    static func plan(_ pass: inout Pass, moving: Set<String>) throws {
        try deliverSessions(&pass, moving)
        try deliverResponses(&pass)
    }

    private static func deliverSessions(_ pass: inout Pass, _ moving: Set<String>) throws {
        let sessions = try pass.transaction.waitingSessions()
        guard !sessions.isEmpty else { return }
        let live = try pass.transaction.liveLaunches()
        let attached = try pass.transaction.attachedSessions()
        let served = live.servedSession(settings: pass.settings, now: pass.now)
        // The session that has waited longest is handled first.
        for (session, oldest) in sessions.sorted(by: { $0.oldest < $1.oldest }) {
            // A live launch or an attached process already receives the events, so no second process is started.
            if attached.contains(session) || live.contains(where: { $0.kind == .urlSession && $0.identifier == session }) {
                continue
            }
            switch SessionDelivery.verdict(oldest: oldest, hasMoreRunning: moving.contains(session), now: pass.now) {
            case .wait(let until): pass.wake(at: until)
            case .deliverNow:
                if let served { return pass.wake(at: served.until) }
                if try launch(.urlSession, session, since: oldest, "a transfer ended", &pass) { return }
            }
        }
    }

    private static func deliverResponses(_ pass: inout Pass) throws {
        let live = try pass.transaction.liveLaunches()
        let responses = try pass.transaction.undeliveredResponses()
        for (identifier, waiting) in Dictionary(grouping: responses, by: \.notification) {
            if live.contains(where: { $0.kind == .notificationResponse && $0.identifier == identifier }) { continue }
            let oldest = waiting.map(\.createdAt).min() ?? pass.now
            try launch(.notificationResponse, identifier, since: oldest, "the user pressed a button", &pass)
        }
    }

    /// - Returns: `false` if the launch has to wait because earlier launches failed.
    @discardableResult
    private static func launch(
        _ kind: LaunchKind, _ identifier: String, since oldest: Date, _ reason: String, _ pass: inout Pass
    ) throws -> Bool {
        let history = try pass.transaction.deliveryHistory(
            kind, identifier, since: oldest, settings: pass.settings, now: pass.now)
        if let pause = history.pause {
            pass.wake(at: pause.until)
            return false
        }
        let count = history.failures.count
        try pass.begin(
            LaunchRecord(
                kind: kind, identifier: identifier, generation: count + 1,
                reason: count == 0 ? reason : "relaunch after \(RelaunchBackoff.launches(count)) without success",
                startedAt: pass.now))
        return true
    }
}
