import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Ended transfers and pressed buttons launch the app. No state.
enum Deliveries {
    /// - Parameter moving: sessions of which a transfer runs.
    static func plan(_ pass: inout Pass, moving: Set<String>) throws {
        try deliverSessions(&pass, moving)
        try deliverResponses(&pass)
    }

    private static func deliverSessions(_ pass: inout Pass, _ moving: Set<String>) throws {
        let sessions = try pass.transaction.waitingSessions()
        guard !sessions.isEmpty else { return }
        let live = try pass.transaction.liveLaunches()
        let attached = try pass.transaction.attachedSessions()
        for (session, oldest) in sessions {
            // The live launch replays them, or an attached process takes them: no second process.
            if attached.contains(session) || live.contains(where: { $0.kind == .urlSession && $0.identifier == session }) {
                continue
            }
            if let until = try end(ofPauseOf: session, pass), until > pass.now {
                pass.wake(at: until)
                continue
            }
            switch SessionDelivery.verdict(oldest: oldest, hasMoreRunning: moving.contains(session), now: pass.now) {
            case .wait(let until): pass.wake(at: until)
            case .deliverNow: try launch(.urlSession, session, since: oldest, "a transfer ended", &pass)
            }
        }
    }

    /// `nil`: the session was not launched for often.
    private static func end(ofPauseOf session: String, _ pass: Pass) throws -> Date? {
        let recent = try pass.transaction.endedLaunches(.urlSession, session, limit: 64).filter { launch in
            // From the future: the clock was set back since.
            launch.startedAt <= pass.now && launch.startedAt > pass.now.addingTimeInterval(-SessionDelivery.memory)
        }
        let pause = SessionDelivery.pause(afterLaunches: recent.count)
        guard pause > 0, let last = recent.first else { return nil }
        return min(last.endedAt ?? last.startedAt, pass.now).addingTimeInterval(pause)
    }

    private static func deliverResponses(_ pass: inout Pass) throws {
        let live = try pass.transaction.liveLaunches()
        let responses = try pass.transaction.undeliveredResponses()
        for (identifier, waiting) in Dictionary(grouping: responses, by: \.notification) {
            if live.contains(where: { $0.kind == .notificationResponse && $0.identifier == identifier }) { continue }
            let oldest = waiting.map(\.createdAt).min() ?? pass.now
            try launch(.notificationResponse, identifier, since: oldest, "a person pressed a button", &pass)
        }
    }

    /// Some of what waited was told in it, and only the rest is left.
    private static func hasTold(_ launch: LaunchRecord, _ pass: Pass) throws -> Bool {
        guard launch.kind == .urlSession, let pid = launch.pid else { return false }
        return try pass.transaction.hasTold(session: launch.identifier, by: pid, until: .distantFuture)
    }

    private static func launch(
        _ kind: LaunchKind, _ identifier: String, since oldest: Date, _ reason: String, _ pass: inout Pass
    ) throws {
        let now = pass.now
        // A second of tolerance: a date read back from the ledger can lie a fraction of a microsecond after the one written,
        // and the launch that ended in this very pass would not count. Far in the future: the clock was set back since. What waits
        // since a time to come was there before every launch of the new time.
        let failures = try pass.transaction.endedLaunches(kind, identifier, limit: 20).prefix { launch in
            let wasThere = launch.startedAt >= oldest || oldest > now && launch.outcome != .completed
            let isOver = launch.endedAt.map { $0 < now.addingTimeInterval(1) } ?? true
            return try wasThere && isOver && !hasTold(launch, pass)
        }
        guard let generation = pass.generation(after: failures) else { return }
        try pass.begin(
            LaunchRecord(
                kind: kind, identifier: identifier, requestToken: nil, generation: generation,
                reason: failures.isEmpty ? reason : "relaunch after \(failures.count) without success",
                simulated: false, servedOccurrence: nil, startedAt: now))
    }
}
