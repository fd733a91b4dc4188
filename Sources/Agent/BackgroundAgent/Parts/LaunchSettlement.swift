import BackgroundLedger
import BackgroundScheduling
import Foundation

/// A launch ends with an outcome; what becomes of the request it served and of what it delivered follows from it. No state.
enum LaunchSettlement {
    /// - Returns: the launch as it ended.
    static func settle(_ launch: LaunchRecord, _ end: ProcessEnd, _ pass: inout Pass) throws -> LaunchRecord {
        var launch = launch
        let outcome = try outcome(of: launch, end, pass)
        launch.outcome = outcome
        launch.endedAt = pass.now
        launch.detail = try launch.detail ?? detail(of: launch, outcome, end, pass)
        try pass.transaction.update(launch)
        if outcome == .completed { try settleDeliveries(of: launch, pass) }
        try settleRequest(of: launch, outcome, &pass)
        if launch.kind == .significantTimeChange, outcome.isResult { try TimeChanges.settle(pass) }
        pass.log(
            .launchEnded, (.launch, launch.id ?? 0), (.kind, launch.kind.rawValue), (.identifier, launch.identifier),
            (.outcome, outcome.rawValue))
        return launch
    }

    private static func outcome(of launch: LaunchRecord, _ end: ProcessEnd, _ pass: Pass) throws -> LaunchOutcome {
        guard let result = launch.result else { return outcomeWithoutResult(launch, end) }
        // It said that it was done, and ended while its delegate was being told.
        if launch.kind == .urlSession, result == .completed, try pass.transaction.hasClaimedEvents(in: launch) {
            return outcomeWithoutResult(launch, end)
        }
        return result
    }

    private static func outcomeWithoutResult(_ launch: LaunchRecord, _ end: ProcessEnd) -> LaunchOutcome {
        // Where it is known why there was no process, that is the app's.
        if launch.pid == nil, end == .unknown, launch.detail == nil { return .neverBegan }
        guard launch.stopReason != nil else { return .crashed }
        // A process that a person started is not ours to kill.
        guard launch.kind == .continuedProcessing else { return .killed }
        return .failed
    }

    // MARK: What the history says

    private static func detail(
        of launch: LaunchRecord, _ outcome: LaunchOutcome, _ end: ProcessEnd, _ pass: Pass
    ) throws -> String? {
        if launch.result == nil {
            switch outcome {
            case .failed: return "did not stop; its process was left alone"
            case .neverBegan: return "the agent ended before it had started the process"
            case .completed, .expired, .killed, .crashed, .skipped: return describe(end)
            }
        }
        if outcome == .expired { return launch.stopReason.map(describe) }
        guard launch.kind == .urlSession, outcome == .completed else { return nil }
        // How the transfers delivered in it got on.
        let notes = try pass.transaction.deliveredTransfers(session: launch.identifier, since: launch.startedAt)
            .compactMap(\.note)
        if notes.isEmpty { return nil }
        let counts = notes.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
        var said: Set<String> = []
        return notes.filter { said.insert($0).inserted }.map { note in
            counts[note]! > 1 ? "\(counts[note]!) times: \(note)" : note
        }.joined(separator: "; ")
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

    // MARK: What it delivered

    /// The handler returned: what there was before it began is told where nobody in the process looked at it. Otherwise an app without
    /// a delegate for it would be launched again and again, for ever. Where a delegate hears of it, what it did not hear yet is for the
    /// next launch.
    private static func settleDeliveries(of launch: LaunchRecord, _ pass: Pass) throws {
        // From the future: the clock was set back since. With a second's tolerance: a date read back from the ledger can lie a
        // fraction of a microsecond after the one written, and what ended in this very pass was told to nobody.
        func isOld(_ date: Date) -> Bool { date <= launch.startedAt || date > pass.now.addingTimeInterval(1) }
        switch launch.kind {
        case .urlSession:
            if try pass.transaction.hasTold(in: launch, until: launch.startedAt) { return }
            // What another process waits for is that one's, stopped perhaps; and what another has begun to tell, or had when it ended, counts
            // by its own word alone.
            for event in try pass.transaction.undeliveredEvents(session: launch.identifier)
            where try isOld(event.createdAt) && event.claimPID == nil && !pass.transaction.isAwaited(event.transfer) {
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

    // MARK: The request it served

    private static func settleRequest(of launch: LaunchRecord, _ outcome: LaunchOutcome, _ pass: inout Pass) throws {
        guard let token = launch.requestToken, var request = try pass.transaction.request(launch.identifier) else { return }
        let isSame = request.token == token
        if outcome.isResult {
            // A replaced request was submitted by this very launch: it stands for the next time.
            guard isSame else { return }
            // Stopped without its doing, before it was done: it waits for what it was promised, and runs again.
            if launch.stopReason == .conditionLost, outcome == .expired, request.recurrence == nil {
                request.forgive()
            } else if request.recurrence != nil {
                try pass.planNext(of: &request, served: launch.servedOccurrence)
            } else if let begin = request.beginAfterRetry {
                // The lost launch is made up for; from here on the request stands for itself.
                request.token = UUID().uuidString
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
        // An agent that died before it started the process earns no delay, and does not make that of a later crash longer.
        let failures = launch.outcome == .neverBegan ? 0 : try pass.transaction.failedInARow(launch.kind, launch.identifier)
        let delay = RelaunchBackoff.delay(afterFailures: failures, base: pass.settings.backoffBase)
        request.backoffUntil = delay > 0 ? pass.now.addingTimeInterval(delay) : nil
        if !isSame {
            if request.recurrence == nil { request.beginAfterRetry = request.earliestBegin ?? pass.now }
            request.occurrence = launch.servedOccurrence
            request.earliestBegin = pass.now
        }
        try pass.transaction.save(request)
    }
}
