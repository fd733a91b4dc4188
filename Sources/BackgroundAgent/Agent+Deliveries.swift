import BackgroundLedger
import BackgroundScheduling
import Foundation

// Ended transfers and pressed buttons launch the app; processes that wait are watched.
extension Agent {
    func planDeliveries(_ pass: inout Pass) throws {
        try deliverSessions(&pass)
        try deliverResponses(&pass)
    }

    private func deliverSessions(_ pass: inout Pass) throws {
        let sessions = try pass.transaction.waitingSessions()
        guard !sessions.isEmpty else { return }
        let live = try pass.transaction.liveLaunches()
        let attached = try Set(pass.transaction.attachments().map(\.session))
        let moving = Set(running.values.map(\.session))
        for (session, oldest) in sessions {
            // The live launch replays them, or an attached process takes them: no second process.
            if attached.contains(session) || live.contains(where: { $0.kind == .urlSession && $0.identifier == session }) {
                continue
            }
            let hasMoreRunning = moving.contains(session)
            switch SessionDelivery.verdict(oldest: oldest, hasMoreRunning: hasMoreRunning, now: pass.now) {
            case .wait(let until): pass.wake(at: until)
            case .deliverNow: try launchDelivery(.urlSession, session, since: oldest, "a transfer ended", &pass)
            }
        }
    }

    private func deliverResponses(_ pass: inout Pass) throws {
        let live = try pass.transaction.liveLaunches()
        let responses = try pass.transaction.undeliveredResponses()
        for (identifier, waiting) in Dictionary(grouping: responses, by: \.notification) {
            if live.contains(where: { $0.kind == .notificationResponse && $0.identifier == identifier }) { continue }
            let oldest = waiting.map(\.createdAt).min() ?? pass.now
            try launchDelivery(.notificationResponse, identifier, since: oldest, "a person pressed a button", &pass)
        }
    }

    /// A launch that began after something waited and left it waiting failed: it is repeated with growing delay, and
    /// nothing is dropped. (One that completed settles what was there before it.)
    private func launchDelivery(
        _ kind: LaunchKind, _ identifier: String, since oldest: Date, _ reason: String, _ pass: inout Pass
    ) throws {
        // A second of tolerance: a date read back from the ledger can lie a fraction of a microsecond after the one written,
        // and the launch that ended in this very pass would not count. Far in the future: the clock was set back since. What waits
        // since a time to come was there before every launch of the new time.
        let failures = try pass.transaction.endedLaunches(kind, identifier, limit: 20).prefix { launch in
            (launch.startedAt >= oldest || oldest > pass.now && launch.outcome != .completed)
                && launch.endedAt.map { $0 < pass.now.addingTimeInterval(1) } ?? true
        }
        // An agent that died before it had started the process earns the app no delay.
        let blamed = failures.filter { $0.outcome != .neverBegan }
        let delay = RelaunchBackoff.delay(afterFailures: blamed.count, base: pass.settings.backoffBase)
        if let last = blamed.first?.endedAt, last.addingTimeInterval(delay) > pass.now {
            return pass.wake(at: last.addingTimeInterval(delay))
        }
        let launch = try pass.transaction.insert(
            LaunchRecord(
                kind: kind, identifier: identifier, requestToken: nil, generation: failures.count + 1,
                reason: failures.isEmpty ? reason : "relaunch after \(failures.count) without success",
                simulated: false, servedOccurrence: nil, startedAt: pass.now))
        pass.effects.append(.startLaunch(launch.id!))
    }

    // MARK: Processes that wait

    /// Waiters and attachments whose process is gone are taken away.
    func followProcesses(_ pass: inout Pass) throws {
        let waiters = try pass.transaction.waiters()
        let attachments = try pass.transaction.attachments()
        for waiter in waiters where endedProcesses.contains(waiter.process) {
            try pass.transaction.removeWaiter(waiter.id!, grace: pass.settings.grace, now: pass.now)
        }
        for attachment in attachments where endedProcesses.contains(attachment.process) {
            try pass.transaction.remove(attachment)
        }
        let hosts =
            try pass.transaction.requests(of: .continuedProcessing).compactMap(\.host)
            + pass.transaction.liveLaunches().compactMap(\.host)
        let living = Set(waiters.map(\.process) + attachments.map(\.process) + hosts).subtracting(endedProcesses)
        for process in living where !followed.contains(process) {
            followed.insert(process)
            pass.effects.append(.watchProcess(process))
        }
        followed.formIntersection(living)
        endedProcesses = []
    }
}
