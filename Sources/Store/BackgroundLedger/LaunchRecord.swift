import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

/// A launch of an app process. After the end, the launch is an entry of the history. Only events change the columns of its
/// ``LaunchLife``. Statements of ``LedgerTransaction`` write the process, the progress and the number of the progress
/// notification.
package struct LaunchRecord: Codable, Sendable, Equatable {
    package private(set) var id: Int64?
    package let kind: LaunchKind
    /// The identifier of the task, the session or the notification, depending on the kind.
    package let identifier: String
    package let requestToken: String?
    /// The number of the launch among the launches of a request. The first launch has the number 1. `reason` contains the reason
    /// for each launch.
    package let generation: Int
    package let reason: String
    package let simulated: Bool
    package let servedOccurrence: Date?
    package let pid: Int32?
    package let startedAt: Date
    /// The reason why the agent ends the launch. The reason is committed before SIGTERM is sent.
    package private(set) var stopReason: StopReason?
    package let isPersonChoosing: Bool
    package private(set) var result: LaunchOutcome?
    package private(set) var endedAt: Date?
    package private(set) var outcome: LaunchOutcome?
    package private(set) var detail: String?
    /// The conditions that must hold while the launch is running.
    package let requiresNetwork: Bool
    package let requiresExternalPower: Bool
    /// The time when the request was submitted, and the earliest begin that the request contained.
    package let askedAt: Date?
    package let askedBegin: Date?
    /// The condition of the request that was met last.
    package let woke: String?
    /// The ``ProcessIdentity/start`` of the process with the number `pid`. `nil` if an earlier version recorded only the process
    /// number.
    package let hostStart: Int64?
    package let title: String?
    package let subtitle: String?
    package let progressDone: Int64?
    package let progressTotal: Int64?
    package let progressAt: Date?
    /// The notification server's number of the progress notification.
    package let noticeID: Int64?

    /// The process that does the work.
    package var process: ProcessIdentity? {
        guard let pid, let hostStart else { return nil }
        return ProcessIdentity(pid: pid, start: hostStart)
    }

    /// The process that submitted the continued processing and does the work. `nil` for other launches.
    package var host: ProcessIdentity? { kind == .continuedProcessing ? process : nil }

    /// - Parameter request: the request that the launch is for. A request of continued processing also contains the process and
    ///   the text of the notification.
    package init(
        kind: LaunchKind, identifier: String, requestToken: String? = nil, generation: Int = 1, reason: String,
        simulated: Bool = false, servedOccurrence: Date? = nil, startedAt: Date, woke: String? = nil,
        request: RequestRecord? = nil
    ) {
        (self.kind, self.identifier, self.requestToken) = (kind, identifier, requestToken)
        (self.generation, self.reason, self.simulated) = (generation, reason, simulated)
        (self.servedOccurrence, self.startedAt, isPersonChoosing) = (servedOccurrence, startedAt, false)
        requiresNetwork = request?.requiresNetwork ?? false
        requiresExternalPower = request?.requiresExternalPower ?? false
        (askedAt, askedBegin, self.woke) = (request?.submittedAt, request?.earliestBegin, woke)
        (pid, hostStart) = (request?.host?.pid, request?.host?.start)
        (title, subtitle) = (request?.title, request?.subtitle)
        (progressDone, progressTotal, progressAt, noticeID) = (nil, nil, nil, nil)
    }

    /// Creates a launch for a request. Returns `nil` if the request does not begin.
    package init?(
        of request: RequestRecord, _ commands: [RequestLife.Command], simulated: Bool = false, woke: String, startedAt: Date
    ) {
        guard case .begin(let generation, let reason, let served) = commands.first else { return nil }
        self.init(
            kind: request.kind, identifier: request.identifier, requestToken: request.token, generation: generation,
            reason: reason, simulated: simulated, servedOccurrence: served, startedAt: startedAt, woke: woke, request: request)
    }

    /// Creates the history entry for a skipped occurrence.
    package init(skipping occurrence: Date, of request: RequestRecord, at now: Date) {
        self.init(
            kind: request.kind, identifier: request.identifier, reason: "missed", servedOccurrence: occurrence, startedAt: now)
        (endedAt, outcome, detail) = (now, .skipped, "nothing ran at its time; missed = \"skip\"")
    }
}

extension LaunchRecord: LedgerRecord {
    package static let databaseTableName = "launch"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

// How the life of a launch is stored in the columns of its row.
extension LaunchRecord {
    private var phase: LaunchLife.Phase {
        if let outcome, let endedAt { return .ended(outcome, at: endedAt, after: stopReason) }
        if let stopReason { return .stopping(stopReason, hasProcess: pid != nil) }
        return pid == nil ? .starting : .running
    }

    fileprivate mutating func handle(_ event: LaunchLife.Event, _ timer: inout LaunchSupervision?) -> [LaunchLife.Command] {
        var life = LaunchLife(kind: kind, startedAt: startedAt, phase: phase, result: result, detail: detail, timer: timer)
        let commands = life.handle(event)
        switch life.phase {
        case .starting, .running: break
        case .stopping(let reason, _): stopReason = reason
        case .ended(let outcome, let date, let reason): (self.outcome, endedAt, stopReason) = (outcome, date, reason)
        }
        (result, detail, timer) = (life.result, life.detail, life.timer)
        return commands
    }
}

extension LedgerTransaction {
    /// Applies an event to a launch. The row is updated if the event changed it.
    ///
    /// - Parameter timer: the state of the launch that the agent keeps in memory.
    /// - Returns: the remaining actions for the agent.
    @discardableResult
    package func handle(
        _ event: LaunchLife.Event, _ launch: inout LaunchRecord, _ timer: inout LaunchSupervision?
    ) throws -> [LaunchLife.Command] {
        let before = launch
        let commands = launch.handle(event, &timer)
        if launch != before { try launch.update(database) }
        return commands
    }

    /// Handles an event that does not need the timer.
    package func handle(_ event: LaunchLife.Event, launch id: Int64) throws {
        guard var launch = try launch(id) else { return }
        var timer: LaunchSupervision?
        try handle(event, &launch, &timer)
    }
}
