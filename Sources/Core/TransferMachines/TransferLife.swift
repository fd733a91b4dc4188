import Foundation

/// The states of one transfer: the phase, the demand for the transfer, and the data that is kept after the transfer ended.
///
/// Only this type changes the state of a transfer. The app, the user's shell commands and the agent report the events. The type
/// is pure: it receives an event and returns a list of commands. The ledger stores the state in the columns of the transfer's
/// row.
///
/// This type uses these terms: an app **awaits** a transfer. When no process awaits the transfer any more (the event **left**),
/// an equal request may continue the transfer within the grace time. A task **adopts** a transfer, and an event then reports the
/// end of the transfer to the app. The app **suspends** a transfer, and **releases** it so that it continues. The user **pauses**, **resumes** and
/// **retries** a transfer.
package struct TransferLife: Equatable, Sendable {
    /// The current phase of the transfer, for example `queued` or `running`.
    package private(set) var phase: Phase
    /// The demand for the transfer: whether processes await the transfer, or an event will report its end to the app.
    package private(set) var wish: Demand
    /// The data that is kept after the transfer ended.
    package private(set) var kept: Kept
    /// `true` if the file is complete and its digest is correct, but the file does not have its final name yet. The value stays
    /// `true` while the transfer waits for disk space, after an agent was killed, and after a failed renaming.
    package private(set) var isProven: Bool
    /// The reason why the transfer waits or failed. The reason is kept until the transfer completes, waits for a begin date, or
    /// is retried after a failure.
    package private(set) var reason: Reason?
    /// The date since which no new bytes have arrived. If this date is too long ago, the transfer fails.
    package private(set) var idleSince: Date
    /// The date since which the transfer is tried. If this date is too long ago, the transfer fails even if bytes arrive.
    /// Otherwise a transfer with one byte per second would never end.
    package private(set) var triedSince: Date

    /// Creates a state from its stored fields.
    package init(phase: Phase, wish: Demand, kept: Kept, isProven: Bool, reason: Reason?, idleSince: Date, triedSince: Date) {
        (self.phase, self.wish, self.kept, self.isProven) = (phase, wish, kept, isProven)
        (self.reason, self.idleSince, self.triedSince) = (reason, idleSince, triedSince)
    }

    /// `true` if the transfer ended with any outcome. Only a failed transfer can continue, after the event `retried`.
    package var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// `true` if an attempt is running and the file is not complete.
    private var isBeingSent: Bool {
        switch phase {
        case .running: true
        case .held(by: _, next: .running): !isProven
        case .held, .queued, .waiting, .finishing, .ended: false
        }
    }

    /// The number of seconds for which the partial file of an ended download is kept, for resume data or for a retry.
    static let partRetention: Double = 7 * 86_400
    /// The date until which the copy of a failed upload is kept. The date is in the distant future: the copy is kept until the
    /// upload is retried or cancelled, because the original may be removed.
    static let bodyEnd = Date.distantFuture

    /// Applies an event. If the event has no effect in the current phase, nothing changes and the result is empty.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - facts: The facts on which the effect of the event also depends.
    /// - Returns: The commands to carry out, in this order.
    package mutating func handle(_ event: Event, _ facts: Facts) -> [Command] {
        let commands = react(to: event, facts)
        // The processes that await an ended transfer already have the result, so the demand has ended.
        if hasEnded, wish == .awaited { wish = .unwanted } else if !hasEnded, wish == .unwanted { wish = .awaited }
        return commands
    }

    private mutating func react(to event: Event, _ facts: Facts) -> [Command] {
        switch event {
        case .awaited(let now):
            if wish != .adopted { wish = .awaited }
            unpause(now)
            return []
        case .left(let until):
            if wish != .adopted { wish = .graceful(until: until) }
            return []
        case .adopted(let suspended):
            wish = .adopted
            if suspended { hold(.app) }
            return hasEnded ? [.reportEnd] : []
        case .suspended:
            hold(.app)
            return []
        case .released(let begin, let now):
            guard case .held(by: let holders, next: _) = phase, holders.contains(.app) else { return [] }
            release(.app)
            waitBegins(max(now, begin ?? now))
            return []
        case .paused:
            // A running attempt is paused only if it can be interrupted and repeated.
            if isBeingSent, !(facts.mayBeRepeated && facts.mayBeCut) { return [] }
            hold(.person)
            return []
        case .shelved:
            if isBeingSent, !facts.mayBeRepeated { return [] }
            hold(.person)
            return []
        case .unpaused(let now):
            unpause(now)
            return []
        case .resumed(let now):
            guard case .held = phase else { return [] }
            if isBeingSent, !facts.mayBeRepeated { phase = going(on: .running) } else { requeue(now) }
            return []
        case .retried(let now): return retry(now, facts)
        case .scheduled(let date, let now):
            schedule(date, now)
            return []
        case .cancelled(let message, let now): return cancel(message, now)
        case .cancelledKeepingPart(let token, let now): return cancel(keeping: token, now)
        case .resumeDataMade(let hasPart, let now): return applyResumeData(hasPart, now)
        case .partTaken:
            kept = .nothing
            return []
        case .began:
            if case .queued = phase { phase = isProven ? .finishing : .running }
            return []
        case .stopped: return stop(facts)
        case .countsReset(let now):
            waitBegins(now)
            return []
        case .progressed(let now):
            idleSince = now
            return []
        case .waits(let date, let reason):
            guard !hasEnded else { return [] }
            continueWork(as: .waiting(until: date))
            self.reason = reason
            return []
        case .proven:
            guard !hasEnded else { return [] }
            isProven = true
            if case .running = phase { phase = .finishing }
            return []
        case .disproven(let now): return disprove(now, facts)
        case .ended(let outcome, let reason, let now): return end(outcome, reason, now, facts)
        case .agentDied(let now): return survive(now, facts)
        case .collected(let now): return collect(now, facts)
        }
    }
}

// MARK: - Holding

extension TransferLife {
    private mutating func hold(_ holder: Holders) {
        let next: Next
        switch phase {
        case .held(by: let holders, next: let held):
            return phase = .held(by: holders.union(holder), next: holder == .person ? .queued : held)
        case .queued: next = .queued
        case .waiting(let date): next = .waiting(until: date)
        case .running, .finishing: next = .running
        case .ended: return
        }
        // If the user later resumes the transfer, the transfer begins immediately.
        phase = .held(by: holder, next: holder == .person ? .queued : next)
    }

    private mutating func release(_ holder: Holders) {
        guard case .held(by: let holders, next: let next) = phase else { return }
        let left = holders.subtracting(holder)
        phase = left.isEmpty ? going(on: next) : .held(by: left, next: next)
    }

    private func going(on next: Next) -> Phase {
        switch next {
        case .queued: .queued
        case .waiting(let date): .waiting(until: date)
        case .running: isProven ? .finishing : .running
        }
    }

    /// Applies the result of an attempt, even if the transfer was held during the attempt.
    private mutating func continueWork(as next: Next) {
        if case .held(by: let holders, next: _) = phase {
            return phase = .held(by: holders, next: holders.contains(.person) ? .queued : next)
        }
        phase = going(on: next)
    }

    private mutating func unpause(_ now: Date) {
        guard case .held(by: let holders, next: _) = phase, holders.contains(.person) else { return }
        phase = holders.contains(.app) ? .held(by: .app, next: .queued) : .queued
        restartWait(now)
    }

    private mutating func requeue(_ now: Date) {
        phase = .queued
        restartWait(now)
    }

    /// Sets the time without progress to zero. The transfer uses the data that was kept for a retry.
    private mutating func restartWait(_ now: Date) {
        waitBegins(now)
        kept = .nothing
    }

    /// Restarts the time limits of the transfer at the date.
    private mutating func waitBegins(_ date: Date) { (idleSince, triedSince) = (date, date) }

    private mutating func retry(_ now: Date, _ facts: Facts) -> [Command] {
        switch phase {
        case .waiting:
            requeue(now)
            return [.forgetReport]
        case .held(by: let holders, next: let next):
            if case .waiting = next, holders == .app {
                phase = .held(by: .app, next: .queued)
                restartWait(now)
                return [.forgetReport]
            }
            guard holders.contains(.person) else { return [] }
            unpause(now)
            return [.forgetReport]
        case .ended(.failed, _):
            // An upload cannot be retried if the copy of its file was removed.
            guard !facts.isUpload || facts.hasBody else { return [] }
            requeue(now)
            reason = nil
            return [.resetCounts, .forgetReport]
        case .queued, .running, .finishing, .ended: return []
        }
    }

    private mutating func schedule(_ date: Date?, _ now: Date) {
        if let date, date > now {
            switch phase {
            case .queued, .waiting: phase = .waiting(until: date)
            case .held(by: .app, next: .queued), .held(by: .app, next: .waiting):
                phase = .held(by: .app, next: .waiting(until: date))
            case .held, .running, .finishing, .ended: return
            }
            // The transfer now waits for its begin date, which is not a problem, so the reason is removed. With a reason, the
            // wait would end when the network returns.
            reason = nil
            return waitBegins(date)
        }
        // The app cannot end a pause that an error caused.
        guard reason?.code == nil else { return }
        switch phase {
        case .waiting: requeue(now)
        case .held(by: .app, next: .waiting):
            phase = .held(by: .app, next: .queued)
            restartWait(now)
        case .held, .queued, .running, .finishing, .ended: break
        }
    }
}

// MARK: - Ending

extension TransferLife {
    private var reportCommands: [Command] { wish == .adopted ? [.reportEnd] : [] }

    /// The error code of `URLError.cancelled`.
    private static let cancelledCode = -999

    private mutating func cancel(_ message: String?, _ now: Date) -> [Command] {
        if case .ended(.failed, _) = phase, case .body = kept {
            // The app was already notified of the failure. The data that was kept for a retry is not needed any more.
            (phase, kept) = (.ended(.cancelled, at: now), .nothing)
            return []
        }
        guard !hasEnded else { return [] }
        phase = .ended(.cancelled, at: now)
        reason = Reason(code: Self.cancelledCode, message: message)
        return reportCommands
    }

    private mutating func cancel(keeping token: String, _ now: Date) -> [Command] {
        let isMoving: Bool
        switch phase {
        case .running, .held(by: _, next: .running): isMoving = !isProven
        // If no attempt is running, no later result can arrive.
        case .queued, .waiting, .finishing, .held: isMoving = false
        case .ended: return []
        }
        let commands = cancel(nil, now)
        let until = now.addingTimeInterval(Self.partRetention)
        kept = isMoving ? .leaving(token: token, until: until) : .part(token: token, until: until)
        // If an attempt is running, the app is notified later, when the agent reports the final result. The error that the app
        // receives then refers to the received part of the file.
        return isMoving ? [] : commands
    }

    private mutating func applyResumeData(_ hasPart: Bool, _ now: Date) -> [Command] {
        guard hasEnded else { return [] }
        switch kept {
        case .leaving(let token, let until), .part(let token, let until):
            kept = hasPart ? .part(token: token, until: until) : .part(token: nil, until: now)
        case .nothing, .body: break
        }
        return reportCommands
    }

    private mutating func stop(_ facts: Facts) -> [Command] {
        switch phase {
        // If an attempt must not be repeated, the phase does not change. The next agent then ends the transfer.
        case .running where !facts.mayBeRepeated, .held(by: _, next: .running) where !facts.mayBeRepeated && !isProven: break
        case .running, .finishing: phase = .queued
        case .held(by: let holders, next: .running): phase = .held(by: holders, next: .queued)
        case .ended:
            guard case .leaving(let token, let until) = kept else { return [] }
            kept = .part(token: token, until: until)
            return reportCommands
        case .held, .queued, .waiting: break
        }
        return []
    }

    private mutating func survive(_ now: Date, _ facts: Facts) -> [Command] {
        switch phase {
        case .running, .finishing, .held(by: _, next: .running):
            return facts.mayBeRepeated || isProven ? stop(facts) : end(.failed, Self.interrupted, now, facts)
        // If the app still waits for the final result of a cancelled transfer, the result is reported now.
        case .ended: return stop(facts)
        case .held, .queued, .waiting: return []
        }
    }

    private static let interrupted = Reason(
        code: -1005, message: "The request was interrupted, and it is not known whether the server processed the request.")

    /// Handles a complete file that does not exist any more or is damaged. The transfer is repeated if a repetition is allowed.
    private mutating func disprove(_ now: Date, _ facts: Facts) -> [Command] {
        guard !hasEnded else { return [] }
        isProven = false
        guard facts.mayBeRepeated else { return end(.failed, Self.interrupted, now, facts) }
        if case .finishing = phase { phase = .running }
        return []
    }

    private mutating func end(_ outcome: Outcome, _ why: Reason?, _ now: Date, _ facts: Facts) -> [Command] {
        guard !hasEnded else { return [] }
        var commands: [Command] = []
        phase = .ended(outcome, at: now)
        if let why { reason = why }
        switch outcome {
        case .completed:
            reason = nil
            isProven = false
            commands.append(.forgetSecrets)
        case .cancelled:
            isProven = false
            commands.append(.removeFiles)
        case .failed:
            kept = keptOfFailed(now, facts)
            let isAnswer = facts.isUpload && facts.hasAnswer
            if case .part = kept {} else if !isProven, !isAnswer { commands.append(.removeFiles) }
            if facts.onlyChecks { commands.append(.forgetSecrets) }
        }
        // The body of a failed upload is kept, because the user can retry the upload. The request body of a download is used for
        // a single request.
        let isRetriable = facts.isUpload && wish == .adopted && !facts.onlyChecks
        if facts.hasBody, outcome == .completed || !isRetriable { commands.append(.removeBody) }
        return commands + reportCommands
    }

    private func keptOfFailed(_ now: Date, _ facts: Facts) -> Kept {
        let partUntil = now.addingTimeInterval(Self.partRetention)
        if facts.isUpload {
            if facts.onlyChecks { return .nothing }
            if wish == .adopted { return .body(until: Self.bodyEnd) }
            return isProven ? .body(until: partUntil) : .nothing
        }
        // A complete file that could not be renamed is kept for a retry. A resumable partial file is kept if the app may use
        // resume data.
        if isProven { return .part(token: nil, until: partUntil) }
        return facts.hasResumablePart && wish == .adopted ? .part(token: facts.newToken, until: partUntil) : .nothing
    }

    private mutating func collect(_ now: Date, _ facts: Facts) -> [Command] {
        var commands: [Command] = []
        if !isKept(at: now) {
            kept = .nothing
            commands.append(.removeFiles)
        }
        var isFailed = false
        if case .ended(.failed, _) = phase { isFailed = true }
        if facts.hasBody, !isFailed || kept == .nothing { commands.append(.removeBody) }
        if !hasEnded { phase = .ended(.cancelled, at: now) }
        // The secrets are kept if the user can retry the failed transfer, or if an app can resume the kept part.
        if !isFailed, kept == .nothing { commands.append(.forgetSecrets) }
        if wish != .adopted { wish = .unwanted }
        return commands
    }

    private func isKept(at now: Date) -> Bool {
        switch kept {
        case .nothing: false
        case .body(let until), .part(_, let until), .leaving(_, let until): until > now
        }
    }
}
