import Foundation

/// The states of one launch: its process, why and when the process has to stop, and the outcome.
///
/// Only this type changes the state of a launch. The type is pure: it receives an event and returns a list of commands. The
/// ledger stores the state in the columns of the launch's row. The agent keeps the timer in memory.
package struct LaunchLife: Equatable, Sendable {
    package let kind: LaunchKind
    package let startedAt: Date
    package private(set) var phase: Phase
    /// The first result that the app's process recorded before the process exited.
    package private(set) var result: LaunchOutcome?
    /// The text that the history shows about the end of the launch.
    package private(set) var detail: String?
    /// The timer that supervises the launch. `nil` if this agent does not supervise the launch yet.
    package private(set) var timer: LaunchSupervision?

    /// Creates a state from the values that the ledger and the agent store.
    package init(
        kind: LaunchKind, startedAt: Date, phase: Phase = .starting, result: LaunchOutcome? = nil, detail: String? = nil,
        timer: LaunchSupervision? = nil
    ) {
        (self.kind, self.startedAt, self.phase) = (kind, startedAt, phase)
        (self.result, self.detail, self.timer) = (result, detail, timer)
    }

    /// The date at which a process that has to stop is killed. `nil` if the process does not have to stop, or was already killed.
    package var killAt: Date? { stopReason == nil ? nil : timer?.deadline }

    /// `true` if the user started the process. The agent does not send signals to such a process.
    private var isContinued: Bool { kind == .continuedProcessing }

    private var hasProcess: Bool {
        switch phase {
        case .starting: false
        case .running, .ended: true
        case .stopping(_, let hasProcess): hasProcess
        }
    }

    private var stopReason: StopReason? {
        switch phase {
        case .starting, .running: nil
        case .stopping(let reason, _): reason
        case .ended(_, at: _, after: let reason): reason
        }
    }

    /// Applies an event. An ended launch does not change any more.
    ///
    /// - Returns: the commands to carry out, in this order.
    package mutating func handle(_ event: Event) -> [Command] {
        if case .ended = phase { return [] }
        // The timer warned the process while the ledger could not be written, so the reason is recorded now.
        if let timer, timer.isStopping, !isContinued { setStop(.expired) }
        switch event {
        case .notStarted(let reason), .abandoned(let reason):
            detail = reason
            return []
        case .resultRecorded(let outcome, let detail):
            guard result == nil else { return [] }
            result = outcome
            self.detail = detail ?? self.detail
            return []
        case .supervised(let limits, let isPersonChoosing, let hasMoved, let lostCondition, let now):
            var commands: [Command] = []
            if let lostCondition { commands = stop(.conditionLost, lostCondition, limits, now) }
            return commands + supervise(limits, isPersonChoosing, hasMoved, now)
        case .stopWanted(let reason, let limits, let now): return stop(reason, nil, limits, now)
        case .stopRecorded(let reason):
            setStop(reason)
            return []
        case .processEnded(let end, let wasInterrupted, let note, let now):
            // If the process ended while it delivered an event of a transfer, the recorded result is ignored.
            let outcome = wasInterrupted ? outcomeWithoutResult(end) : result ?? outcomeWithoutResult(end)
            detail = detail ?? describe(outcome, end, note)
            phase = .ended(outcome, at: now, after: stopReason)
            return []
        }
    }

    /// Records the reason to stop, if no reason was recorded before.
    private mutating func setStop(_ reason: StopReason) {
        if stopReason == nil { phase = .stopping(reason, hasProcess: hasProcess) }
    }
}

// MARK: - Stopping

extension LaunchLife {
    private mutating func supervise(_ limits: Limits, _ isPersonChoosing: Bool, _ hasMoved: Bool, _ now: Date) -> [Command] {
        let commands = startTimer(limits, now)
        // The date of the progress in the launch's row is not used, because the clock may have been set since that date.
        if hasMoved { timer?.moved(at: now) }
        // Normally the process itself ends the work that continues after its handlers returned. So the agent waits for the
        // additional grace time before it ends this work.
        if result == .completed, !isContinued, limits.continuation > 0 {
            timer?.continues(for: limits.continuation + limits.grace, from: now)
        }
        return commands + apply(timer?.tick(now: now, isPersonChoosing: isPersonChoosing), nil)
    }

    private mutating func stop(_ reason: StopReason, _ detail: String?, _ limits: Limits, _ now: Date) -> [Command] {
        startTimer(limits, now) + apply(timer?.stop(reason, now: now), detail)
    }

    /// Starts the timer when this agent checks the launch for the first time. The budget (the allowed time) begins at the start
    /// of the launch, even if an earlier agent was killed since then.
    private mutating func startTimer(_ limits: Limits, _ now: Date) -> [Command] {
        guard timer == nil else { return [] }
        // A start in the future means that the clock was set back. The launch then has its complete budget from now.
        var fresh = LaunchSupervision(startedAt: min(startedAt, now), budget: limits.budget, grace: limits.grace)
        defer { timer = fresh }
        guard stopReason != nil else { return [] }
        // The earlier agent may have been killed after it committed the reason and before it sent the signal. A second signal
        // does no harm.
        fresh.adoptWarned(now: now)
        return isContinued ? [] : [.warn]
    }

    private mutating func apply(_ command: LaunchSupervision.Command?, _ detail: String?) -> [Command] {
        switch command {
        case nil: return []
        case .warn(let given):
            let reason = isContinued && given == .expired ? .noProgress : given
            setStop(reason)
            self.detail = self.detail ?? detail
            // A process of continued processing receives no signal, because the process reads the reason from the ledger.
            return [.logStop(reason)] + (isContinued ? [] : [.warn])
        case .kill: return [isContinued ? .end : .kill]
        }
    }
}

// MARK: - Ending

extension LaunchLife {
    private func outcomeWithoutResult(_ end: ProcessEnd) -> LaunchOutcome {
        // If the ledger contains the reason why no process was started, the failure is treated as a failure of the app.
        if !hasProcess, end == .unknown, detail == nil { return .neverBegan }
        guard stopReason != nil else { return .crashed }
        return isContinued ? .failed : .killed
    }

    private func describe(_ outcome: LaunchOutcome, _ end: ProcessEnd, _ note: String?) -> String? {
        if result == nil {
            switch outcome {
            case .failed: return "the launch did not stop, and its process was not killed"
            case .neverBegan: return "the agent ended before it had started the process"
            case .completed, .expired, .killed, .crashed, .skipped: return Self.describe(end)
            }
        }
        return outcome == .expired ? stopReason.map(Self.describe) : outcome == .completed ? note : nil
    }

    private static func describe(_ reason: StopReason) -> String {
        switch reason {
        case .expired: "the launch reached its time limit"
        case .quit: "all background work was ended"
        case .conditionLost: "a condition that the launch needs was lost"
        case .simulated: "the command `simulate expire` ended the launch"
        case .cancelled: "the user pressed Cancel"
        case .noProgress: "the task made no progress"
        }
    }

    private static func describe(_ end: ProcessEnd) -> String {
        switch end {
        case .exited(let code): "the process exited with code \(code) without a result"
        case .signalled(let signal): "the process was ended by signal \(signal)"
        case .unknown: "the process ended without a result"
        }
    }
}
