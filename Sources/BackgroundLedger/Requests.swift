import BackgroundScheduling
import Foundation
import GRDB

/// A pending request: something the app wants to be woken for.
public struct RequestRecord: Codable, Sendable, Equatable {
    public var identifier: String
    /// New with every submit: tells a replaced request from the one a launch serves.
    public var token: String
    public var kind: LaunchKind
    public var earliestBegin: Date?
    public var recurrence: WallClockRule?
    /// The wall-clock moment this request stands for; `earliestBegin` is this plus the spread.
    public var occurrence: Date?
    /// Seconds after the occurrence at which this installation wakes.
    public var spread: Double
    public var missed: MissedPolicy
    public var requiresNetwork: Bool
    public var requiresExternalPower: Bool
    public var submittedAt: Date
    /// Launches in a row that ended without a result.
    public var failures: Int
    public var backoffUntil: Date?
    /// The handler had submitted this request before its launch died: the launch is made up for first, and this
    /// is when the request itself was to begin.
    public var beginAfterRetry: Date?

    public init(
        identifier: String, kind: LaunchKind, earliestBegin: Date?, recurrence: WallClockRule? = nil, spread: Double = 0,
        missed: MissedPolicy = .once, requiresNetwork: Bool = false, requiresExternalPower: Bool = false, submittedAt: Date
    ) {
        self.identifier = identifier
        token = UUID().uuidString
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.recurrence = recurrence
        occurrence = nil
        self.spread = spread
        self.missed = missed
        self.requiresNetwork = requiresNetwork
        self.requiresExternalPower = requiresExternalPower
        self.submittedAt = submittedAt
        failures = 0
        backoffUntil = nil
        beginAfterRetry = nil
    }

    /// Plans the wall-clock rule anew: strictly after now and after what was served. No rule: no change.
    public mutating func planOccurrence(after now: Date, served: Date?, in zone: TimeZone) {
        guard let recurrence else { return }
        let next = recurrence.next(after: now, served: served, in: zone)
        occurrence = next
        earliestBegin = next.addingTimeInterval(spread)
    }

    public func plannable(hasLiveLaunch: Bool) -> PlannableRequest {
        PlannableRequest(
            identifier: identifier, kind: kind, earliestBegin: earliestBegin, requiresNetwork: requiresNetwork,
            requiresExternalPower: requiresExternalPower, backoffUntil: backoffUntil, hasLiveLaunch: hasLiveLaunch,
            submittedAt: submittedAt)
    }
}

extension RequestRecord: LedgerRecord {
    public static let databaseTableName = "request"
}

extension LedgerTransaction {
    public func requests() throws -> [RequestRecord] {
        try RequestRecord.fetchAll(database, sql: "SELECT * FROM request ORDER BY identifier")
    }

    public func request(_ identifier: String) throws -> RequestRecord? {
        try RequestRecord.fetchOne(database, key: identifier)
    }

    /// Pending requests of a kind, that of `identifier` not counted (submitting it again replaces it).
    public func pendingCount(of kind: LaunchKind, besides identifier: String) throws -> Int {
        try Int.fetchOne(
            database, sql: "SELECT COUNT(*) FROM request WHERE kind = ? AND identifier <> ?",
            arguments: [kind.rawValue, identifier]) ?? 0
    }

    /// Adds a request, replacing one of the same identifier.
    public func save(_ request: RequestRecord) throws {
        var request = request
        try request.save(database)
    }

    @discardableResult
    public func deleteRequest(_ identifier: String) throws -> Bool {
        try RequestRecord.deleteOne(database, key: identifier)
    }

    @discardableResult
    public func deleteAllRequests() throws -> Int { try RequestRecord.deleteAll(database) }
}
