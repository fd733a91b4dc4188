import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

/// A launch of an app process. After the process has ended, the launch is an entry of the history. Only events change the columns
/// that store the ``LaunchLife``. Methods of ``LedgerTransaction`` write the process, the progress and the number of the progress
/// notification.
package struct LaunchRecord: Codable, Sendable, Equatable {
    package private(set) var id: Int64?
    package let kind: LaunchKind
    /// The identifier of the task, the session or the notification, depending on the kind.
    package let identifier: String
    package let requestToken: String?
    /// The number of the launch for its request. The first launch has the number 1, and each repeated launch has a higher number.
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
    /// The conditions that must be met while the launch is running.
    package let requiresNetwork: Bool
    package let requiresExternalPower: Bool
    /// The time at which the request was submitted (`askedAt`), and the earliest begin date of the request (`askedBegin`).
    package let askedAt: Date?
    package let askedBegin: Date?
    /// The name of the last condition of the request that was met. The launch began because of this condition.
    package let woke: String?
    /// The ``ProcessIdentity/start`` of the process with the number `pid`. The value is `nil` if an earlier version recorded only
    /// the process number.
    package let hostStart: Int64?
    package let title: String?
    package let subtitle: String?
    package let progressDone: Int64?
    package let progressTotal: Int64?
    package let progressAt: Date?
    /// The number that the notification server assigned to the progress notification.
    package let noticeID: Int64?

    /// The process that does the work of the launch.
    package var process: ProcessIdentity? {
        guard let pid, let hostStart else { return nil }
        return ProcessIdentity(pid: pid, start: hostStart)
    }

    /// The process that submitted the continued processing and does the work, or `nil` for other kinds of launches.
    package var host: ProcessIdentity? { kind == .continuedProcessing ? process : nil }

    /// - Parameter request: the request for which the launch begins. A request of continued processing also contains the process
    ///   that does the work, and the text of the notification.
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

    /// Creates a launch for a request. Returns `nil` if `commands` contain no command to begin the launch.
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
        (endedAt, outcome, detail) = (now, .skipped, "the request did not run at its time, because missed has the value \"skip\"")
    }
}

extension LaunchRecord: LedgerRecord {
    package static let databaseTableName = "launch"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

// The conversion between the type `LaunchLife` and the columns of the row.
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
    /// - Parameter timer: the state of the launch that only the agent's memory contains.
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

    /// Applies an event that does not need the state of the timer.
    package func handle(_ event: LaunchLife.Event, launch id: Int64) throws {
        guard var launch = try launch(id) else { return }
        var timer: LaunchSupervision?
        try handle(event, &launch, &timer)
    }
}
