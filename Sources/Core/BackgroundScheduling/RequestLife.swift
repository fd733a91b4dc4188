import Foundation

/// The states of one request: the date, the delay, the occurrence of the rule, and the effect of the end of each launch.
///
/// Only this type has rules about this state. The type is pure: the input is an event, and the output is a list of commands. The
/// ledger stores the state in the columns of the request's row, and the phase in the row of the launch for the request.
package struct RequestLife: Equatable, Sendable {
    package let terms: Terms
    package let submittedAt: Date
    package private(set) var phase: Phase
    /// A value that is new for every submit. The token shows whether the request was replaced after a launch for the request began.
    package private(set) var token: String
    /// The date that the app set, or the date of the occurrence. `nil` if the request can begin at once.
    package private(set) var earliestBegin: Date?
    /// The occurrence of the rule that the request waits for.
    package private(set) var occurrence: Date?
    package private(set) var delay: Delay?
    /// The number of consecutive launches that ended without a result.
    package private(set) var failures: Int
    /// The date at which the last launch without a result ended.
    package private(set) var lastFailureAt: Date?
    /// The date of this request, if a handler submitted it and then ended without a result. The launch without a result is repeated
    /// first.
    package private(set) var beginAfterRetry: Date?

    /// Creates a state from the values in the ledger.
    package init(
        terms: Terms, submittedAt: Date, phase: Phase = .pending, token: String, earliestBegin: Date?, occurrence: Date? = nil,
        delay: Delay? = nil, failures: Int = 0, lastFailureAt: Date? = nil, beginAfterRetry: Date? = nil
    ) {
        (self.terms, self.submittedAt, self.phase, self.token) = (terms, submittedAt, phase, token)
        (self.earliestBegin, self.occurrence, self.delay) = (earliestBegin, occurrence, delay)
        (self.failures, self.lastFailureAt, self.beginAfterRetry) = (failures, lastFailureAt, beginAfterRetry)
    }

    /// The earliest date at which the request can begin. If the request has no date, this date is far in the past.
    package var dueAt: Date {
        let never = Date(timeIntervalSince1970: 0)
        return max(earliestBegin ?? never, delay?.until ?? never)
    }

    /// The number of seconds of lateness after which `missed = "skip"` skips an occurrence. The value is not 0, because a machine
    /// may be busy or may have just woken.
    package static let lateness: Double = 600

    /// Applies an event. An event without a meaning in this phase changes nothing and returns no commands.
    ///
    /// - Returns: the commands to carry out, in this order.
    package mutating func handle(_ event: Event, now: Date, in zone: TimeZone) -> [Command] {
        guard phase != .removed else { return [] }
        switch event {
        case .submitted(let replaced, let served, let lastServed, let pause):
            guard terms.recurrence == nil else { return submit(replaced, served, lastServed, now, zone) }
            if earliestBegin == nil, pause > 0 { delay = Delay(until: now.addingTimeInterval(pause), reason: .discretion) }
            return []
        case .launched(let isSimulated): return launch(isSimulated, now, zone)
        case .ended(let ending): return end(ending, now, zone)
        case .clockChanged(let history):
            shortenDelay(history, now)
            makeRetryDue(now)
            // An occurrence that is already due is not planned again.
            guard let occurrence, occurrence > now else { return [] }
            return plan(after: history.lastServed, now, zone)
        case .unwatched(let moment):
            // An occurrence was missed only if no agent was running. A request that waits for a network while an agent runs is
            // late, and is not skipped.
            guard terms.missed == .skip, phase == .pending, failures == 0, let occurrence,
                dueAt < min(now, moment).addingTimeInterval(-Self.lateness)
            else { return [] }
            return [.skip(occurrence)] + plan(after: occurrence, now, zone)
        case .appChanged:
            if failures > 0 { delay = nil }
            return []
        }
    }
}

// MARK: - The next occurrence

extension RequestLife {
    /// Plans the next occurrence, which is after now and after the served occurrence. If the request has no rule, nothing changes.
    private mutating func plan(after served: Date?, _ now: Date, _ zone: TimeZone) -> [Command] {
        guard let rule = terms.recurrence else { return [] }
        wait(for: rule.next(after: now, served: served, in: zone))
        return [.planned]
    }

    private mutating func wait(for next: Date) {
        occurrence = next
        earliestBegin = next.addingTimeInterval(terms.spread)
    }

    private mutating func submit(
        _ replaced: RequestLife?, _ served: Date?, _ lastServed: Date?, _ now: Date, _ zone: TimeZone
    ) -> [Command] {
        let latest = [served, lastServed].compactMap { $0 }.filter { WallClockRule.counts(served: $0, now: now) }.max()
        // If the replaced request has the same rule and a due occurrence without a launch, this occurrence is kept.
        if let replaced, replaced.terms.recurrence == terms.recurrence, let due = replaced.occurrence, due <= now,
            latest ?? .distantPast < due, phase == .pending
        {
            wait(for: due)
            (failures, delay) = (replaced.failures, replaced.delay)
            return []
        }
        // Only the occurrence of the submitting launch is excluded. If the clock was wrong at an earlier launch, a user who submits
        // the request again does not have to wait for the end of that error.
        return plan(after: served ?? .distantPast, now, zone)
    }

    /// Returns the last occurrence that is due. One launch serves this occurrence and all earlier occurrences.
    private func latestOccurrence(_ now: Date, _ zone: TimeZone) -> Date? {
        guard var occurrence, let rule = terms.recurrence else { return occurrence }
        // The number of steps has a limit, because a wrong clock may be ahead by any time.
        for _ in 0..<10_000 {
            let next = rule.next(after: occurrence, in: zone)
            guard next <= now else { break }
            occurrence = next
        }
        return occurrence
    }

    /// Makes a repeated launch due at once. The stored begin date is the date at which the failed launch ended. If the clock was
    /// set back, this date is in the future and would delay the repeated launch.
    private mutating func makeRetryDue(_ now: Date) {
        let isRetry = terms.recurrence == nil ? beginAfterRetry != nil : occurrence == nil
        if isRetry, let begin = earliestBegin { earliestBegin = min(begin, now) }
    }

    /// Shortens the delay if the clock was set back. The delay is stored as the date of its end, so the delay would otherwise
    /// become longer.
    private mutating func shortenDelay(_ history: History, _ now: Date) {
        guard let current = delay else { return }
        let longest: Double
        switch current.reason {
        case .failures:
            longest = RelaunchBackoff.delay(afterFailures: max(1, history.failedInARow), base: history.backoffBase)
        // The original length of this pause is not stored, so the longest delay is the limit.
        case .discretion: longest = RelaunchBackoff.longest
        }
        let latest = now.addingTimeInterval(longest)
        if current.until > latest { delay = Delay(until: latest, reason: current.reason) }
    }
}

// MARK: - Launches

extension RequestLife {
    private mutating func launch(_ isSimulated: Bool, _ now: Date, _ zone: TimeZone) -> [Command] {
        guard phase == .pending else { return [] }
        guard terms.kind != .continuedProcessing else {
            // The request is removed at once, because the work is not repeated. The next request with this identifier can then be
            // queued.
            phase = .removed
            return [.begin(generation: 1, reason: "the user started it", served: nil), .remove]
        }
        let generation = min(max(failures, 0), 1_000_000) + 1
        phase = .serving(generation: generation)
        let reason =
            isSimulated
            ? "simulated"
            : generation > 1 ? "relaunch after \(RelaunchBackoff.launches(failures)) without a result" : "due"
        return [.begin(generation: generation, reason: reason, served: isSimulated ? nil : latestOccurrence(now, zone))]
    }

    private mutating func end(_ ending: Ending, _ now: Date, _ zone: TimeZone) -> [Command] {
        guard case .serving(let generation) = phase else { return [] }
        phase = .pending
        guard ending.outcome.isResult || consumes(ending) else {
            retry(ending, generation, now)
            return []
        }
        // The handler submitted this request during the launch, so the request is for the next time. If the clock was set back
        // since then, the next time is planned again.
        guard token == ending.token else {
            guard let occurrence, let served = ending.served, occurrence <= served else { return [] }
            return plan(after: served, now, zone)
        }
        (failures, delay) = (0, nil)
        if terms.recurrence != nil { return plan(after: ending.served ?? ending.history.lastServed, now, zone) }
        // If the launch was stopped because a condition was lost, the request waits for the condition and runs again.
        if ending.stopReason == .conditionLost, ending.outcome == .expired { return [] }
        if let begin = beginAfterRetry {
            // The launch without a result was repeated. The request now waits for the date that the handler submitted.
            (token, earliestBegin, beginAfterRetry) = (ending.newToken, begin, nil)
            return []
        }
        phase = .removed
        return [.remove]
    }

    /// Returns whether a launch without a result consumes the request. As on iOS, this is the case if the launch began transfers
    /// and then exited with 0 or used up its time. Another launch would begin the same transfers again. The end of a transfer
    /// launches the app.
    private func consumes(_ ending: Ending) -> Bool {
        // A request with a rule is not consumed before a launch with a result served the occurrence.
        guard ending.hasTransfers, terms.recurrence == nil else { return false }
        return ending.outcome == .crashed && ending.end == .exited(0)
            || ending.outcome == .killed && ending.stopReason == .expired
    }

    /// A launch without a result is repeated, also if its handler had already submitted the next request.
    private mutating func retry(_ ending: Ending, _ generation: Int, _ now: Date) {
        (failures, lastFailureAt) = (generation, now)
        // If the agent was killed before it started the process, no delay follows, and the delay after a later crash is not longer.
        let count = ending.outcome == .neverBegan ? 0 : ending.history.failedInARow
        let seconds = RelaunchBackoff.delay(afterFailures: count, base: ending.history.backoffBase)
        delay = seconds > 0 ? Delay(until: now.addingTimeInterval(seconds), reason: .failures) : nil
        guard token != ending.token else { return }
        guard terms.recurrence != nil else {
            (beginAfterRetry, earliestBegin) = (earliestBegin ?? now, now)
            return
        }
        (occurrence, earliestBegin) = (nil, now)
        if let served = ending.served { wait(for: served) }
    }
}
