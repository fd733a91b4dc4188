import BackgroundLedger
import Foundation

/// The state that decides how long this agent runs.
package enum Lifetime: Equatable {
    /// The agent is working. `idleSince` is the date since which all work is complete, or `nil` if work is unfinished.
    case working(idleSince: Date?)
    /// A newer version of the agent uses the ledger. Running work continues until it ends, and no new work begins. The newer
    /// agent then continues.
    case draining
    /// All work is being stopped, and the agent waits for the end of the work.
    case quitting(Quit)
    case finished(Ending)

    package enum Ending: Equatable {
        /// The agent finished because all work is complete.
        case idle(since: Date)
        /// No work needs the agent before a known date. The agent is started again at this date, or when work arrives.
        ///
        /// `since` is the date since which no work needs the agent. `until` is the date at which the next work becomes due, or
        /// `nil` if no such date is known.
        case away(since: Date, until: Date?)
        case superseded
        case quit(Quit)
    }

    /// The way in which all work is stopped.
    package struct Quit: Equatable {
        /// `true` if the agent also removes requests that handlers submit while they are being stopped.
        var forGood: Bool
        /// `true` if a newer version of the agent uses the ledger. The newer version may have changed the ledger before or after
        /// the request to quit.
        var isSuperseded: Bool
    }

    /// The number of seconds without work after which the agent exits.
    static let linger: Double = 5

    /// `true` if new work is allowed to begin.
    var beginsWork: Bool {
        switch self {
        case .working, .finished(.idle), .finished(.away): true
        case .draining, .quitting, .finished(.superseded), .finished(.quit): false
        }
    }

    /// `true` if the rules of a newer version of the agent apply to the ledger.
    var isSuperseded: Bool {
        switch self {
        case .draining, .finished(.superseded): true
        case .quitting(let quit), .finished(.quit(let quit)): quit.isSuperseded
        case .working, .finished(.idle), .finished(.away): false
        }
    }

    package var isQuitting: Bool {
        switch self {
        case .quitting, .finished(.quit): true
        case .working, .draining, .finished(.idle), .finished(.away), .finished(.superseded): false
        }
    }

    package var hasEnded: Bool {
        switch self {
        case .finished: true
        case .working, .draining, .quitting: false
        }
    }

    /// Stops all work because of a request. Returns `true` if no stop was requested before.
    mutating func quit(forGood: Bool) -> Bool {
        switch self {
        case .quitting(var quit):
            quit.forGood = quit.forGood || forGood
            self = .quitting(quit)
            return false
        case .finished(.quit): return false
        case .working, .draining, .finished(.idle), .finished(.away), .finished(.superseded):
            self = .quitting(Quit(forGood: forGood, isSuperseded: isSuperseded))
            return true
        }
    }

    /// Records that a newer version of the agent changed the ledger. Returns `true` if running work is allowed to finish.
    mutating func drain() -> Bool {
        switch self {
        case .working, .finished(.idle), .finished(.away):
            self = .draining
            return true
        case .quitting(var quit):
            quit.isSuperseded = true
            self = .quitting(quit)
            return false
        case .draining, .finished(.superseded), .finished(.quit): return false
        }
    }

    /// Continues after all work was complete, because new work arrived.
    mutating func continueWork() { self = .working(idleSince: nil) }

    /// The state of other parts that matters for the decision to exit.
    struct OtherWork {
        var hasAttempts: Bool
        /// The date until which the agent waits for the server's reply to a notification.
        var answersDue: Date?
        var isShowing: Bool
        /// `true` if an alarm is set that wakes the machine. The alarm is removed if this process ends.
        var holdsAlarm: Bool
        /// `true` if another program can detect the next change of the folders that requests wait for.
        var foldersAreReported: Bool
        /// The launches that this agent cannot end. The next agent finds these launches again.
        var outOfReach: Set<Int64>
    }

    mutating func plan(
        _ pass: inout Pass, _ others: OtherWork, _ activation: inout Activation
    ) throws {
        switch self {
        case .working(let idleSince): try consider(idleSince, &pass, others, &activation)
        case .finished(.idle(let since)): try consider(since, &pass, others, &activation)
        case .finished(.away(let since, _)): try consider(since, &pass, others, &activation)
        case .draining, .finished(.superseded):
            // The agent does not wait for continued processing, because this work runs in the apps' processes.
            let waits = try pass.transaction.liveLaunches().contains {
                $0.kind != .continuedProcessing && !others.outOfReach.contains($0.id ?? 0)
            }
            self = waits || others.isShowing || others.hasAttempts ? .draining : .finished(.superseded)
        case .quitting(let quit), .finished(.quit(let quit)):
            let hasLaunches = try pass.transaction.liveLaunches().contains { !others.outOfReach.contains($0.id ?? 0) }
            let withdraws = try pass.transaction.notificationsToHandle().contains { $0.state == .withdrawing }
            pass.wake(at: others.answersDue)
            guard !hasLaunches, !withdraws, !others.hasAttempts, others.answersDue == nil else {
                return self = .quitting(quit)
            }
            self = .finished(.quit(quit))
            // The command `quit` removed all requests. A handler that was still running may have submitted its next request after
            // the command.
            if quit.forGood { try pass.transaction.deleteRequestsOfLaunches() }
        }
    }

    private mutating func consider(
        _ idleSince: Date?, _ pass: inout Pass, _ others: OtherWork, _ activation: inout Activation
    ) throws {
        let isLeft = try pass.transaction.hasUnfinishedWork()
        let isBusy = others.hasAttempts || isLeft && (others.isShowing || others.holdsAlarm)
        guard !isBusy, try !isLeft || others.foldersAreReported && activation.mayExit(&pass) else {
            self = .working(idleSince: nil)
            return try pass.transaction.setFact(.absence, nil)
        }
        let since = idleSince ?? pass.now
        let exitDate = since.addingTimeInterval(Self.linger)
        let isTime = pass.now >= exitDate || pass.now < since
        if isTime, isLeft {
            try pass.transaction.setFact(.activationTrouble, nil)
            try pass.transaction.setFact(.absence, AgentAbsence(since: since, until: pass.wake))
            self = .finished(.away(since: since, until: pass.wake))
        } else {
            // A running agent removes the recorded date of its next start.
            try pass.transaction.setFact(.absence, nil)
            self = isTime ? .finished(.idle(since: since)) : .working(idleSince: since)
            pass.wake(at: exitDate)
        }
    }
}
