import BackgroundLedger
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.LaunchOutcome
@_exported import enum BackgroundScheduling.StopReason
import Foundation

/// One launch of the app, as the ledger has it.
public struct LaunchReport: Sendable, Equatable, Identifiable {
    /// Its number, counted from 1.
    public let id: Int64
    /// What it was for.
    public let kind: LaunchKind
    /// The task's, session's or notification's identifier, by kind.
    public let identifier: String
    /// 1; more where earlier launches of the request ended without a result.
    public let generation: Int
    /// Why it was launched, in words.
    public let reason: String
    /// By hand (``TestDriver/simulateLaunch(_:)``).
    public let isSimulated: Bool
    /// By the virtual wall clock.
    public let startedAt: Date
    /// `nil` while it runs.
    public let endedAt: Date?
    /// How it ended; `nil` while it runs.
    public let outcome: LaunchOutcome?
    /// Why it was asked to stop, if it was.
    public let stopReason: StopReason?
    /// What the history says of its end.
    public let detail: String?

    init(_ record: LaunchRecord) {
        (id, kind, identifier, generation) = (record.id ?? 0, record.kind, record.identifier, record.generation)
        (reason, isSimulated, startedAt) = (record.reason, record.simulated, record.startedAt)
        (endedAt, outcome, stopReason, detail) = (record.endedAt, record.outcome, record.stopReason, record.detail)
    }
}

/// A request that waits for its launch.
public struct PendingRequestReport: Sendable, Equatable, Identifiable {
    /// The task's identifier.
    public let id: String
    /// What it asks for.
    public let kind: LaunchKind
    /// Not before; `nil`: as soon as its conditions hold.
    public let earliestBegin: Date?
    /// Launches in a row without a result.
    public let failures: Int
    /// Not before, because of those.
    public let delayedUntil: Date?

    init(_ record: RequestRecord) {
        (id, kind, earliestBegin) = (record.identifier, record.kind, record.earliestBegin)
        (failures, delayedUntil) = (record.failures, record.backoffUntil)
    }
}

/// A transfer of a background session.
public struct TransferReport: Sendable, Equatable, Identifiable {
    /// Where it stands: `queued`, `running`, `waiting`, `paused`, `completed`, `failed` or `cancelled`.
    public enum State: String, Sendable {
        case queued, running, waiting, paused, completed, failed, cancelled
    }

    /// Its number, counted from 1.
    public let id: Int64
    /// The background session's identifier.
    public let session: String
    /// The address asked.
    public let url: String
    /// Whether it sends.
    public let isUpload: Bool
    /// Where it stands.
    public let state: State
    /// Bytes of the file that are here, or there.
    public let bytesDone: Int64
    /// Body bytes on the wire, over all attempts.
    public let bytesOnWire: Int64
    /// Attempts so far.
    public let attempts: Int
    /// Its end is delivered to the app; otherwise only who awaits it hears of it.
    public let isHandedOver: Bool
    /// How it got on, in words: resumed or started over, and why.
    public let note: String?
    /// What went wrong last.
    public let trouble: String?

    init(_ record: TransferRecord) {
        (id, session, url, isUpload) = (record.id ?? 0, record.session, record.url, record.kind == .upload)
        state = State(rawValue: record.state.rawValue) ?? .queued
        (bytesDone, bytesOnWire, attempts) = (record.bytesDone, record.bytesOnWire, record.attempts)
        (isHandedOver, note, trouble) = (record.isAdopted, record.note, record.errorMessage)
    }
}

/// A notification that the app asked for.
public struct NotificationReport: Sendable, Equatable, Identifiable {
    /// Where it stands.
    public enum State: String, Sendable {
        case pending, presenting, delivered, gathered, expired, closed, over, withdrawing, withdrawn
    }

    /// The app's own identifier.
    public let id: String
    /// The headline.
    public let title: String
    /// What stands below it.
    public let body: String
    /// Where it stands.
    public let state: State
    /// Why it could not be shown yet.
    public let trouble: String?

    init(_ record: NotificationRecord) {
        (id, title, body) = (record.identifier, record.content.title, record.content.body)
        (state, trouble) = (State(rawValue: record.state.rawValue) ?? .pending, record.trouble)
    }
}

/// What lies in the ledger of a driven app: everything that would outlive its processes.
public struct LedgerInspector: Sendable {
    let ledger: Ledger

    /// Requests that wait, by identifier.
    public var requests: [PendingRequestReport] { read { try $0.requests().map(PendingRequestReport.init) } }

    /// Launches, oldest first; those of long ago are forgotten, as in `history`.
    public var history: [LaunchReport] { read { try $0.history(limit: 1_000).map(LaunchReport.init) } }

    /// Launches that run.
    public var running: [LaunchReport] { read { try $0.liveLaunches().map(LaunchReport.init) } }

    /// Transfers, oldest first.
    public var transfers: [TransferReport] { read { try $0.transfers().map(TransferReport.init) } }

    /// Notifications, oldest first.
    public var notifications: [NotificationReport] { read { try $0.notifications().map(NotificationReport.init) } }

    /// Ended transfers that the app was not told of, by session.
    public var undeliveredSessions: [String: Int] {
        read { try Dictionary(grouping: $0.undeliveredEvents(), by: \.session).mapValues(\.count) }
    }

    /// In memory nothing can fail but our own code.
    func read<Value>(_ body: (LedgerTransaction) throws -> Value) -> Value {
        do { return try ledger.read(body) } catch { preconditionFailure("the ledger in memory cannot be read: \(error)") }
    }
}
