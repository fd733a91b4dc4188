import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport

extension LedgerTransaction {
    package func requests() throws -> [RequestRecord] {
        try RequestRecord.fetchRare(database.cachedStatement(sql: "SELECT * FROM request ORDER BY identifier"))
    }

    package func request(_ identifier: String) throws -> RequestRecord? {
        try RequestRecord.fetchRareOne(
            database.cachedStatement(sql: "SELECT * FROM request WHERE identifier = ?"), arguments: [identifier])
    }

    /// Returns the number of pending requests of a kind, or `limit` if the number is greater than `limit`. The request with
    /// `identifier` is left out, because a new submission replaces this request.
    package func pendingCount(of kind: LaunchKind, besides identifier: String, upTo limit: Int) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(
                sql: "SELECT COUNT(*) FROM (SELECT 1 FROM request WHERE kind = ? AND identifier <> ? LIMIT ?)"),
            arguments: [kind.rawValue, identifier, limit]) ?? 0
    }

    package func requests(of kind: LaunchKind) throws -> [RequestRecord] {
        try RequestRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM request WHERE kind = ? ORDER BY submittedAt, identifier"),
            arguments: [kind.rawValue])
    }

    // MARK: Due requests

    /// A condition for requests that have no running launch, because a request is not due while a launch for it is running.
    private static let isIdle = """
        kind <> 'continuedProcessing'
        AND identifier NOT IN (SELECT identifier FROM launch WHERE endedAt IS NULL AND requestToken IS NOT NULL)
        """
    static let firstDueQuery = """
        SELECT * FROM request WHERE needs = ? AND dueAt <= ? AND \(isIdle) ORDER BY dueAt, submittedAt, identifier LIMIT 1
        """
    static let nextDueQuery = """
        SELECT dueAt FROM request WHERE needs = ? AND dueAt > ? AND \(isIdle) ORDER BY dueAt LIMIT 1
        """

    /// Returns the request of the given classes that became due first. Cost: one index lookup for each class, independent of the
    /// number of requests. A test compares the result with ``RequestLife/verdicts(in:now:)``.
    package func firstDue(in classes: [RequestNeeds], now: Date) throws -> RequestRecord? {
        var best: RequestRecord?
        for needs in try inhabited(classes) {
            let first = try RequestRecord.fetchRareOne(
                database.cachedStatement(sql: Self.firstDueQuery), arguments: [needs.rawValue, now.timeIntervalSince1970])
            guard let first else { continue }
            if let known = best, known.place <= first.place { continue }
            best = first
        }
        return best
    }

    /// Returns the classes that contain a request. Usually only one or two classes contain requests, so this query avoids lookups
    /// in empty classes.
    private func inhabited(_ classes: [RequestNeeds]) throws -> [RequestNeeds] {
        let known = try memo.rows("classes of requests", database) {
            let request = "request INDEXED BY requestDue WHERE kind <> 'continuedProcessing'"
            return try needs(in: request)
        }
        return classes.filter { known.contains($0.rawValue) }
    }

    /// Returns the next time at which another request of the given classes becomes due.
    package func nextDueTime(in classes: [RequestNeeds], after now: Date) throws -> Date? {
        var earliest: Double?
        for needs in try inhabited(classes) {
            let next = try Double.fetchOne(
                database.cachedStatement(sql: Self.nextDueQuery), arguments: [needs.rawValue, now.timeIntervalSince1970])
            if let next { earliest = min(earliest ?? next, next) }
        }
        return earliest.map(Date.init(timeIntervalSince1970:))
    }

    /// Returns the first future time for which the machine must be woken. The machine is not woken for a launch whose time has
    /// passed.
    package func nextWake(after moment: Date) throws -> Date? {
        try Double.fetchOne(
            database.cachedStatement(sql: "SELECT MIN(earliestBegin) FROM request WHERE wakesSystem AND earliestBegin > ?"),
            arguments: [moment.timeIntervalSince1970]
        ).map(Date.init(timeIntervalSince1970:))
    }

    /// Returns whether a request with `wakesSystem` is due. The result is also `true` for a due request whose launch is running.
    package func hasDueWake(now: Date) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM request WHERE wakesSystem AND dueAt <= ?)"),
            arguments: [now.timeIntervalSince1970]) ?? false
    }

    /// Returns the requests with the policy `skip` that were due before `moment`.
    package func skippable(before moment: Date) throws -> [RequestRecord] {
        try RequestRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM request WHERE missed = 'skip' AND dueAt < ? AND failures = 0 AND \(Self.isIdle)"),
            arguments: [moment.timeIntervalSince1970])
    }

    /// Returns the requests that repeat by a rule.
    package func recurringRequests() throws -> [RequestRecord] {
        try RequestRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM request WHERE recurrence IS NOT NULL ORDER BY identifier"))
    }

    package func requestsDelayed(beyond moment: Date) throws -> [RequestRecord] {
        try RequestRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM request WHERE backoffUntil > ?"),
            arguments: [moment.timeIntervalSince1970])
    }

    package func hasRequests() throws -> Bool {
        try Bool.fetchOne(database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM request)")) ?? false
    }

    /// Stores a request unchanged. ``submit(_:in:now:zone:)`` plans the next occurrence before it calls this method.
    package func save(_ request: RequestRecord) throws {
        var request = request
        try request.save(database)
    }

    // MARK: Events

    /// Plans requests again after a change of the clock or the time zone, or after the start of a new agent.
    ///
    /// - Returns: the identifiers of the requests whose occurrence has changed.
    package func planAgain(backoffBase: Double, now: Date, in zone: TimeZone) throws -> [String] {
        let recurring = try recurringRequests()
        let delayed = try requestsDelayed(beyond: now).filter { $0.recurrence == nil }
        return try (delayed + recurring).filter { original in
            var request = original
            let isDelayed = request.backoffUntil ?? .distantPast > now
            let history = RequestLife.History(
                lastServed: request.recurrence == nil ? nil : try lastServedOccurrence(request.identifier, now: now),
                failedInARow: isDelayed ? try failedInARow(request.kind, request.identifier) : 0, backoffBase: backoffBase)
            try handle(.clockChanged(history), &request, now: now, in: zone)
            return request.occurrence != original.occurrence
        }.map(\.identifier)
    }

    /// Records that the app's files changed. Requests that wait after failed launches become due immediately. The recorded number
    /// of failures does not change.
    package func applyAppChange(now: Date, in zone: TimeZone) throws {
        try setFact(.appChangedAt, now)
        for var request in try requestsDelayed(beyond: .distantPast) { try handle(.appChanged, &request, now: now, in: zone) }
    }

    /// Updates a request after its launch has ended. The row of the launch contains the outcome.
    package func applyLaunchEnd(
        of launch: LaunchRecord, _ end: ProcessEnd, backoffBase: Double, now: Date, in zone: TimeZone
    ) throws {
        let beginners = try fact(.launchesWithTransfers) ?? []
        let hasTransfers = beginners.contains { $0 == launch.id }
        if hasTransfers { try setFact(.launchesWithTransfers, beginners.count > 1 ? beginners.filter { $0 != launch.id } : nil) }
        guard let token = launch.requestToken, let outcome = launch.outcome, var request = try request(launch.identifier) else {
            return
        }
        let isPlanned = outcome.isResult && request.recurrence != nil && launch.servedOccurrence == nil
        let history = RequestLife.History(
            lastServed: isPlanned ? try lastServedOccurrence(launch.identifier, now: now) : nil,
            failedInARow: outcome.isResult ? 0 : try failedInARow(launch.kind, launch.identifier), backoffBase: backoffBase)
        let ending = RequestLife.Ending(
            token: token, outcome: outcome, stopReason: launch.stopReason, end: end, hasTransfers: hasTransfers,
            served: launch.servedOccurrence, history: history,
            newToken: UUID.random().uuidString)
        try handle(.ended(ending), &request, .serving(generation: launch.generation), now: now, in: zone)
    }

    /// Returns the delay in seconds for a request that a launch submits without a begin date (see ``SystemDiscretion``).
    func pauseOfDiscretion(_ request: RequestRecord, now: Date) throws -> Double {
        guard request.earliestBegin == nil, request.recurrence == nil else { return 0 }
        let count = try Int.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT COUNT(*) FROM launch WHERE identifier = ? AND requestToken IS NOT NULL AND askedBegin IS NULL
                    AND kind IN ('appRefresh', 'processing') AND simulated = 0 AND startedAt > ?
                    """), arguments: [request.identifier, now.timeIntervalSince1970 - SystemDiscretion.memory])
        let base = try (fact(.settings) ?? AgentSettings()).discretion
        return SystemDiscretion.pause(afterLaunches: count ?? 0, base: base)
    }

    @discardableResult
    package func deleteRequest(_ identifier: String) throws -> Bool {
        try RequestRecord.deleteOne(database, key: identifier)
    }

    /// Deletes the requests that handlers of launches submitted.
    @discardableResult
    package func deleteRequestsOfLaunches() throws -> Int {
        try RequestRecord.filter(Column("submittedInLaunch") != nil).deleteAll(database)
    }

    @discardableResult
    package func deleteAllRequests() throws -> Int { try RequestRecord.deleteAll(database) }
}

extension RequestRecord {
    /// The sort order of requests that are due.
    fileprivate var place: (Date, Date, String) { (life(.pending).dueAt, submittedAt, identifier) }
}
