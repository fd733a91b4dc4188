import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

/// A pending request: something the app wants to be woken for.
package struct RequestRecord: Codable, Sendable, Equatable {
    package var identifier: String
    /// New with every submit: tells a replaced request from the one a launch serves.
    package var token: String
    package var kind: LaunchKind
    package var earliestBegin: Date?
    package var recurrence: WallClockRule?
    /// The wall-clock moment this request stands for; `earliestBegin` is this plus the spread.
    package var occurrence: Date?
    /// Seconds after the occurrence at which this installation wakes.
    package var spread: Double
    package var missed: MissedPolicy
    package var requiresNetwork: Bool
    package var requiresExternalPower: Bool
    package var runsInLowPowerMode = false
    /// The machine is woken for it, where that may be.
    package var wakesSystem = false
    package var submittedAt: Date
    /// Launches in a row that ended without a result.
    package var failures: Int
    package var backoffUntil: Date?
    /// When the last launch without a result ended.
    package var lastFailureAt: Date?
    /// The handler had submitted this request before its launch died: the launch is made up for first, and this
    /// is when the request itself was to begin.
    package var beginAfterRetry: Date?
    /// Continued processing: what its progress notification says, and the process that asked and will do it.
    package var title: String?
    package var subtitle: String?
    package var hostPID: Int32?
    package var hostStart: Int64?
    /// Apple's numbers of what to do without room, and of what it needs.
    package var strategy: Int?
    /// The launch whose handler asked for it; `nil`: a process that a person started.
    package var submittedInLaunch: Int64?
    package var resources: Int?

    /// Of continued processing: the process that holds its handler.
    package var host: ProcessIdentity? {
        guard let hostPID, let hostStart else { return nil }
        return ProcessIdentity(pid: hostPID, start: hostStart)
    }

    package init(
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

    /// This occurrence of its rule is the one it stands for.
    fileprivate mutating func stand(for next: Date) {
        occurrence = next
        earliestBegin = next.addingTimeInterval(spread)
    }

    /// The app had its say: what went before is forgiven.
    package mutating func forgive() {
        failures = 0
        backoffUntil = nil
    }

    package func plannable(hasLiveLaunch: Bool) -> PlannableRequest {
        PlannableRequest(
            identifier: identifier, kind: kind, earliestBegin: earliestBegin, requiresNetwork: requiresNetwork,
            requiresExternalPower: requiresExternalPower, runsInLowPowerMode: runsInLowPowerMode, backoffUntil: backoffUntil,
            failures: failures, hasLiveLaunch: hasLiveLaunch,
            submittedAt: submittedAt)
    }
}

extension RequestRecord: LedgerRecord {
    package static let databaseTableName = "request"

    fileprivate var duePlace: (Date, Date, String) { (plannable(hasLiveLaunch: false).dueAt, submittedAt, identifier) }
}

extension LedgerTransaction {
    package func requests() throws -> [RequestRecord] {
        try RequestRecord.fetchRare(database.cachedStatement(sql: "SELECT * FROM request ORDER BY identifier"))
    }

    package func request(_ identifier: String) throws -> RequestRecord? {
        try RequestRecord.fetchRareOne(
            database.cachedStatement(sql: "SELECT * FROM request WHERE identifier = ?"), arguments: [identifier])
    }

    /// Pending requests of a kind, that of `identifier` not counted (submitting it again replaces it). Counts no further
    /// than `limit`.
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

    // MARK: Who is due

    /// Requests that a launch serves right now are not due.
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

    /// The longest waiting request of the open classes. Cost: one look into an index per class, whatever the number of
    /// requests; the same choice as `RequestPlanner`'s, which a test holds.
    package func firstDue(in classes: [RequestNeeds], now: Date) throws -> RequestRecord? {
        var best: RequestRecord?
        for needs in try inhabited(classes) {
            let first = try RequestRecord.fetchRareOne(
                database.cachedStatement(sql: Self.firstDueQuery), arguments: [needs.rawValue, now.timeIntervalSince1970])
            guard let first else { continue }
            if let known = best, known.duePlace <= first.duePlace { continue }
            best = first
        }
        return best
    }

    /// Those classes that some request is in: mostly one or two, and each look into an empty one costs as much.
    private func inhabited(_ classes: [RequestNeeds]) throws -> [RequestNeeds] {
        let known = try memo.rows("classes of requests", database) {
            let request = "request INDEXED BY requestDue WHERE kind <> 'continuedProcessing'"
            return try needs(in: request)
        }
        return classes.filter { known.contains($0.rawValue) }
    }

    /// When time alone makes another request of the open classes due.
    package func nextDueTime(in classes: [RequestNeeds], after now: Date) throws -> Date? {
        var earliest: Double?
        for needs in try inhabited(classes) {
            let next = try Double.fetchOne(
                database.cachedStatement(sql: Self.nextDueQuery), arguments: [needs.rawValue, now.timeIntervalSince1970])
            if let next { earliest = min(earliest ?? next, next) }
        }
        return earliest.map(Date.init(timeIntervalSince1970:))
    }

    /// The first moment to come for which the machine is to be woken. A launch that is made up for wakes nobody.
    package func nextWake(after moment: Date) throws -> Date? {
        try Double.fetchOne(
            database.cachedStatement(sql: "SELECT MIN(earliestBegin) FROM request WHERE wakesSystem AND earliestBegin > ?"),
            arguments: [moment.timeIntervalSince1970]
        ).map(Date.init(timeIntervalSince1970:))
    }

    /// A request for which the machine is woken is due, and has not run or runs.
    package func hasDueWake(now: Date) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM request WHERE wakesSystem AND dueAt <= ?)"),
            arguments: [now.timeIntervalSince1970]) ?? false
    }

    /// Requests to be left out when missed, whose moment lies before `moment`.
    package func skippable(before moment: Date) throws -> [RequestRecord] {
        try RequestRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM request WHERE missed = 'skip' AND dueAt < ? AND failures = 0 AND \(Self.isIdle)"),
            arguments: [moment.timeIntervalSince1970])
    }

    /// Requests with a rule on the person's clock.
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

    /// What failed without a result is due at once; how often it failed stays known.
    package func forgetBackoffs() throws {
        try database.run(sql: "UPDATE request SET backoffUntil = NULL WHERE failures > 0 AND backoffUntil IS NOT NULL")
    }

    /// Adds a request, replacing one of the same identifier.
    package func save(_ request: RequestRecord) throws {
        var request = request
        try request.save(database)
    }

    // MARK: The next occurrence

    /// Plans the next occurrence of a request's rule: strictly after now, and after what was served. Nothing changes without a rule.
    ///
    /// Here and nowhere else: for what is submitted, served, left out, and planned anew by a clock that was set.
    ///
    /// - Parameter occurrence: what was served or left out just now; `nil`: what the history says was served last.
    package func planNext(of request: inout RequestRecord, served occurrence: Date? = nil, now: Date, in zone: TimeZone) throws {
        guard let rule = request.recurrence else { return }
        let served = try occurrence ?? lastServedOccurrence(request.identifier, now: now)
        request.stand(for: rule.next(after: now, served: served, in: zone))
        try setFact(.zone(ofRequest: request.identifier), zone.identifier)
    }

    /// The same for a request that is submitted; but an occurrence of the same rule that is due and not served yet is not dropped.
    ///
    /// - Parameter occurrence: what the launch that submits it serves.
    package func planSubmitted(_ request: inout RequestRecord, served occurrence: Date?, now: Date, in zone: TimeZone) throws {
        let served = try [occurrence, lastServedOccurrence(request.identifier, now: now)]
            .compactMap { $0 }.filter { WallClockRule.counts(served: $0, now: now) }.max()
        if let earlier = try self.request(request.identifier), earlier.recurrence == request.recurrence,
            let due = earlier.occurrence, due <= now, served ?? .distantPast < due,
            try !liveLaunches().contains(where: { $0.identifier == request.identifier })
        {
            request.stand(for: due)
            request.failures = earlier.failures
            request.backoffUntil = earlier.backoffUntil
            return
        }
        // A person who submits it anew after a clock was wrong is not bound by what that clock served.
        try planNext(of: &request, served: occurrence ?? .distantPast, now: now, in: zone)
    }

    /// A request without a date that a launch submits begins at the system's discretion.
    ///
    /// - Parameter launch: whose handler submits it; one that was simulated waits for nothing.
    package func applyDiscretion(to request: inout RequestRecord, submittedIn launch: Int64, now: Date) throws {
        guard request.earliestBegin == nil, request.recurrence == nil, try self.launch(launch)?.simulated == false else { return }
        let count = try Int.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT COUNT(*) FROM launch WHERE identifier = ? AND requestToken IS NOT NULL AND askedBegin IS NULL
                    AND kind IN ('appRefresh', 'processing') AND simulated = 0 AND startedAt > ?
                    """), arguments: [request.identifier, now.timeIntervalSince1970 - SystemDiscretion.memory])
        let base = try (fact(.settings) ?? AgentSettings()).discretion
        let pause = SystemDiscretion.pause(afterLaunches: count ?? 0, base: base)
        if pause > 0 { request.backoffUntil = now.addingTimeInterval(pause) }
    }

    @discardableResult
    package func deleteRequest(_ identifier: String) throws -> Bool {
        try RequestRecord.deleteOne(database, key: identifier)
    }

    /// What handlers asked for.
    @discardableResult
    package func deleteRequestsOfLaunches() throws -> Int {
        try RequestRecord.filter(Column("submittedInLaunch") != nil).deleteAll(database)
    }

    @discardableResult
    package func deleteAllRequests() throws -> Int { try RequestRecord.deleteAll(database) }
}
