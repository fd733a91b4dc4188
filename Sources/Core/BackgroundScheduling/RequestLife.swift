import Foundation

/// The states of one request: the date, the delay, the occurrence of the rule, and what happens to the request after each launch
/// ends.
///
/// Only this type changes the state of a request. The type is pure: it receives an event and returns a list of commands. The
/// ledger stores the state in the columns of the request's row, and the phase in the row of the launch for the request.
package struct RequestLife: Equatable, Sendable {
    package let terms: Terms
    package let submittedAt: Date
    package private(set) var phase: Phase
    /// A value that is new for every submit. If the token changed, the request was replaced after the launch for the request
    /// began.
    package private(set) var token: String
    /// The earliest date at which the request can begin. The app or the occurrence determines this date. `nil` if the request can
    /// begin immediately.
    package private(set) var earliestBegin: Date?
    /// The occurrence of the rule that the request waits for.
    package private(set) var occurrence: Date?
    package private(set) var delay: Delay?
    /// The number of consecutive launches that ended without a result.
    package private(set) var failures: Int
    /// The date at which the last launch without a result ended.
    package private(set) var lastFailureAt: Date?
    /// The earliest begin date of this request, if a handler submitted the request in a launch that then ended without a result.
    /// The agent first repeats that launch, and only then waits for this date.
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

    /// The earliest date at which the request can begin. If the request has no date, this value is far in the past.
    package var dueAt: Date {
        let never = Date(timeIntervalSince1970: 0)
        return max(earliestBegin ?? never, delay?.until ?? never)
    }

    /// With the setting `missed = "skip"`, an occurrence is skipped if it is late by more than this number of seconds. The value
    /// is not 0, because a machine may be busy or may have just woken.
    package static let lateness: Double = 600

    /// Applies an event. If the event has no effect in the current phase, nothing changes and the result is empty.
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
            // A folder changed before the occurrence, and the launch for this change has not begun yet.
            let isEarly = isBeforeOccurrence
            defer { if isEarly { earliestBegin = min(earliestBegin ?? now, now) } }
            return plan(after: history.lastServed, now, zone)
        case .unwatched(let moment):
            // An occurrence counts as missed only if no agent was running. If an agent runs and the request waits for a network,
            // the request is late and is not skipped.
            guard terms.missed == .skip, phase == .pending, failures == 0, let occurrence, !isBeforeOccurrence,
                dueAt < min(now, moment).addingTimeInterval(-Self.lateness)
            else { return [] }
            return [.skip(occurrence)] + plan(after: occurrence, now, zone)
        case .folderChanged:
            guard phase == .pending else { return [] }
            earliestBegin = min(earliestBegin ?? now, now)
            return []
        case .appChanged:
            if failures > 0 { delay = nil }
            return []
        }
    }
}

// MARK: - The next occurrence

extension RequestLife {
    /// Plans the next occurrence, which is after now and after the occurrence `served`. Nothing changes if the request has no
    /// rule.
    private mutating func plan(after served: Date?, _ now: Date, _ zone: TimeZone) -> [Command] {
        guard let rule = terms.recurrence else { return [] }
        wait(for: rule.next(after: now, served: served, in: zone))
        return [.planned]
    }

    /// `true` if the request begins before its occurrence, because a folder changed.
    var isBeforeOccurrence: Bool {
        guard let occurrence, let earliestBegin else { return false }
        return earliestBegin < occurrence
    }

    private mutating func wait(for next: Date) {
        occurrence = next
        earliestBegin = next.addingTimeInterval(terms.spread)
    }

    private mutating func submit(
        _ replaced: RequestLife?, _ served: Date?, _ lastServed: Date?, _ now: Date, _ zone: TimeZone
    ) -> [Command] {
        let latest = [served, lastServed].compactMap { $0 }.filter { WallClockRule.counts(served: $0, now: now) }.max()
        // The replaced request may have the same rule and a due occurrence that was not launched. The new request keeps this
        // occurrence.
        if let replaced, replaced.terms.recurrence == terms.recurrence, let due = replaced.occurrence, due <= now,
            latest ?? .distantPast < due, phase == .pending
        {
            wait(for: due)
            (failures, delay) = (replaced.failures, replaced.delay)
            return []
        }
        // Only the occurrence of the launch that submits the request is excluded, and not the occurrences of earlier launches.
        // The clock may have been ahead at an earlier launch. If the occurrence of that launch were excluded, a request that the
        // user submits again would wait until the date of that occurrence.
        return plan(after: served ?? .distantPast, now, zone)
    }

    /// Returns the last occurrence that is due. One launch serves this occurrence and all earlier occurrences. `nil` if the launch
    /// begins before the occurrence.
    private func latestOccurrence(_ now: Date, _ zone: TimeZone) -> Date? {
        if isBeforeOccurrence { return nil }
        guard var occurrence, let rule = terms.recurrence else { return occurrence }
        // The number of steps is limited, because a wrong clock may be ahead by any amount of time.
        for _ in 0..<10_000 {
            let next = rule.next(after: occurrence, in: zone)
            guard next <= now else { break }
            occurrence = next
        }
        return occurrence
    }

    /// Makes a launch that has to be repeated due now, because the clock was set back. The stored begin date is the date at which
    /// the failed launch ended. After the change of the clock, this date is in the future and would delay the repeated launch.
    private mutating func makeRetryDue(_ now: Date) {
        let isRetry = terms.recurrence == nil ? beginAfterRetry != nil : occurrence == nil
        if isRetry, let begin = earliestBegin { earliestBegin = min(begin, now) }
    }

    /// Shortens the delay if the clock was set back. The ledger stores the end of the delay as a date, so the delay would
    /// otherwise become longer.
    private mutating func shortenDelay(_ history: History, _ now: Date) {
        guard let current = delay else { return }
        let longest: Double
        switch current.reason {
        case .failures:
            longest = RelaunchBackoff.delay(afterFailures: max(1, history.failedInARow), base: history.backoffBase)
        // The original length of a delay for this reason is not stored, so the limit is the longest possible delay.
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
            // The request is removed immediately, because the work is not repeated. The next request with this identifier can
            // then be queued.
            phase = .removed
            return [.begin(generation: 1, reason: "the user started the request", served: nil), .remove]
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
        // The handler submitted this request during the launch, so the request is for the next occurrence. If the clock was set
        // back during the launch, the next occurrence is planned again.
        guard token == ending.token else {
            guard let occurrence, let served = ending.served, occurrence <= served else { return [] }
            return plan(after: served, now, zone)
        }
        (failures, delay) = (0, nil)
        if terms.recurrence != nil { return plan(after: ending.served ?? ending.history.lastServed, now, zone) }
        // If the launch was stopped because a condition was lost, the request waits for the condition and is then launched again.
        if ending.stopReason == .conditionLost, ending.outcome == .expired { return [] }
        if let begin = beginAfterRetry {
            // The launch that had no result was repeated. The request now waits for the date that the handler submitted.
            (token, earliestBegin, beginAfterRetry) = (ending.newToken, begin, nil)
            return []
        }
        phase = .removed
        return [.remove]
    }

    /// Returns whether the request is consumed (not launched again) although the launch had no result. As on iOS, the request is
    /// consumed if the launch began transfers and then exited with 0 or used up its time. Another launch would begin these
    /// transfers a second time. When the transfers end, the agent launches the app.
    private func consumes(_ ending: Ending) -> Bool {
        // A request with a rule is consumed only by a launch that has a result.
        guard ending.hasTransfers, terms.recurrence == nil else { return false }
        return ending.outcome == .crashed && ending.end == .exited(0)
            || ending.outcome == .killed && ending.stopReason == .expired
    }

    /// Plans another launch of the request, because the launch had no result. The launch is repeated even if its handler
    /// submitted the next request.
    private mutating func retry(_ ending: Ending, _ generation: Int, _ now: Date) {
        (failures, lastFailureAt) = (generation, now)
        // If the agent was killed before the process was started, no delay follows. This failure also does not lengthen the delay
        // after a later crash.
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
