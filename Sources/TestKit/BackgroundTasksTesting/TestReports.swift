import BackgroundLedger
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.LaunchOutcome
@_exported import enum BackgroundScheduling.StopReason
import Foundation

/// A launch of the app, as recorded in the ledger.
public struct LaunchReport: Sendable, Equatable, Identifiable {
    /// The number of the launch, counted from 1.
    public let id: Int64
    /// The kind of the launch.
    public let kind: LaunchKind
    /// The identifier of the task, session or notification, depending on the kind.
    public let identifier: String
    /// The number of this attempt. The first attempt has the number 1. The number is higher if earlier launches of the request
    /// ended without a result.
    public let generation: Int
    /// The reason for the launch, in words.
    public let reason: String
    /// `true` for a manual launch (``TestDriver/simulateLaunch(_:)``).
    public let isSimulated: Bool
    /// The start time on the virtual wall clock.
    public let startedAt: Date
    /// The end time; `nil` while the launch is running.
    public let endedAt: Date?
    /// The outcome; `nil` while the launch is running.
    public let outcome: LaunchOutcome?
    /// The reason why the launch was stopped; `nil` if it was not stopped.
    public let stopReason: StopReason?
    /// The detail of the end in the history.
    public let detail: String?

    init(_ record: LaunchRecord) {
        (id, kind, identifier, generation) = (record.id ?? 0, record.kind, record.identifier, record.generation)
        (reason, isSimulated, startedAt) = (record.reason, record.simulated, record.startedAt)
        (endedAt, outcome, stopReason, detail) = (record.endedAt, record.outcome, record.stopReason, record.detail)
    }
}

/// A pending request.
public struct PendingRequestReport: Sendable, Equatable, Identifiable {
    /// The identifier of the task.
    public let id: String
    /// The kind of the launch.
    public let kind: LaunchKind
    /// The earliest start; `nil` if the request may start as soon as its conditions are met.
    public let earliestBegin: Date?
    /// The number of consecutive launches without a result.
    public let failures: Int
    /// The earliest start after the failed launches.
    public let delayedUntil: Date?

    init(_ record: RequestRecord) {
        (id, kind, earliestBegin) = (record.identifier, record.kind, record.earliestBegin)
        (failures, delayedUntil) = (record.failures, record.backoffUntil)
    }
}

/// A transfer of a background session.
public struct TransferReport: Sendable, Equatable, Identifiable {
    /// The state of a transfer: `queued`, `running`, `waiting`, `paused`, `completed`, `failed` or `cancelled`.
    public enum State: String, Sendable {
        case queued, running, waiting, paused, completed, failed, cancelled
    }

    /// The number of the transfer, counted from 1.
    public let id: Int64
    /// The identifier of the background session.
    public let session: String
    /// The address of the request.
    public let url: String
    /// `true` for an upload.
    public let isUpload: Bool
    /// The state of the transfer.
    public let state: State
    /// The number of bytes of the file that were received or sent.
    public let bytesDone: Int64
    /// The number of body bytes on the network, over all attempts.
    public let bytesOnWire: Int64
    /// The number of attempts so far.
    public let attempts: Int
    /// `true` if the end of the transfer is delivered to the app. If `false`, only a process that awaits the transfer receives
    /// the end.
    public let isHandedOver: Bool
    /// The course of the transfer in words: whether it was resumed or started over, and why.
    public let note: String?
    /// The last error.
    public let trouble: String?

    init(_ record: TransferRecord) {
        (id, session, url, isUpload) = (record.id ?? 0, record.session, record.url, record.kind == .upload)
        state = State(rawValue: record.state.rawValue) ?? .queued
        (bytesDone, bytesOnWire, attempts) = (record.bytesDone, record.bytesOnWire, record.attempts)
        (isHandedOver, note, trouble) = (record.isAdopted, record.note, record.errorMessage)
    }
}

/// A notification of the app.
public struct NotificationReport: Sendable, Equatable, Identifiable {
    /// The state of a notification.
    public enum State: String, Sendable {
        case pending, presenting, delivered, gathered, expired, closed, over, withdrawing, withdrawn
    }

    /// The identifier that the app chose.
    public let id: String
    /// The title.
    public let title: String
    /// The text below the title.
    public let body: String
    /// The state of the notification.
    public let state: State
    /// The reason why the notification could not be shown yet.
    public let trouble: String?

    init(_ record: NotificationRecord) {
        (id, title, body) = (record.identifier, record.content.title, record.content.body)
        (state, trouble) = (State(rawValue: record.state.rawValue) ?? .pending, record.trouble)
    }
}

/// The contents of the ledger of a driven app: everything that outlives its processes.
public struct LedgerInspector: Sendable {
    let ledger: Ledger

    /// Pending requests, by identifier.
    public var requests: [PendingRequestReport] { read { try $0.requests().map(PendingRequestReport.init) } }

    /// Launches, oldest first. Old launches are removed, as in `history`.
    public var history: [LaunchReport] { read { try $0.history(limit: 1_000).map(LaunchReport.init) } }

    /// Running launches.
    public var running: [LaunchReport] { read { try $0.liveLaunches().map(LaunchReport.init) } }

    /// Transfers, oldest first.
    public var transfers: [TransferReport] { read { try $0.transfers().map(TransferReport.init) } }

    /// Notifications, oldest first.
    public var notifications: [NotificationReport] { read { try $0.notifications().map(NotificationReport.init) } }

    /// For each session: the number of ended transfers that were not delivered to the app.
    public var undeliveredSessions: [String: Int] {
        read { try Dictionary(grouping: $0.undeliveredEvents(), by: \.session).mapValues(\.count) }
    }

    /// Reads the ledger. The ledger is in memory, so only an error in this project's code can make a read fail.
    func read<Value>(_ body: (LedgerTransaction) throws -> Value) -> Value {
        do { return try ledger.read(body) } catch { preconditionFailure("the ledger in memory cannot be read: \(error)") }
    }
}
