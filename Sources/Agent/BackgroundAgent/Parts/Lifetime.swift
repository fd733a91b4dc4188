import BackgroundLedger
import Foundation

/// How long this agent stays.
package enum Lifetime: Equatable {
    /// - idleSince: since when nothing is left to do.
    case working(idleSince: Date?)
    /// A newer version took the ledger over: what runs is let finish, nothing new begins, and another agent follows.
    case draining
    /// Everything is stopped and waited for.
    case quitting(Quit)
    case finished(Ending)

    package enum Ending: Equatable {
        /// Nothing is left to do.
        case idle(since: Date)
        /// Nothing needs it before a moment, and somebody starts it again by then, or when work comes.
        ///
        /// - since: since when nothing needs it.
        /// - until: `nil`: time alone makes nothing due.
        case away(since: Date, until: Date?)
        case superseded
        case quit(Quit)
    }

    /// How everything is stopped.
    package struct Quit: Equatable {
        /// What handlers ask for while they are stopped is not wanted either.
        var forGood: Bool
        /// A newer version has taken the ledger over, before or since.
        var isSuperseded: Bool
    }

    /// Seconds without work that needs it after which the agent leaves.
    static let linger: Double = 5

    /// New work may begin.
    var beginsWork: Bool {
        switch self {
        case .working, .finished(.idle), .finished(.away): true
        case .draining, .quitting, .finished(.superseded), .finished(.quit): false
        }
    }

    /// The ledger's rules are those of a newer version.
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

    /// Somebody wants everything stopped. `true`: that is new.
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

    /// A newer version has changed the ledger. `true`: what runs is to be let finish.
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

    /// Work came after it had nothing left to do.
    mutating func goOn() { self = .working(idleSince: nil) }

    /// What others still do, when it is asked whether to leave.
    struct Others {
        var hasAttempts: Bool
        /// Until when the answer to a notification that is on its way to the screen is waited for.
        var answersDue: Date?
        var isShowing: Bool
        /// An alarm is set that wakes the machine, and dies with this process.
        var holdsAlarm: Bool
        /// Launches that this agent cannot end, and that the next one finds again.
        var outOfReach: Set<Int64>
    }

    mutating func plan(_ pass: inout Pass, _ others: Others, _ activation: inout Activation) throws {
        switch self {
        case .working(let idleSince): try consider(idleSince, &pass, others, &activation)
        case .finished(.idle(let since)): try consider(since, &pass, others, &activation)
        case .finished(.away(let since, _)): try consider(since, &pass, others, &activation)
        case .draining, .finished(.superseded):
            // Continued processing is not ours to wait for: it runs in processes of its own.
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
            // The verb took away what there was; a handler that asks for its next launch first did so after that.
            if quit.forGood { try pass.transaction.deleteRequestsOfLaunches() }
        }
    }

    private mutating func consider(
        _ idleSince: Date?, _ pass: inout Pass, _ others: Others, _ activation: inout Activation
    ) throws {
        let isLeft = try pass.transaction.hasUnfinishedWork()
        let isBusy = others.hasAttempts || isLeft && (others.isShowing || others.holdsAlarm)
        guard !isBusy, try !isLeft || activation.mayLeave(&pass) else {
            self = .working(idleSince: nil)
            return try pass.transaction.setFact(.absence, nil)
        }
        let since = idleSince ?? pass.now
        let leaveAt = since.addingTimeInterval(Self.linger)
        let isTime = pass.now >= leaveAt || pass.now < since
        if isTime, isLeft {
            try pass.transaction.setFact(.activationTrouble, nil)
            try pass.transaction.setFact(.absence, AgentAbsence(since: since, until: pass.wake))
            self = .finished(.away(since: since, until: pass.wake))
        } else {
            // It is here: whoever reads the ledger need not ask when it comes back.
            try pass.transaction.setFact(.absence, nil)
            self = isTime ? .finished(.idle(since: since)) : .working(idleSince: since)
            pass.wake(at: leaveAt)
        }
    }
}
