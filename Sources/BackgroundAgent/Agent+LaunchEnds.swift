import BackgroundLedger
import BackgroundScheduling
import Foundation

// Launches end with an outcome; what becomes of the request they served follows from it.
extension Agent {
    func finishEndedLaunches(_ pass: inout Pass) throws {
        // What a process leaves that died while it was queuing: nothing else wakes an agent that lives for months.
        if !endedLaunches.isEmpty { orphansDue = monotonic() }
        for (id, end) in endedLaunches {
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else { continue }
            try finish(launch, end, &pass)
        }
        endedLaunches = [:]
    }

    private func finish(_ launch: LaunchRecord, _ end: ProcessEnd, _ pass: inout Pass) throws {
        var launch = launch
        CrashPoint.reach("agent.launchEnded")
        let outcome = launch.result ?? Self.outcomeWithoutResult(launch, end)
        launch.outcome = outcome
        launch.endedAt = pass.now
        if launch.result == nil, launch.detail == nil {
            switch outcome {
            case .failed: launch.detail = "did not stop; its process was left alone"
            case .neverBegan: launch.detail = "the agent ended before it had started the process"
            case .completed, .expired, .killed, .crashed, .skipped: launch.detail = Self.describe(end)
            }
        }
        if outcome == .expired, launch.detail == nil { launch.detail = launch.stopReason.map(Self.describe) }
        if launch.kind == .urlSession, outcome == .completed, launch.detail == nil {
            launch.detail = try deliveryNote(session: launch.identifier, since: launch.startedAt, pass.transaction)
        }
        try pass.transaction.update(launch)
        if outcome == .completed { try settleDeliveries(of: launch, pass) }
        try settle(launch, outcome, &pass)
        if launch.kind == .continuedProcessing { withdrawProgress(of: launch, &pass) }
        if launch.kind == .significantTimeChange, outcome.isResult { try settleTimeChange(pass) }
        supervised[launch.id!] = nil
        seenProgress[launch.id!] = nil
        pass.effects.append(.forgetLaunch(launch.id!))
        log.note("\(launch.kind.rawValue) \(launch.identifier) ended: \(outcome.rawValue)")
    }

    private static func outcomeWithoutResult(_ launch: LaunchRecord, _ end: ProcessEnd) -> LaunchOutcome {
        // Where it is known why there was no process, that is the app's.
        if launch.pid == nil, end == .unknown, launch.detail == nil { return .neverBegan }
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
        // From the future: the clock was set back since. With a second's tolerance: a date read back from the ledger can lie a
        // fraction of a microsecond after the one written, and what ended in this very pass was told to nobody.
        func isOld(_ date: Date) -> Bool { date <= launch.startedAt || date > pass.now.addingTimeInterval(1) }
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
        guard launch.outcome != .neverBegan else { return 0 }
        let inARow = try transaction.endedLaunches(launch.kind, launch.identifier, limit: 60)
            .prefix { $0.outcome?.isBlamedOnApp == true || $0.outcome == .neverBegan }
        return inARow.filter { $0.outcome?.isBlamedOnApp == true }.count
    }

    /// How the transfers delivered in a launch got on, for the history.
    private func deliveryNote(session: String, since: Date, _ transaction: LedgerTransaction) throws -> String? {
        let notes = try transaction.deliveredTransfers(session: session, since: since).compactMap(\.note)
        return notes.isEmpty ? nil : notes.joined(separator: "; ")
    }
}
